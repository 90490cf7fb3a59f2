use serde_json::{Value, json};

use super::{Conversation, Turn, content, list, named, object, text};
use crate::script::Step;

pub(super) fn read(body: &Value) -> Conversation {
    let mut turns = vec![Turn::System(content(body.get("system")))];
    for message in list(body, "messages") {
        let role = text(message, "role");
        for result in list(message, "content")
            .iter()
            .filter(|block| block["type"] == "tool_result")
        {
            turns.push(Turn::Tool(content(result.get("content"))));
        }
        let said = content(message.get("content"));
        match role.as_str() {
            "assistant" => turns.push(Turn::Assistant(said)),
            "user" if said.trim().is_empty() => {}
            "user" => turns.push(Turn::User(said)),
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
    let mut start = whole(step, ids);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut events = vec![named(&json!({"type": "message_start", "message": start}))];
    for (index, block) in blocks(step, ids).into_iter().enumerate() {
        let (empty, delta) = if block["type"] == "text" {
            (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": block["text"]}),
            )
        } else {
            let mut empty = block.clone();
            empty["input"] = json!({});
            (
                empty,
                json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
            )
        };
        events.push(named(
            &json!({"type": "content_block_start", "index": index, "content_block": empty}),
        ));
        events.push(named(
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        ));
        events.push(named(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    events.push(named(&json!({"type": "message_delta", "delta": {"stop_reason": stop(step), "stop_sequence": null},
        "usage": {"output_tokens": 5}})));
    events.push(named(&json!({"type": "message_stop"})));
    events
}

pub(super) fn whole(step: &Step, ids: &[String]) -> Value {
    // Claude Code takes messages with one id for one message.
    let id = ids.first().map_or("msg_last", String::as_str);
    json!({"id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "m", "content": blocks(step, ids),
        "stop_reason": stop(step), "stop_sequence": null, "usage": {"input_tokens": step.tokens, "output_tokens": 5}})
}

fn blocks(step: &Step, ids: &[String]) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !step.text.is_empty() {
        blocks.push(json!({"type": "text", "text": step.text}));
    }
    blocks.extend(
        step.calls
            .iter()
            .zip(ids)
            .map(|(call, id)| json!({"type": "tool_use", "id": id, "name": call.tool, "input": object(&call.args)})),
    );
    blocks
}

fn stop(step: &Step) -> &'static str {
    if step.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}
