use std::time::Duration;

use bizar_testkit::{Api, Hang, ModelServer, Response, Script, Step, Turn, request};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

fn post(model: &ModelServer, path: &str, body: &Value) -> Response {
    request(
        model.port(),
        "POST",
        path,
        &[("x-session-id", "ses_1")],
        Some(body),
        PATIENCE,
    )
    .unwrap()
}

/// The JSON of each event of a stream.
fn events(response: &Response) -> Vec<Value> {
    let text = response.body.as_str().unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

fn script() -> Script {
    Script::new()
        .then(Step::call("read", json!({"path": "a"})).and("read", json!({"path": "b"})))
        .say("the end")
}

#[test]
fn chat_completions_play_a_script_step_by_step() {
    let model = ModelServer::start().unwrap();
    let tools = json!([{"type": "function", "function": {"name": "read"}}]);
    let mut body = json!({"stream": true, "tools": tools, "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": script().prompt("go ")}]}]});
    let first = events(&post(&model, "/v1/chat/completions", &body));
    let calls: Vec<&Value> = first
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        calls[0]["function"],
        json!({"name": "read", "arguments": "{\"path\":\"a\"}"})
    );
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    assert!(
        first
            .iter()
            .any(|event| event["choices"][0]["finish_reason"] == "tool_calls")
    );

    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": []}));
    messages.push(json!({"role": "tool", "content": "contents of a"}));
    messages.push(json!({"role": "tool", "content": "contents of b"}));
    body["stream"] = json!(false);
    let second = post(&model, "/v1/chat/completions", &body).body;
    assert_eq!(second["choices"][0]["message"]["content"], "the end");

    let seen = model.requests_of("ses_1");
    assert_eq!(seen.len(), 2);
    assert_eq!(
        (seen[1].api, seen[1].system().as_str(), seen[1].is_step()),
        (Api::Chat, "be good", true)
    );
    assert_eq!(seen[1].results(), ["contents of a", "contents of b"]);
}

#[test]
fn responses_messages_and_gemini_answer_in_their_shapes() {
    let model = ModelServer::start().unwrap();
    let prompt = script().prompt("go ");

    let body = json!({"stream": true, "instructions": "be good", "tools": [{"type": "function", "name": "read"}], "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}]});
    let kinds: Vec<Value> = events(&post(&model, "/v1/responses", &body))
        .iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(kinds.first().unwrap(), "response.created");
    assert_eq!(kinds.last().unwrap(), "response.completed");
    let mut next = body;
    let input = next["input"].as_array_mut().unwrap();
    input
        .push(json!({"type": "function_call", "name": "read", "call_id": "c1", "arguments": "{}"}));
    input
        .push(json!({"type": "function_call", "name": "read", "call_id": "c2", "arguments": "{}"}));
    input.push(json!({"type": "function_call_output", "call_id": "c1", "output": "one"}));
    input.push(json!({"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]}));
    let answer = events(&post(&model, "/v1/responses", &next));
    assert_eq!(
        answer.last().unwrap()["response"]["output"][0]["content"][0]["text"],
        "the end"
    );
    assert_eq!(model.requests().last().unwrap().results(), ["one", "two"]);

    let body = json!({"stream": true, "system": [{"type": "text", "text": "be good"}], "tools": [{"name": "read"}], "messages": [
        {"role": "user", "content": [{"type": "text", "text": prompt}]}]});
    let answer = events(&post(&model, "/v1/messages?beta=true", &body));
    let inputs: Vec<&Value> = answer
        .iter()
        .map(|event| &event["delta"]["partial_json"])
        .filter(|json| !json.is_null())
        .collect();
    assert_eq!(inputs, ["{\"path\":\"a\"}", "{\"path\":\"b\"}"]);
    assert!(
        answer
            .iter()
            .any(|event| event["delta"]["stop_reason"] == "tool_use")
    );
    let mut next = body;
    let messages = next["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {}}]}));
    messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "one"}]}));
    next["stream"] = json!(false);
    assert_eq!(
        post(&model, "/v1/messages", &next).body["content"],
        json!([{"type": "text", "text": "the end"}])
    );

    let body = json!({"systemInstruction": {"parts": [{"text": "be good"}]}, "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "contents": [{"role": "user", "parts": [{"text": prompt}]}]});
    let answer = events(&post(
        &model,
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        &body,
    ));
    assert_eq!(
        answer[0]["candidates"][0]["content"]["parts"][1]["functionCall"],
        json!({"name": "read", "args": {"path": "b"}})
    );
    let mut next = body;
    let contents = next["contents"].as_array_mut().unwrap();
    contents
        .push(json!({"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}));
    contents.push(json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "one"}}}]}));
    let answer = post(&model, "/v1beta/models/m:generateContent", &next).body;
    assert_eq!(
        answer["candidates"][0]["content"]["parts"][0]["text"],
        "the end"
    );
    let last = model.requests().pop().unwrap();
    assert_eq!(
        (last.system().as_str(), last.results()),
        ("be good", vec!["{\"output\":\"one\"}".to_owned()])
    );
    assert_eq!(
        post(&model, "/v1beta/models/m:countTokens", &json!({})).body["totalTokens"],
        10
    );
}

#[test]
fn failures_hangs_and_summaries_are_scripted_too() {
    let model = ModelServer::start().unwrap();
    let ask = |script: &Script| json!({"tools": [{"type": "function", "function": {"name": "read"}}], "messages": [{"role": "user", "content": script.prompt("")}]});
    let failing = ask(&Script::new().then(Step::say("late").failing(503, 2)));
    let answers: Vec<u16> = (0..3)
        .map(|_| post(&model, "/v1/chat/completions", &failing).status)
        .collect();
    assert_eq!(answers, [503, 503, 200]);

    // A summary carries the script on from where it was.
    let script = script();
    let mut body = ask(&script);
    body["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "assistant", "content": null}));
    body["tools"] = json!([]);
    let summary =
        post(&model, "/v1/chat/completions", &body).body["choices"][0]["message"]["content"]
            .clone();
    body["messages"] =
        json!([{"role": "assistant", "content": summary}, {"role": "user", "content": "go on"}]);
    body["tools"] = ask(&script)["tools"].clone();
    assert_eq!(
        post(&model, "/v1/chat/completions", &body).body["choices"][0]["message"]["content"],
        "the end"
    );
    assert!(matches!(
        model.requests().last().unwrap().turns[0],
        Turn::Assistant(_)
    ));

    let (port, hanging) = (
        model.port(),
        ask(&Script::new().then(Step::say("never").hanging(Hang::Headers))),
    );
    let client = std::thread::spawn(move || {
        request(
            port,
            "POST",
            "/v1/chat/completions",
            &[],
            Some(&hanging),
            PATIENCE,
        )
    });
    while model.requests().len() < 6 {
        std::thread::yield_now();
    }
    drop(model);
    assert!(client.join().unwrap().is_err());
}
