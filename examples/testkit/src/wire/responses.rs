use serde_json::{Value, json};

use super::{Conversation, Turn, arguments, content, list, named, text};
use crate::script::Step;

pub(super) fn read(body: &Value) -> Conversation {
    let mut turns = vec![Turn::System(text(body, "instructions"))];
    if let Some(input) = body["input"].as_str() {
        turns.push(Turn::User(input.to_owned()));
    }
    for item in list(body, "input") {
        let said = content(item.get("content"));
        match (text(item, "type").as_str(), text(item, "role").as_str()) {
            (kind, _) if kind.ends_with("_output") => {
                turns.push(Turn::Tool(content(item.get("output"))))
            }
            (kind, _) if kind.ends_with("_call") => turns.push(Turn::Assistant(String::new())),
            ("reasoning", _) => {}
            (_, "assistant") => turns.push(Turn::Assistant(said)),
            (_, "user") => turns.push(Turn::User(said)),
            _ => turns.push(Turn::System(said)),
        }
    }
    Conversation {
        turns,
        tools: list(body, "tools")
            .iter()
            .map(|tool| text(tool, "name"))
            .collect(),
        stream: body["stream"] == true,
    }
}

pub(super) fn events(step: &Step, ids: &[String]) -> Vec<String> {
    let mut events = vec![named(
        &json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
    )];
    for (index, item) in items(step, ids).into_iter().enumerate() {
        events.push(named(
            &json!({"type": "response.output_item.added", "output_index": index, "item": item}),
        ));
        if item["type"] == "message" {
            events.push(named(
                &json!({"type": "response.output_text.delta", "output_index": index,
                "item_id": item["id"], "content_index": 0, "delta": step.text}),
            ));
        }
        events.push(named(
            &json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ));
    }
    events.push(named(
        &json!({"type": "response.completed", "response": whole(step, ids)}),
    ));
    events
}

pub(super) fn whole(step: &Step, ids: &[String]) -> Value {
    json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items(step, ids),
        "usage": {"input_tokens": step.tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": step.tokens + 5}})
}

fn items(step: &Step, ids: &[String]) -> Vec<Value> {
    let mut items = Vec::new();
    if !step.text.is_empty() {
        items.push(
            json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": step.text, "annotations": []}]}),
        );
    }
    items.extend(step.calls.iter().zip(ids).map(|(call, id)| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": call.tool,
            "arguments": arguments(&call.args), "status": "completed"})
    }));
    items
}
