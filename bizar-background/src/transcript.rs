//! What a session has said, and whether its last answer is whole.

use serde::Serialize;

use crate::event::{MessageInfo, Part, Role, ServerError, wire};

/// The messages of one session, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The messages.
    pub messages: Vec<Message>,
}

/// One message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// Who, when, why it ended.
    pub info: MessageInfo,
    /// Its parts in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A whole message that is one text.
    #[must_use]
    pub fn whole(id: &str, role: Role, text: &str) -> Self {
        Self {
            info: MessageInfo {
                id: id.into(),
                role,
                is_completed: true,
                finish: Some("stop".into()),
                ..MessageInfo::default()
            },
            parts: vec![Part::Text {
                text: text.into(),
                is_hidden: false,
            }],
        }
    }
}

/// The text of a run.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    /// Everything the model wrote: messages are separated by a blank line.
    pub result: String,
    /// What it wrote in its last message.
    pub final_text: String,
    /// The text was longer than the limit and was cut at its end.
    pub is_truncated: bool,
}

/// How the last answer of a session stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Answer {
    /// Whole. `cut`: the provider stopped it early.
    Complete { cut: Option<&'static str> },
    /// There is no message of the model.
    Missing,
    /// Not whole, or not yet.
    Incomplete(Gap),
    /// The model's last message ended in an error.
    Failed(ServerError),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Gap {
    /// The last message is a user's.
    Unanswered,
    /// The message has no end.
    Open,
    /// The model asked for tools and was not asked again.
    ToolCalls,
    /// The provider stopped without a reason and without a text.
    Nothing,
}

impl Transcript {
    /// Reads the answer of `GET /session/{id}/message`.
    ///
    /// # Errors
    /// The text is not JSON of that shape.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let messages: Vec<wire::Message<'_>> = serde_json::from_str(json)?;
        let messages = messages.into_iter().map(|message| Message {
            info: message.info.into(),
            parts: message.parts.into_iter().map(Part::from).collect(),
        });
        Ok(Self {
            messages: messages.collect(),
        })
    }

    /// The text of the model's messages, at most `limit` bytes of it.
    ///
    /// Synthetic and ignored parts and summaries are left out, and so is what a failed
    /// attempt of a step had written before the step was begun again.
    #[must_use]
    pub fn text(&self, limit: usize) -> Text {
        let mut text = Text::default();
        for message in self.answers() {
            let said = message.text();
            if said.is_empty() {
                continue;
            }
            if !text.result.is_empty() {
                text.result.push_str("\n\n");
            }
            text.result.push_str(&said);
            text.final_text = said;
        }
        text.is_truncated = cut(&mut text.result, limit) | cut(&mut text.final_text, limit);
        text
    }

    /// The messages of the model, without summaries.
    pub(crate) fn answers(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.messages
            .iter()
            .filter(|message| message.info.role == Role::Assistant && !message.info.is_summary)
    }

    pub(crate) fn has_prompt(&self) -> bool {
        self.messages
            .iter()
            .any(|message| message.info.role == Role::User)
    }

    pub(crate) fn answer(&self) -> Answer {
        let Some(last) = self.answers().next_back() else {
            return Answer::Missing;
        };
        if let Some(error) = &last.info.error {
            return Answer::Failed(error.clone());
        }
        if self
            .messages
            .last()
            .is_some_and(|message| message.info.role == Role::User)
        {
            return Answer::Incomplete(Gap::Unanswered);
        }
        if !last.info.is_completed {
            return Answer::Incomplete(Gap::Open);
        }
        match last.info.finish.as_deref() {
            Some("tool-calls") => Answer::Incomplete(Gap::ToolCalls),
            None | Some("unknown") if last.text().is_empty() => Answer::Incomplete(Gap::Nothing),
            Some("length") => Answer::Complete {
                cut: Some("the last answer was cut at the model's output limit"),
            },
            Some("content-filter") => Answer::Complete {
                cut: Some("the last answer was cut by a content filter"),
            },
            _ => Answer::Complete { cut: None },
        }
    }
}

impl Message {
    fn text(&self) -> String {
        let mut text = String::new();
        // Where the step at hand begins; a step that is begun again has not ended.
        let mut step = 0;
        for part in &self.parts {
            match part {
                Part::StepStart => text.truncate(step),
                Part::StepFinish => step = text.len(),
                Part::Text {
                    text: piece,
                    is_hidden: false,
                } => text.push_str(piece),
                _ => {}
            }
        }
        text
    }
}

fn cut(text: &mut String, mut limit: usize) -> bool {
    if text.len() <= limit {
        return false;
    }
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    text.truncate(limit);
    text.push_str("\n[cut]");
    true
}
