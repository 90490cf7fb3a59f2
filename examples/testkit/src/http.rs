//! Just enough HTTP/1.1 for loopback, both ways.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Head and body of a message.
pub(crate) struct Message {
    /// First line.
    pub(crate) start: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads one message; `None` at the end of the connection.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some((start, headers)) = read_head(from)? else {
            return Ok(None);
        };
        let mut message = Self {
            start,
            headers,
            body: Vec::new(),
        };
        if message.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = read_chunk(from)? {
                message.body.extend(chunk);
            }
        } else if let Some(length) = message.header("content-length") {
            message.body = vec![0; length.parse().map_err(io::Error::other)?];
            from.read_exact(&mut message.body)?;
        } else if message.start.starts_with("HTTP/") {
            from.read_to_end(&mut message.body)?;
        }
        Ok(Some(message))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }
}

/// The answer to a [`request`].
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// The body as JSON; a string if it is none.
    pub body: Value,
}

/// Sends one request to 127.0.0.1 and reads the answer.
///
/// # Errors
///
/// When the connection fails or nothing comes for `patience`.
pub fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
    patience: Duration,
) -> io::Result<Response> {
    let stream = send(port, method, path, headers, body)?;
    stream.set_read_timeout(Some(patience))?;
    let message =
        Message::read(&mut BufReader::new(stream))?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = message
        .start
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let body = serde_json::from_slice(&message.body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&message.body).into_owned()));
    Ok(Response { status, body })
}

/// Calls `event` with the data of each server-sent event until the stream ends.
pub(crate) fn follow(port: u16, path: &str, mut event: impl FnMut(Value)) -> io::Result<()> {
    let mut stream = BufReader::new(send(port, "GET", path, &[], None)?);
    let (_, headers) = read_head(&mut stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let chunked = find(&headers, "transfer-encoding") == Some("chunked");
    let mut buffer = Vec::new();
    loop {
        if chunked {
            match read_chunk(&mut stream)? {
                Some(chunk) => buffer.extend(chunk),
                None => return Ok(()),
            }
        } else if stream.read_until(b'\n', &mut buffer)? == 0 {
            return Ok(());
        }
        while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            if let Some(data) = line.strip_prefix(b"data: ")
                && let Ok(value) = serde_json::from_slice(data)
            {
                event(value);
            }
        }
    }
}

fn send(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n");
    if !body.is_empty() {
        head += "content-type: application/json\r\n";
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

type Head = (String, Vec<(String, String)>);

fn read_head(from: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut start = String::new();
    if from.read_line(&mut start)? == 0 {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Some((start.trim_end().to_owned(), headers)))
}

fn read_chunk(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut size = String::new();
    if from.read_line(&mut size)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let size = usize::from_str_radix(size.trim().split(';').next().unwrap_or_default(), 16)
        .map_err(io::Error::other)?;
    let mut chunk = vec![0; size + 2];
    from.read_exact(&mut chunk)?;
    chunk.truncate(size);
    Ok((size > 0).then_some(chunk))
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}
