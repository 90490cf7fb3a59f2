//! The routes of opencode 1.x that are needed, and their shapes.

use std::{collections::HashMap, time::Duration};

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Options,
    client::{Client, escape},
};
use crate::{
    Failure, InstanceId, Permissions, SessionSnapshot, Snapshot, Spawn, Transcript,
    event::{Activity, Request, RequestKind, wire},
};

impl Client {
    /// The version of the server, which says that it is healthy.
    pub(super) async fn health(&self) -> Result<String, Failure> {
        #[derive(Deserialize)]
        struct Health {
            healthy: bool,
            #[serde(default)]
            version: String,
        }
        let health: Health = read(&self.call(Method::GET, "/global/health", None).await?)?;
        if health.healthy {
            Ok(health.version)
        } else {
            Err(Failure::Refused("it says so itself".into()))
        }
    }

    /// Makes a session, after the agent and the model were found to exist.
    pub(super) async fn create(
        &self,
        id: InstanceId,
        spawn: &Spawn,
        options: &Options,
    ) -> Result<String, Failure> {
        self.check_agent(&spawn.agent).await?;
        if let Some(model) = &spawn.model {
            self.check_model(&model.provider, &model.id).await?;
        }
        let mut body = json!({
            "title": format!("bgr:{}:{id}", spawn.agent),
            "agent": spawn.agent,
            "permission": ruleset(options.permissions),
            "metadata": {"bizarCaller": spawn.caller_session, "instanceId": id},
        });
        if let (Some(model), Some(body)) = (&spawn.model, body.as_object_mut()) {
            body.insert(
                "model".into(),
                json!({"id": model.id, "providerID": model.provider}),
            );
        }
        if let (true, Some(parent), Some(body)) = (
            options.is_child,
            &spawn.caller_session,
            body.as_object_mut(),
        ) {
            body.insert("parentID".into(), json!(parent));
        }
        let session: wire::Session = read(
            &self
                .call(Method::POST, &self.here("/session"), Some(&body))
                .await?,
        )?;
        Ok(session.id)
    }

    pub(super) async fn prompt(&self, session: &str, spawn: &Spawn) -> Result<(), Failure> {
        let mut body =
            json!({"agent": spawn.agent, "parts": [{"type": "text", "text": spawn.prompt}]});
        if let (Some(model), Some(body)) = (&spawn.model, body.as_object_mut()) {
            body.insert(
                "model".into(),
                json!({"providerID": model.provider, "modelID": model.id}),
            );
        }
        let path = self.here(&format!("/session/{}/prompt_async", escape(session)));
        self.call(Method::POST, &path, Some(&body)).await.map(drop)
    }

    pub(super) async fn abort(&self, session: &str) -> Result<(), Failure> {
        let path = self.here(&format!("/session/{}/abort", escape(session)));
        self.call(Method::POST, &path, None).await.map(drop)
    }

    pub(super) async fn transcript(&self, session: &str) -> Result<Transcript, Failure> {
        let path = self.here(&format!("/session/{}/message", escape(session)));
        let text = self.call(Method::GET, &path, None).await?;
        Transcript::parse(&text).map_err(unreadable)
    }

    /// What is going on first, then the messages of the whole tree, then what is asked.
    pub(super) async fn observe(&self, session: &str) -> Result<Snapshot, Failure> {
        let active: HashMap<String, wire::Status> = read(
            &self
                .call(Method::GET, &self.here("/session/status"), None)
                .await?,
        )?;
        let active = active
            .into_iter()
            .map(|(session, status)| (session, Activity::from(status)));
        let active: HashMap<_, _> = active
            .filter(|(_, activity)| *activity != Activity::Idle)
            .collect();
        let mut sessions = vec![SessionSnapshot {
            id: session.into(),
            ..SessionSnapshot::default()
        }];
        let mut at = 0;
        while let Some(one) = sessions.get_mut(at) {
            one.transcript = self.transcript(&one.id).await?;
            let (parent, path) = (
                one.id.clone(),
                format!("/session/{}/children", escape(&one.id)),
            );
            let below: Vec<wire::Session> =
                read(&self.call(Method::GET, &self.here(&path), None).await?)?;
            for child in below
                .into_iter()
                .take(MAX_SESSIONS.saturating_sub(sessions.len()))
            {
                let parent = Some(parent.clone());
                sessions.push(SessionSnapshot {
                    id: child.id,
                    parent,
                    ..SessionSnapshot::default()
                });
            }
            at += 1;
        }
        let mut requests = self.requests("/permission").await?;
        requests.extend(self.requests("/question").await?);
        Ok(Snapshot {
            active,
            sessions,
            requests,
        })
    }

    pub(super) async fn respond(&self, request: &Request, grant: bool) -> Result<(), Failure> {
        let id = escape(&request.id);
        let (path, body) = match request.kind {
            RequestKind::Permission => (
                format!("/permission/{id}/reply"),
                json!({"reply": if grant { "once" } else { "reject" }}),
            ),
            RequestKind::Question => (format!("/question/{id}/reject"), json!({})),
        };
        self.call(Method::POST, &self.here(&path), Some(&body))
            .await
            .map(drop)
    }

    /// Asks the server to let go of everything. A server that is gone has.
    pub(super) async fn dispose(&self) {
        let _ = self
            .call_within(DISPOSE, Method::POST, "/global/dispose", None)
            .await;
    }

    async fn requests(&self, path: &str) -> Result<Vec<Request>, Failure> {
        let asked: Vec<wire::Asked> = read(&self.call(Method::GET, &self.here(path), None).await?)?;
        Ok(asked.into_iter().map(Request::from).collect())
    }

    async fn check_agent(&self, agent: &str) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Agent {
            name: String,
        }
        let agents: Vec<Agent> = read(&self.call(Method::GET, &self.here("/agent"), None).await?)?;
        if agents.iter().any(|known| known.name == agent) {
            return Ok(());
        }
        let known: Vec<_> = agents.into_iter().map(|agent| agent.name).collect();
        Err(Failure::Refused(format!(
            "there is no agent {agent}; available: {}",
            known.join(", ")
        )))
    }

    async fn check_model(&self, provider: &str, model: &str) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Providers {
            #[serde(default)]
            providers: Vec<Provider>,
        }
        #[derive(Deserialize)]
        struct Provider {
            id: String,
            #[serde(default)]
            models: HashMap<String, Value>,
        }
        let all: Providers = read(
            &self
                .call(Method::GET, &self.here("/config/providers"), None)
                .await?,
        )?;
        match all.providers.iter().find(|known| known.id == provider) {
            Some(known) if known.models.contains_key(model) => Ok(()),
            Some(_) => Err(Failure::Refused(format!(
                "the provider {provider} has no model {model}"
            ))),
            None => {
                let known: Vec<_> = all
                    .providers
                    .into_iter()
                    .map(|provider| provider.id)
                    .collect();
                Err(Failure::Refused(format!(
                    "there is no provider {provider}; available: {}",
                    known.join(", ")
                )))
            }
        }
    }
}

/// The rules of a session. The last one that matches wins.
fn ruleset(permissions: Permissions) -> Value {
    let question = json!({"permission": "question", "pattern": "*", "action": "deny"});
    match permissions {
        Permissions::Reject => json!([question]),
        Permissions::Wait => json!([]),
        Permissions::Allow => {
            json!([{"permission": "*", "pattern": "*", "action": "allow"}, question])
        }
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Failure {
    // The message of the parser may quote the text: only the place is told.
    Failure::Unclear(format!(
        "an answer cannot be read (line {}, column {})",
        error.line(),
        error.column()
    ))
}

const DISPOSE: Duration = Duration::from_secs(1);
/// Sessions of a tree that are read at most.
const MAX_SESSIONS: usize = 256;
