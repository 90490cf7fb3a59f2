use serde_json::{Value, json};

use super::{Conversation, Turn, content, list, object, text};
use crate::script::Step;

pub(super) fn read(path: &str, body: &Value) -> Conversation {
    let mut turns = vec![Turn::System(content(
        body["systemInstruction"].get("parts"),
    ))];
    for message in list(body, "contents") {
        let parts = message.get("parts");
        for answer in list(message, "parts")
            .iter()
            .filter_map(|part| part.get("functionResponse"))
        {
            turns.push(Turn::Tool(answer["response"].to_string()));
        }
        let said = content(parts);
        match text(message, "role").as_str() {
            "model" => turns.push(Turn::Assistant(said)),
            _ if said.trim().is_empty() => {}
            _ => turns.push(Turn::User(said)),
        }
    }
    let tools = list(body, "tools")
        .iter()
        .flat_map(|group| list(group, "functionDeclarations"))
        .map(|tool| text(tool, "name"))
        .collect();
    Conversation {
        turns,
        tools,
        stream: path.contains(":streamGenerateContent"),
    }
}

pub(super) fn whole(step: &Step) -> Value {
    let mut parts = Vec::new();
    if !step.text.is_empty() || step.calls.is_empty() {
        parts.push(json!({"text": step.text}));
    }
    parts.extend(
        step.calls
            .iter()
            .map(|call| json!({"functionCall": {"name": call.tool, "args": object(&call.args)}})),
    );
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": step.tokens, "candidatesTokenCount": 5, "totalTokenCount": step.tokens + 5},
        "modelVersion": "m", "responseId": "r"})
}
