//! Background agents on a server of one's own: this one repeats its prompts.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock},
};

use bizar_background::{
    Agents, Event, Events, Failure, InstanceId, Limits, Message, Server, Snapshot, Spawn,
    StartError, Status,
    event::{Activity, Role},
};

#[derive(Default)]
struct Echo {
    events: OnceLock<Events>,
    /// What was said in each session. A run is over before anybody can look.
    said: Mutex<HashMap<String, Vec<Message>>>,
}

impl Server for Echo {
    async fn start(&self, events: Events) -> Result<(), StartError> {
        self.events.get_or_init(|| events);
        Ok(())
    }

    async fn create(&self, id: InstanceId, _: &Spawn) -> Result<String, Failure> {
        Ok(format!("session of {id}"))
    }

    async fn prompt(&self, session: &str, spawn: &Spawn) -> Result<(), Failure> {
        let answer = format!("You said: {}", spawn.prompt);
        let messages = vec![
            Message::whole("1", Role::User, &spawn.prompt),
            Message::whole("2", Role::Assistant, &answer),
        ];
        let mut said = self.said.lock().map_err(|_| Failure::Gone)?;
        said.insert(session.into(), messages);
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
        let said = self.said.lock().map_err(|_| Failure::Gone)?;
        let messages = said.get(session).cloned().ok_or(Failure::Gone)?;
        Ok(Snapshot::idle(session, messages))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agents = Agents::new(Echo::default(), Limits::default(), None);
    let run = agents.spawn(Spawn::new("parrot", "hello")).await?;
    let collected = agents.collect(run.instance_id, None).await?;
    assert_eq!(collected.status, Status::Done);
    assert_eq!(collected.result, "You said: hello");
    agents.shutdown().await;
    Ok(())
}
