//! What the guard is told about a call besides the call: opencode spreads it over several events.

use std::collections::HashMap;
use std::mem;

use bizar_guard::Verdict;

/// A session that was not idle since it was first heard of.
#[derive(Default)]
pub(crate) struct Session {
    /// The verdict of the last call.
    last: Option<Verdict>,
    /// The messages that ask for calls, by call, until these have ended.
    messages: HashMap<String, String>,
    /// Requests of the agent so far.
    steps: u64,
    /// The next request is a compaction.
    is_compacting: bool,
}

impl Session {
    /// A message asks for a call. A provider may use the name of a call again in a later message.
    pub(crate) fn call_appeared(&mut self, call: &str, message: &str) {
        self.messages.insert(call.to_owned(), message.to_owned());
    }

    /// The message that asks for a call that is about to be made. What came of the same request to the model is one
    /// message, if none was named.
    pub(crate) fn message(&self, call: &str) -> String {
        let named = self.messages.get(call).cloned();
        named.unwrap_or_else(|| format!("step {}", self.steps))
    }

    /// A call has ended; false if it was one of the same name in an earlier message.
    pub(crate) fn call_ended(&mut self, call: &str, message: Option<&str>) -> bool {
        let is_other = |named: &String| message.is_some_and(|message| message != named);
        if self.messages.get(call).is_some_and(is_other) {
            return false;
        }
        self.messages.remove(call);
        true
    }

    /// Takes in the verdict of a call; true if it is above the one before.
    pub(crate) fn judged(&mut self, verdict: Verdict) -> bool {
        let before = self.last.replace(verdict);
        verdict > before.unwrap_or(Verdict::Allow)
    }

    /// Whether a call was judged.
    pub(crate) fn has_calls(&self) -> bool {
        self.last.is_some()
    }

    pub(crate) fn compaction_begins(&mut self) {
        self.is_compacting = true;
    }

    /// Takes in a request to the model, of which the JSON of its system text is known or how that begins. False if it
    /// is no step of the agent, which then knows nothing of it.
    pub(crate) fn request(&mut self, system: &str) -> bool {
        let begins = |words: &&str| system.trim_start_matches('"').starts_with(words);
        if TITLES.iter().any(begins) {
            return false;
        }
        let is_compaction = mem::take(&mut self.is_compacting) || begins(&COMPACTION);
        self.steps += u64::from(!is_compaction);
        !is_compaction
    }
}

const TITLES: [&str; 2] = [
    "You are a title generator",
    "Summarize what was done in this conversation",
];
const COMPACTION: &str = "You are a context summarization agent";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_and_compactions_are_no_steps() {
        let mut session = Session::default();
        assert!(session.request("\"You are a coding agent"));
        session.compaction_begins();
        // The title is made beside the compaction, which has not begun yet.
        assert!(!session.request("\"You are a title generator. You"));
        assert!(!session.request("\"whatever the user wants it to be"));
        assert!(!session.request("\"You are a context summarization agent"));
        assert!(!session.request("\"Summarize what was done in this conversation"));
        assert!(session.request("null"));
        assert_eq!(session.message("c"), "step 2");
    }

    #[test]
    fn the_name_of_a_call_may_come_again_in_a_later_message() {
        let mut session = Session::default();
        session.call_appeared("c", "m1");
        assert_eq!(session.message("c"), "m1");
        assert!(session.call_ended("c", None));
        assert_eq!(session.message("c"), "step 0");
        session.call_appeared("c", "m2");
        assert!(!session.call_ended("c", Some("m1")));
        assert_eq!(session.message("c"), "m2");
        assert!(session.call_ended("c", Some("m2")));
        // Of a call that appeared before this program was started.
        assert!(session.call_ended("d", Some("m1")));
    }
}
