//! The one event stream: watched, and opened again whenever it ends.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{Patience, client::Client};
use crate::{Event, Events, Failure, process, sse::SseParser};

/// A stream whose first event has come.
pub(super) struct Open {
    body: Incoming,
    parser: SseParser,
    /// What came together with the first event.
    early: Vec<Event<'static>>,
    /// The name of the last event that had one.
    last_id: String,
}

/// Opens the stream, and waits until it says that it is connected.
///
/// `last_id` is for servers that tell again what came after it. What is lost is read anyway.
pub(super) async fn open(
    client: &Client,
    patience: &Patience,
    last_id: &str,
) -> Result<Open, Failure> {
    let response = match client.stream("/global/event", last_id).await? {
        response if response.status() == hyper::StatusCode::NOT_FOUND => {
            client.stream(&client.here("/event"), last_id).await?
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
        last_id: last_id.into(),
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
    let (mut failures, mut last_id) = (0, String::new());
    loop {
        if let Some(mut open) = stream.take() {
            failures = 0;
            open.early.drain(..).for_each(|event| events.tell(event));
            while let Ok(true) =
                timeout(patience.silence, open.read(|event| events.tell(event))).await
            {}
            last_id = open.last_id;
        }
        tokio::time::sleep(pause(&patience, failures)).await;
        failures += 1;
        stream = open(&client, &patience, &last_id).await.ok();
    }
}

impl Open {
    /// Reads what has come. `false`: the stream is at its end.
    async fn read(&mut self, mut tell: impl FnMut(Event<'_>)) -> bool {
        let Some(Ok(frame)) = self.body.frame().await else {
            return false;
        };
        if let Some(bytes) = frame.data_ref() {
            let dropped = self.parser.dropped();
            self.parser.feed(bytes, |data| {
                if !data.id.is_empty() && data.id != self.last_id {
                    data.id.as_ref().clone_into(&mut self.last_id);
                }
                // What cannot be read is counted: the next look at the server tells what was missed.
                if let Some(event) = Event::parse(&data.data).unwrap_or(Some(Event::Unreadable)) {
                    tell(event);
                }
            });
            (dropped..self.parser.dropped()).for_each(|_| tell(Event::Unreadable));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bg_09_pauses_grow_to_a_limit_and_differ() {
        let patience = Patience::default();
        let mut seen = std::collections::BTreeSet::new();
        for failures in (0..40).cycle().take(4_000) {
            let whole = Duration::from_millis(250 << failures.min(10)).min(Duration::from_secs(5));
            let pause = pause(&patience, failures);
            assert!(
                whole * 3 / 4 <= pause && pause < whole,
                "{failures}: {pause:?}"
            );
            seen.insert(pause);
        }
        assert!(seen.len() > 50, "{} pauses", seen.len());
    }
}
