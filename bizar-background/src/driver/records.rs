//! Records on disk, written by a thread of their own so that nothing waits for a disk.

use std::{path::PathBuf, sync::mpsc};

use bizar_state::{Document, Durability, FileStore, Store};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::clock;
use crate::{InstanceId, Record, process};

/// A store that is written in order and read at any time.
#[derive(Clone)]
pub(super) struct Records {
    jobs: Option<mpsc::Sender<Job>>,
}

enum Job {
    Save(Box<Record>),
    Load(InstanceId, oneshot::Sender<Option<Record>>),
    List(oneshot::Sender<Vec<Record>>),
    Flush(oneshot::Sender<()>),
}

impl Records {
    /// Opens the store, ends what has no process any more, and drops what is old.
    pub(super) fn open(directory: Option<PathBuf>) -> Self {
        let Some(directory) = directory else {
            return Self { jobs: None };
        };
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new().name("bizar-records".into());
        let spawned = thread.spawn(move || {
            let store = FileStore::<Stored>::new(directory, Durability::Power);
            tidy(&store);
            for job in queue {
                job.perform(&store);
            }
        });
        Self {
            jobs: spawned.is_ok().then_some(jobs),
        }
    }

    pub(super) fn save(&self, mut record: Record) {
        record.owner = Some(process::owner());
        self.send(Job::Save(Box::new(record)));
    }

    pub(super) async fn load(&self, id: InstanceId) -> Option<Record> {
        self.ask(|reply| Job::Load(id, reply)).await.flatten()
    }

    pub(super) async fn list(&self) -> Vec<Record> {
        self.ask(Job::List).await.unwrap_or_default()
    }

    /// Comes back when everything that was to be saved is.
    pub(super) async fn flush(&self) {
        self.ask(Job::Flush).await;
    }

    fn send(&self, job: Job) -> bool {
        self.jobs
            .as_ref()
            .is_some_and(|jobs| jobs.send(job).is_ok())
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<T>) -> Job) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        if self.send(job(reply)) {
            answer.await.ok()
        } else {
            None
        }
    }
}

impl Job {
    /// Records are an extra: an error of the disk must not end a run. Who asks has gone at worst.
    fn perform(self, store: &FileStore<Stored>) {
        match self {
            Self::Save(record) => {
                let _ = store.save(Stored::from(*record));
            }
            Self::Load(id, reply) => {
                let loaded = store.load(&id.to_string()).ok();
                let _ = reply.send(
                    loaded
                        .and_then(|loaded| loaded.document)
                        .map(|stored| stored.record),
                );
            }
            Self::List(reply) => {
                let documents = store
                    .list()
                    .map(|listing| listing.documents)
                    .unwrap_or_default();
                let _ = reply.send(documents.into_iter().map(|stored| stored.record).collect());
            }
            Self::Flush(reply) => {
                let _ = reply.send(());
            }
        }
    }
}

fn tidy(store: &FileStore<Stored>) {
    let now = clock::now().epoch_ms;
    let is_old = |record: &Record| {
        record
            .ended_at
            .is_some_and(|ended| now.saturating_sub(ended) > KEPT_MS)
    };
    let _ = store.sweep(|stored| is_old(&stored.record));
    let live = store
        .list()
        .map(|listing| listing.documents)
        .unwrap_or_default();
    for stored in live
        .iter()
        .filter(|stored| !stored.record.status.is_final())
    {
        // Judged again under the lock: its process may have just ended it.
        let _ = store.update(&stored.name, |slot| {
            if let Some(stored) = slot
                && stored
                    .record
                    .owner
                    .as_ref()
                    .is_none_or(|owner| !process::is_alive(owner))
            {
                stored.record.orphaned(now);
            }
        });
    }
}

/// A record with the name it is stored under.
#[derive(Clone, Deserialize, Serialize)]
#[serde(from = "Record", into = "Record")]
struct Stored {
    name: String,
    record: Record,
}

impl From<Record> for Stored {
    fn from(record: Record) -> Self {
        Self {
            name: record.instance_id.to_string(),
            record,
        }
    }
}

impl From<Stored> for Record {
    fn from(stored: Stored) -> Self {
        stored.record
    }
}

impl Document for Stored {
    const KIND: &'static str = "bizar.background";
    const VERSION: u32 = 1;

    fn id(&self) -> &str {
        &self.name
    }
}

/// Seven days.
const KEPT_MS: u64 = 7 * 24 * 3600 * 1000;
