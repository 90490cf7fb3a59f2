//! The one event stream: watched, and opened again whenever it ends.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::{Method, body::Incoming};
use tokio::time::timeout;

use super::{Patience, client::Client};
use crate::{Event, Events, Failure, process, sse::SseParser};

/// A stream whose first event has come.
pub(super) struct Open {
    body: Incoming,
    parser: SseParser,
    /// What came together with the first event.
    early: Vec<Event<'static>>,
}

/// Opens the stream, and waits until it says that it is connected.
pub(super) async fn open(client: &Client, patience: &Patience) -> Result<Open, Failure> {
    let response = match client.send(Method::GET, "/global/event", None).await? {
        response if response.status() == hyper::StatusCode::NOT_FOUND => {
            client
                .send(Method::GET, &client.here("/event"), None)
                .await?
        }
        response => response,
    };
    if !response.status().is_success() {
        return Err(Failure::Refused(format!(
            "the event stream answered {}",
            response.status().as_u16()
        )));
    }
    let mut stream = Open {
        body: response.into_body(),
        parser: SseParser::default(),
        early: Vec::new(),
    };
    let connected = async {
        while !stream.early.contains(&Event::Connected) {
            let mut early = Vec::new();
            if !stream.read(|event| early.push(event.into_owned())).await {
                return Err(Failure::Unclear("the event stream ended at once".into()));
            }
            stream.early.append(&mut early);
        }
        Ok(())
    };
    let late = |_| {
        Err(Failure::Unclear(
            "the event stream did not say that it is connected".into(),
        ))
    };
    timeout(patience.connected, connected)
        .await
        .unwrap_or_else(late)?;
    Ok(stream)
}

/// Tells all events, for ever: a stream that ends or falls silent is opened again.
pub(super) async fn follow(client: Client, patience: Patience, first: Open, events: Events) {
    let mut stream = Some(first);
    let mut failures = 0;
    loop {
        if let Some(mut open) = stream.take() {
            failures = 0;
            open.early.drain(..).for_each(|event| events.tell(event));
            while let Ok(true) =
                timeout(patience.silence, open.read(|event| events.tell(event))).await
            {}
        }
        tokio::time::sleep(pause(&patience, failures)).await;
        failures += 1;
        stream = open(&client, &patience).await.ok();
    }
}

impl Open {
    /// Reads what has come. `false`: the stream is at its end.
    async fn read(&mut self, mut tell: impl FnMut(Event<'_>)) -> bool {
        let Some(Ok(frame)) = self.body.frame().await else {
            return false;
        };
        if let Some(bytes) = frame.data_ref() {
            self.parser.feed(bytes, |data| {
                // What cannot be read is passed over: the next look at the server tells what was missed.
                if let Ok(Some(event)) = Event::parse(&data.data) {
                    tell(event);
                }
            });
        }
        true
    }
}

/// Twice as long after each failure, up to a limit, and not the same for everybody.
fn pause(patience: &Patience, failures: u32) -> Duration {
    let doubled = patience
        .reconnect
        .saturating_mul(1 << failures.min(16))
        .min(patience.reconnect_most);
    let jitter = process::since_boot().subsec_nanos() % 256;
    doubled * (192 + jitter / 4) / 256
}
