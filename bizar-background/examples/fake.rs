//! Background agents on a server of one's own: this one repeats its prompts.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock},
    time::Duration,
};

use bizar_background::{
    Agents, Event, Events, Failure, InstanceId, Limits, Message, Server, SessionSnapshot, Snapshot,
    Spawn, StartError, Status, Transcript,
    event::{Activity, MessageInfo, Part, Role},
};

#[derive(Default)]
struct Echo {
    events: OnceLock<Events>,
    /// What was said in each session. A run is over before anybody can look.
    sessions: Mutex<HashMap<String, Vec<Message>>>,
}

impl Server for Echo {
    async fn start(&self, events: Events) -> Result<(), StartError> {
        self.events
            .set(events)
            .map_err(|_| StartError("it was started before".into()))
    }

    async fn create(&self, id: InstanceId, _: &Spawn) -> Result<String, Failure> {
        Ok(format!("session of {id}"))
    }

    async fn prompt(&self, session: &str, spawn: &Spawn) -> Result<(), Failure> {
        let message = |id: &str, role, text: String| Message {
            info: MessageInfo {
                id: id.into(),
                role,
                is_completed: true,
                finish: Some("stop".into()),
                ..MessageInfo::default()
            },
            parts: vec![Part::Text {
                text,
                is_hidden: false,
            }],
        };
        let prompt = message("1", Role::User, spawn.prompt.clone());
        let answer = message("2", Role::Assistant, format!("You said: {}", spawn.prompt));
        self.sessions
            .lock()
            .map_err(|_| Failure::Gone)?
            .insert(session.into(), vec![prompt, answer]);
        if let Some(events) = self.events.get() {
            events.tell(Event::Status {
                session: session.into(),
                activity: Activity::Idle,
            });
        }
        Ok(())
    }

    async fn abort(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn observe(&self, session: &str) -> Result<Snapshot, Failure> {
        let transcript = self.transcript(session).await?;
        let sessions = vec![SessionSnapshot {
            id: session.into(),
            parent: None,
            transcript,
        }];
        Ok(Snapshot {
            sessions,
            ..Snapshot::default()
        })
    }

    async fn transcript(&self, session: &str) -> Result<Transcript, Failure> {
        let messages = self
            .sessions
            .lock()
            .map_err(|_| Failure::Gone)?
            .get(session)
            .cloned();
        Ok(Transcript {
            messages: messages.ok_or(Failure::Gone)?,
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agents = Agents::new(Echo::default(), Limits::default(), None);
    let run = agents.spawn(Spawn::new("parrot", "hello")).await?;
    let collected = agents
        .collect(run.instance_id, Some(Duration::from_secs(20)))
        .await?;
    assert_eq!(
        (collected.status, collected.result.as_str()),
        (Status::Done, "You said: hello")
    );
    agents.shutdown().await;
    Ok(())
}
