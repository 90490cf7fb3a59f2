//! The driver: runs background agents on a [`Server`].
//!
//! One task owns the [`Machine`](crate::Machine). Everything else talks to it by
//! messages: the tools, the event stream, and the tasks that do what it wants done.

use std::{path::PathBuf, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::{Change, Counters, InstanceId, Limits, Record, Refusal, Spawn, Status, Text, View};

mod actor;
mod clock;
mod records;
mod server;
mod starter;

use actor::{Actor, Input};
use records::Records;
use starter::Starter;

pub use server::{Events, Server, StartError};

/// Background agents on one server: the handle to spawn, watch, collect and kill them.
///
/// Clones share the same agents. When the last one is dropped without
/// [`Agents::shutdown`], everything is shut down in the background as long as the
/// runtime lives; a program that ends at once leaves that to the watchdog.
///
/// All methods are cancel-safe: a future that is dropped ends the waiting, not the run.
pub struct Agents<S: Server> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Server> {
    server: Arc<S>,
    starter: Arc<Starter<S>>,
    inputs: mpsc::UnboundedSender<Input>,
    changes: broadcast::Sender<Change>,
    records: Records,
}

/// What a run has brought.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Collected {
    /// The instance.
    pub instance_id: InstanceId,
    /// How it stands. A status that is not final means that the wait was too short.
    pub status: Status,
    /// Everything the model wrote, after the loop guard's marker if there is one.
    pub result: String,
    /// What it wrote in its last message.
    pub final_text: String,
    /// The text was cut at 1 MiB.
    pub is_truncated: bool,
    /// Distinct tool calls, subagents included.
    pub tool_call_count: usize,
    /// How long the run has taken, in milliseconds.
    pub duration_ms: u64,
    /// Why it ended, or that the wait was too short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What else was noticed.
    pub warnings: Vec<String>,
}

/// There is no such instance, neither in memory nor on disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no instance {0}: see bizar_status for those there are")]
pub struct UnknownInstance(pub InstanceId);

/// What a kill has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Killed {
    /// The instance.
    pub instance_id: InstanceId,
    /// The status it has now, which is final.
    pub status: Status,
    /// It had ended before; the kill changed nothing.
    pub already_terminal: bool,
}

impl<S: Server> Agents<S> {
    /// Starts the driver. The server itself is started by the first spawn.
    ///
    /// `records` is the directory for the records of instances; `None` keeps them in
    /// memory only. Live records of processes that are gone become failed here.
    ///
    /// # Panics
    /// Never, but it must be called within a tokio runtime, which tokio itself asserts.
    #[must_use]
    pub fn new(server: S, limits: Limits, records: Option<PathBuf>) -> Self {
        let server = Arc::new(server);
        let (inputs, queue) = mpsc::unbounded_channel();
        let (changes, _) = broadcast::channel(1024);
        let records = Records::open(records);
        let events = Events::new(inputs.downgrade());
        let starter = Arc::new(Starter::new(Arc::clone(&server), events));
        let actor = Actor::new(
            Arc::clone(&starter),
            limits,
            inputs.downgrade(),
            changes.clone(),
            records.clone(),
        );
        tokio::spawn(actor.run(queue));
        Self {
            shared: Arc::new(Shared {
                server,
                starter,
                inputs,
                changes,
                records,
            }),
        }
    }

    /// Starts the server now, instead of at the first spawn.
    ///
    /// # Errors
    /// It could not be started, or failed too often lately.
    pub async fn start(&self) -> Result<(), StartError> {
        self.shared.starter.ensure().await
    }

    /// Starts a run, and comes back as soon as the server has taken the prompt.
    ///
    /// A run that could not be started is given back as failed, with its name and the reason.
    ///
    /// # Errors
    /// The run is not well formed, or there is no slot for it.
    pub async fn spawn(&self, spawn: Spawn) -> Result<View, Refusal> {
        self.ask(|reply| Input::Spawn {
            spawn: Box::new(spawn),
            reply,
        })
        .await
        .unwrap_or(Err(Refusal::ShuttingDown))
    }

    /// Shows all instances, the newest last: those of this process and those that have ended.
    ///
    /// With `all`, live ones of other processes are shown too.
    pub async fn statuses(&self, all: bool) -> Vec<View> {
        let mut views = self
            .ask(|reply| Input::Views { reply })
            .await
            .unwrap_or_default();
        let stored = self.shared.records.list().await;
        let known = |id| move |view: &View| view.instance_id == id;
        for record in stored {
            if (all || record.status.is_final()) && !views.iter().any(known(record.instance_id)) {
                views.push(record.view());
            }
        }
        views.sort_by_key(|view| view.instance_id);
        views
    }

    /// Shows one instance.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn status(&self, id: InstanceId) -> Result<View, UnknownInstance> {
        if let Some(view) = self.ask(|reply| Input::View { id, reply }).await.flatten() {
            return Ok(view);
        }
        self.stored(id).await.map(|record| record.view())
    }

    /// Waits until an instance has ended, at most `wait`, and gives its text.
    ///
    /// Without a `wait`, the wait is as long as the instance may run, and 5 s more. When it
    /// is over, the text up to now is given and the instance goes on.
    ///
    /// # Errors
    /// There is no instance of that name.
    pub async fn collect(
        &self,
        id: InstanceId,
        wait: Option<Duration>,
    ) -> Result<Collected, UnknownInstance> {
        let mut changes = self.shared.changes.subscribe();
        let mut view = self.status(id).await?;
        let left =
            Duration::from_millis(view.deadline_at.saturating_sub(clock::now().epoch_ms)) + GRACE;
        let wait = wait.unwrap_or(left).min(MAX_WAIT);
        if !view.status.is_final() {
            let ended = async {
                loop {
                    match changes.recv().await {
                        Ok(change) if change.instance_id == id && change.status.is_final() => {
                            return;
                        }
                        Ok(_) => {}
                        Err(broadcast::error::RecvError::Closed) => return,
                        // Changes were missed: look for oneself.
                        Err(broadcast::error::RecvError::Lagged(_)) => {
                            match self.status(id).await {
                                Ok(view) if !view.status.is_final() => {}
                                _ => return,
                            }
                        }
                    }
                }
            };
            // Over or not: what counts is how it stands then.
            let _ = tokio::time::timeout(wait, ended).await;
            view = self.status(id).await?;
        }
        Ok(self.read(view, wait).await)
    }

    /// Ends a run. Comes back when its status is final, which takes 5 s at most.
    ///
    /// # Errors
    /// There is no instance of that name.
    pub async fn kill(&self, id: InstanceId) -> Result<Killed, UnknownInstance> {
        let mut changes = self.shared.changes.subscribe();
        let Some(before) = self.ask(|reply| Input::Kill { id, reply }).await.flatten() else {
            let status = self.stored(id).await?.status;
            return Ok(Killed {
                instance_id: id,
                status,
                already_terminal: status.is_final(),
            });
        };
        if before.is_final() {
            return Ok(Killed {
                instance_id: id,
                status: before,
                already_terminal: true,
            });
        }
        loop {
            let view = self.status(id).await?;
            if view.status.is_final() {
                return Ok(Killed {
                    instance_id: id,
                    status: view.status,
                    already_terminal: false,
                });
            }
            // The machine promises a change; the time is for changes that were missed.
            let _ = tokio::time::timeout(Duration::from_millis(500), changes.recv()).await;
        }
    }

    /// What was passed over in the stream. Zero after a shutdown.
    pub async fn counters(&self) -> Counters {
        self.ask(|reply| Input::Counters { reply })
            .await
            .unwrap_or_default()
    }

    /// The changes of status from now on, of all instances.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// Takes no more runs, ends all there are, stops the server, and stores what is to be stored.
    pub async fn shutdown(&self) {
        let _ = self
            .ask(|reply| Input::Shutdown {
                reply: Some(reply),
                keep: self.shared.inputs.clone(),
            })
            .await;
    }

    /// The server, for those who know more about it.
    #[must_use]
    pub fn server(&self) -> &S {
        &self.shared.server
    }

    async fn ask<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> Input) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.shared.inputs.send(input(reply)).ok()?;
        answer.await.ok()
    }

    async fn stored(&self, id: InstanceId) -> Result<Record, UnknownInstance> {
        self.shared
            .records
            .load(id)
            .await
            .ok_or(UnknownInstance(id))
    }

    async fn read(&self, view: View, wait: Duration) -> Collected {
        let mut warnings = view.warnings.clone();
        let text = match &view.session_id {
            Some(session) => self.text(session).await,
            None => Some(Text::default()),
        };
        let Text {
            result,
            final_text,
            is_truncated,
        } = text.unwrap_or_else(|| {
            warnings.push("the messages could not be read: the result is a preview".into());
            let preview = view.result_preview.clone().unwrap_or_default();
            Text {
                result: preview.clone(),
                final_text: preview,
                is_truncated: true,
            }
        });
        let result = match &view.loop_guard_tool {
            Some(tool) => format!("[loop guard: 12 identical calls to {tool}]\n{result}"),
            None => result,
        };
        let error = if view.status.is_final() {
            view.error
        } else {
            Some(format!("collect timed out after {}ms", wait.as_millis()))
        };
        Collected {
            instance_id: view.instance_id,
            status: view.status,
            result,
            final_text,
            is_truncated,
            tool_call_count: view.tool_call_count,
            duration_ms: view.duration_ms,
            error,
            warnings,
        }
    }

    /// The text of a session, after some attempts.
    async fn text(&self, session: &str) -> Option<Text> {
        for pause in [
            Duration::ZERO,
            Duration::from_millis(200),
            Duration::from_millis(800),
        ] {
            tokio::time::sleep(pause).await;
            if self.shared.starter.ensure().await.is_err() {
                continue;
            }
            match self.shared.server.transcript(session).await {
                Ok(transcript) => return Some(transcript.text(MAX_TEXT)),
                Err(crate::Failure::Gone) => return None,
                Err(_) => {}
            }
        }
        None
    }
}

impl<S: Server> Clone for Agents<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S: Server> std::fmt::Debug for Agents<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agents").finish_non_exhaustive()
    }
}

impl<S: Server> Drop for Shared<S> {
    fn drop(&mut self) {
        // Nobody is left to be told when it is done.
        let _ = self.inputs.send(Input::Shutdown {
            reply: None,
            keep: self.inputs.clone(),
        });
    }
}

const GRACE: Duration = Duration::from_secs(5);
const MAX_WAIT: Duration = Duration::from_secs(30 * 60);
const MAX_TEXT: usize = 1 << 20;
