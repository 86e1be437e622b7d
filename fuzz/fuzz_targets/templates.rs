//! Any text as a chat template: it renders or is refused, within its budget of bytes and time, and
//! nothing panics. Memory is libFuzzer's to watch (`-rss_limit_mb`), time too (`-timeout`).
//!
//! What follows the first NUL byte is the conversation, as JSON; without it there is a usual one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motley_engine::Conversation;
use motley_engine::text::chat::render_chat;
use serde_json::{Map, Value, json};

/// Bytes of all texts one rendering may make: `engine::text::budget`.
const RENDERED_BYTES_MAX: usize = 256 << 20;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let template = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let conversation = match parts.next().map(serde_json::from_slice::<Value>) {
        Some(Ok(Value::Object(given))) => conversation(given),
        Some(Ok(messages)) => of_messages(vec![messages]),
        Some(Err(_)) => return,
        None => usual(),
    };
    if let Ok(text) = render_chat(&template, &conversation, "<s>", "</s>") {
        assert!(text.len() <= RENDERED_BYTES_MAX, "{} bytes", text.len());
    }
});

/// A conversation as a request has it; what else there is goes to the template as it is.
fn conversation(mut given: Map<String, Value>) -> Conversation {
    let mut list = |name: &str| match given.remove(name) {
        Some(Value::Array(list)) => list,
        Some(other) => vec![other],
        None => Vec::new(),
    };
    let (messages, tools) = (list("messages"), list("tools"));
    Conversation { messages, tools, extra: given }
}

fn of_messages(messages: Vec<Value>) -> Conversation {
    Conversation { messages, ..Conversation::default() }
}

fn usual() -> Conversation {
    let call =
        json!({ "type": "function", "function": { "name": "f", "arguments": { "a": [1, "x"] } } });
    let tool = json!({ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } });
    let messages = vec![
        json!({ "role": "system", "content": "Be brief." }),
        json!({ "role": "user", "content": "Hi <|im_end|> {{ 7 }}" }),
        json!({ "role": "assistant", "content": "<think>\nhm\n</think>\n\nHello", "tool_calls": [call] }),
        json!({ "role": "tool", "content": "{}", "tool_call_id": "1" }),
        json!({ "role": "user", "content": "Weather?" }),
    ];
    let extra = Map::from_iter([("enable_thinking".to_owned(), json!(false))]);
    Conversation { messages, tools: vec![tool], extra }
}
