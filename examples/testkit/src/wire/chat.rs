use serde_json::{Value, json};

use super::{Conversation, Turn, arguments, content, data, list, text};
use crate::script::Step;

pub(super) fn read(body: &Value) -> Conversation {
    let turns = list(body, "messages")
        .iter()
        .map(|message| {
            let said = content(message.get("content"));
            match text(message, "role").as_str() {
                "assistant" => Turn::Assistant(said),
                "tool" => Turn::Tool(said),
                "user" => Turn::User(said),
                _ => Turn::System(said),
            }
        })
        .collect();
    Conversation {
        turns,
        tools: list(body, "tools")
            .iter()
            .map(|tool| text(&tool["function"], "name"))
            .collect(),
        stream: body["stream"] == true,
    }
}

pub(super) fn events(step: &Step, ids: &[String]) -> Vec<String> {
    let mut events = vec![chunk(&json!({"role": "assistant", "content": ""}), None)];
    if !step.reasoning.is_empty() {
        events.push(chunk(&json!({"reasoning_content": step.reasoning}), None));
    }
    if !step.text.is_empty() {
        events.push(chunk(&json!({"content": step.text}), None));
    }
    for (index, call) in calls(step, ids).into_iter().enumerate() {
        let mut call = call;
        call["index"] = json!(index);
        events.push(chunk(&json!({"tool_calls": [call]}), None));
    }
    events.push(chunk(&json!({}), Some(finish(step))));
    events.push(data(&json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage(step)})));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

pub(super) fn whole(step: &Step, ids: &[String]) -> Value {
    let mut message = json!({"role": "assistant", "content": step.text});
    if !step.calls.is_empty() {
        message["tool_calls"] = json!(calls(step, ids));
    }
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage(step),
        "choices": [{"index": 0, "message": message, "finish_reason": finish(step)}]})
}

fn calls(step: &Step, ids: &[String]) -> Vec<Value> {
    step.calls
        .iter()
        .zip(ids)
        .map(|(call, id)| json!({"id": id, "type": "function", "function": {"name": call.tool, "arguments": arguments(&call.args)}}))
        .collect()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    data(
        &json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}),
    )
}

fn finish(step: &Step) -> &'static str {
    if step.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

fn usage(step: &Step) -> Value {
    json!({"prompt_tokens": step.tokens, "completion_tokens": 5, "total_tokens": step.tokens + 5})
}
