//! HTTP to the one child: 127.0.0.1, one connection a request, limits everywhere.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};

use super::{Options, Secret};
use crate::Failure;

/// An address that can be nowhere but on this machine: there is only a port in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Loopback(u16);

impl Loopback {
    /// A port that was free a moment ago.
    pub(super) fn free() -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        Ok(Self(listener.local_addr()?.port()))
    }

    pub(super) fn port(self) -> u16 {
        self.0
    }

    /// Whether something listens on a port.
    pub(super) fn is_taken(port: u16) -> bool {
        TcpListener::bind(Self(port).address())
            .is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    }

    fn address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.0))
    }
}

/// The way to one child: its port and its secret, never one without the other.
#[derive(Clone, Debug)]
pub(super) struct Client {
    address: Loopback,
    secret: Arc<Secret>,
    directory: Arc<str>,
    answer: Duration,
    first_byte: Duration,
}

impl Client {
    pub(super) fn new(address: Loopback, secret: Arc<Secret>, options: &Options) -> Self {
        Self {
            address,
            secret,
            directory: escape(&directory(&options.directory)).into(),
            answer: options.patience.answer,
            first_byte: options.patience.first_byte,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Asks and gives the text of the answer.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<String, Failure> {
        self.call_within(self.answer, method, path, body).await
    }

    pub(super) async fn call_within(
        &self,
        limit: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<String, Failure> {
        let exchange = async {
            let response = self.send(method, path, body).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER)
                .collect()
                .await;
            let body = body
                .map_err(|error| unclear(format!("the answer broke off: {error}")))?
                .to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            if status.is_success() {
                Ok(text)
            } else {
                Err(self.failure(status, &text))
            }
        };
        timeout(limit, exchange)
            .await
            .unwrap_or_else(|_| Err(unclear("no answer in time".into())))
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Failure> {
        self.exchange(self.request(method, path, body)?).await
    }

    /// Asks for a stream of events, from the one on that follows `last_id`.
    pub(super) async fn stream(
        &self,
        path: &str,
        last_id: &str,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = self.request(Method::GET, path, None)?;
        if let (false, Ok(last_id)) = (last_id.is_empty(), HeaderValue::from_str(last_id)) {
            request.headers_mut().insert("last-event-id", last_id);
        }
        self.exchange(request).await
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failure> {
        let exchange = async {
            let socket = TcpStream::connect(self.address.address()).await;
            let socket = socket.map_err(|error| unclear(format!("no connection: {error}")))?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
                .await
                .map_err(broken)?;
            // It ends with the answer's body, or when that is dropped.
            tokio::spawn(connection);
            sender.send_request(request).await.map_err(broken)
        };
        timeout(self.first_byte, exchange)
            .await
            .unwrap_or_else(|_| Err(unclear("no first byte in time".into())))
    }

    /// The path with the project in its query.
    pub(super) fn here(&self, path: &str) -> String {
        format!("{path}?directory={}", self.directory)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Request<Full<Bytes>>, Failure> {
        let refused =
            |error: hyper::http::Error| Failure::Refused(format!("no such request: {error}"));
        let mut authorization = HeaderValue::try_from(self.secret.authorization())
            .map_err(|_| Failure::Refused("the secret is no header".into()))?;
        authorization.set_sensitive(true);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("127.0.0.1:{}", self.port()))
            .header(AUTHORIZATION, authorization);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let bytes = body.map(Value::to_string).unwrap_or_default();
        request.body(Full::new(Bytes::from(bytes))).map_err(refused)
    }

    fn failure(&self, status: StatusCode, text: &str) -> Failure {
        if status == StatusCode::NOT_FOUND {
            return Failure::Gone;
        }
        if status == StatusCode::UNAUTHORIZED {
            return Failure::Refused("the server rejects our secret: it is not our child".into());
        }
        let text: String = self
            .secret
            .redact(text)
            .chars()
            .filter(|letter| !letter.is_control())
            .take(300)
            .collect();
        let text = format!("the server answered {}: {text}", status.as_u16());
        if status.is_server_error() {
            unclear(text)
        } else {
            Failure::Refused(text)
        }
    }
}

/// Makes any text a single piece of a path or of a query.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                escaped.push(char::from(byte))
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn directory(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn unclear(text: String) -> Failure {
    Failure::Unclear(text)
}

fn broken(error: hyper::Error) -> Failure {
    unclear(format!("the connection broke: {error}"))
}

/// Bytes of an answer that are read at most.
const MAX_ANSWER: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_always_this_machine() {
        for port in [0, 1, 4096, u16::MAX] {
            assert!(Loopback(port).address().ip().is_loopback());
        }
        assert_ne!(Loopback::free().unwrap().port(), 0);
    }

    #[test]
    fn what_is_escaped_is_one_piece() {
        assert_eq!(escape("ses_Az-09"), "ses_Az-09");
        assert_eq!(
            escape("../a b?c=d&e#f/é"),
            "%2E%2E%2Fa%20b%3Fc%3Dd%26e%23f%2F%C3%A9"
        );
    }
}
