//! `/v1/responses` as the conversation that `/v1/chat/completions` takes. Checks only what that
//! cannot see.

use super::{PreparedRequest, prepare_chat, turn};
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{
    ChatRequest, Function, InputItem, ItemContent, ItemPart, Message, ReasoningOptions,
    ResponseFormat, ResponsesInput, ResponsesRequest, ResponsesTool, SamplingFields, Schema,
    TextFormat, Tool,
};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

/// A request with what is needed to answer and to keep it.
pub(crate) struct PreparedResponse {
    pub(crate) prepared: PreparedRequest,
    /// The conversation without its system prompt.
    pub(crate) turns: Vec<Message>,
    /// What was asked, for the response to repeat; its input is in the turns.
    pub(crate) request: ResponsesRequest,
}

/// Checks a conversation and turns it into tokens.
pub(crate) fn prepare_response(
    app: &App,
    mut request: ResponsesRequest,
) -> Result<PreparedResponse, ApiError> {
    refuse_unsupported(&request)?;
    let input = std::mem::replace(&mut request.input, ResponsesInput::Text(String::new()));
    let mut turns = earlier_turns(app, request.previous_response_id.as_deref())?;
    add_turns(&mut turns, input)?;
    if turns.is_empty() {
        return Err(ApiError::invalid("input", "there is nothing to answer in it"));
    }
    let mut messages = Vec::with_capacity(turns.len() + 1);
    messages.extend(request.instructions.clone().map(|text| turn("system", text)));
    let before = messages.len();
    messages.append(&mut turns);
    let mut chat = chat(&request, messages)?;
    let prepared = prepare_chat(app, &chat)?;
    let turns = chat.messages.split_off(before);
    Ok(PreparedResponse { prepared, turns, request })
}

fn refuse_unsupported(request: &ResponsesRequest) -> Result<(), ApiError> {
    if request.background == Some(true) {
        return Err(ApiError::invalid("background", "`background` is not supported"));
    }
    if request.conversation.is_some() {
        let message = "`conversation` is not supported; `previous_response_id` continues one";
        return Err(ApiError::invalid("conversation", message));
    }
    if request.prompt.is_some() {
        return Err(ApiError::invalid("prompt", "`prompt` is not supported; send `input`"));
    }
    Ok(())
}

fn earlier_turns(app: &App, id: Option<&str>) -> Result<Vec<Message>, ApiError> {
    let Some(id) = id else { return Ok(Vec::new()) };
    let kept = app.kept.get(id).and_then(|kept| serde_json::from_str(&kept.turns).ok());
    kept.ok_or_else(|| {
        let message = "there is no such `previous_response_id`: it was never kept, or not any more; \
                       send the whole conversation as `input`";
        ApiError::new(StatusCode::BAD_REQUEST, "previous_response_not_found", message)
    })
}

fn chat(request: &ResponsesRequest, messages: Vec<Message>) -> Result<ChatRequest, ApiError> {
    let tools = request.tools.as_ref();
    let effort = request.reasoning.as_ref().and_then(|ReasoningOptions { effort }| effort.clone());
    let thinks_not = effort.as_deref() == Some("none");
    let format = request.text.as_ref().and_then(|text| text.format.as_ref());
    Ok(ChatRequest {
        model: request.model.clone(),
        messages,
        max_tokens: request.max_output_tokens,
        tools: tools.map(|tools| tools.iter().map(tool).collect()).transpose()?,
        tool_choice: request.tool_choice.as_ref().map(choice),
        response_format: format.map(response_format).transpose()?,
        reasoning_effort: effort,
        chat_template_kwargs: thinks_not
            .then(|| Map::from_iter([("enable_thinking".into(), false.into())])),
        sampling: SamplingFields {
            temperature: request.temperature,
            top_p: request.top_p,
            stream: request.stream,
            ..SamplingFields::default()
        },
        ..ChatRequest::default()
    })
}

fn response_format(format: &TextFormat) -> Result<ResponseFormat, ApiError> {
    match (format.r#type.as_str(), &format.schema) {
        ("text", _) => Ok(ResponseFormat::Text),
        ("json_object", _) => Ok(ResponseFormat::JsonObject),
        ("json_schema", Some(schema)) => {
            let schema = schema.clone().into();
            Ok(ResponseFormat::JsonSchema { json_schema: Schema { schema } })
        }
        _ => {
            let message = "a format must be text, json_object, or json_schema with a schema";
            Err(ApiError::invalid("text", message))
        }
    }
}

fn tool(tool: &ResponsesTool) -> Result<Tool, ApiError> {
    if tool.r#type != "function" {
        let kind: String = tool.r#type.chars().take(40).collect();
        let message =
            format!("tools of type `{kind}` are not supported: this server runs no tools");
        return Err(ApiError::invalid("tools", message));
    }
    let ResponsesTool { name, description, parameters, .. } = tool.clone();
    let name = name.ok_or_else(|| ApiError::invalid("tools", "a function must have a name"))?;
    Ok(Tool { r#type: "function".into(), function: Function { name, description, parameters } })
}

/// One function is named at another place here.
fn choice(choice: &Value) -> Value {
    match choice.get("name") {
        Some(name) => json!({ "type": "function", "function": { "name": name } }),
        None => choice.clone(),
    }
}

fn add_turns(turns: &mut Vec<Message>, input: ResponsesInput) -> Result<(), ApiError> {
    let items = match input {
        ResponsesInput::Text(text) => {
            turns.push(turn("user", text));
            return Ok(());
        }
        ResponsesInput::Items(items) => items,
    };
    for item in items {
        match item.r#type.as_deref() {
            None | Some("message") => add_message(turns, item)?,
            Some("function_call") => {
                let call = call(item)?;
                of_assistant(turns, |_| true).tool_calls.get_or_insert_default().push(call);
            }
            Some("function_call_output") => {
                let id = item.call_id.ok_or_else(|| missing("call_id", "function_call_output"))?;
                let output = text(item.output.unwrap_or(ItemContent::Text(String::new())))?;
                turns.push(Message { tool_call_id: Some(id), ..turn("tool", output) });
            }
            Some("reasoning") => add_thoughts(turns, item)?,
            Some(other) => {
                let kind: String = other.chars().take(40).collect();
                let message = format!("items of type `{kind}` are not supported");
                return Err(ApiError::invalid("input", message));
            }
        }
    }
    Ok(())
}

fn add_message(turns: &mut Vec<Message>, item: InputItem) -> Result<(), ApiError> {
    let role = item.role.ok_or_else(|| missing("role", "message"))?;
    let said = text(item.content.ok_or_else(|| missing("content", "message"))?)?;
    if role == "assistant" {
        let silent = |turn: &Message| turn.content.is_none() && turn.tool_calls.is_none();
        of_assistant(turns, silent).content = Some(said.into());
    } else {
        turns.push(turn(&role, said));
    }
    Ok(())
}

fn add_thoughts(turns: &mut Vec<Message>, item: InputItem) -> Result<(), ApiError> {
    let content = item.content.map(text).transpose()?.filter(|text| !text.is_empty());
    let thoughts = match content {
        Some(thoughts) => thoughts,
        None => text(ItemContent::Parts(item.summary.unwrap_or_default()))?,
    };
    if !thoughts.is_empty() {
        turns.push(Message {
            role: "assistant".into(),
            reasoning_content: Some(thoughts),
            ..Message::default()
        });
    }
    Ok(())
}

/// The assistant's turn that goes on, if it `may`; else a new one. Thoughts, a text and the calls
/// after it are items of their own here, and one turn to templates.
fn of_assistant(turns: &mut Vec<Message>, may: impl Fn(&Message) -> bool) -> &mut Message {
    let goes_on = turns.last().is_some_and(|last| last.role == "assistant" && may(last));
    if !goes_on {
        turns.push(Message { role: "assistant".into(), ..Message::default() });
    }
    let last = turns.len() - 1;
    &mut turns[last]
}

fn call(item: InputItem) -> Result<Value, ApiError> {
    let missing = |field| missing(field, "function_call");
    let id = item.call_id.ok_or_else(|| missing("call_id"))?;
    let name = item.name.ok_or_else(|| missing("name"))?;
    let arguments = item.arguments.ok_or_else(|| missing("arguments"))?;
    let function = json!({ "name": name, "arguments": arguments });
    Ok(json!({ "id": id, "type": "function", "function": function }))
}

fn missing(field: &str, kind: &str) -> ApiError {
    ApiError::invalid("input", format!("an item of type `{kind}` must have `{field}`"))
}

fn text(content: ItemContent) -> Result<String, ApiError> {
    const KINDS: [&str; 5] =
        ["input_text", "output_text", "text", "reasoning_text", "summary_text"];
    let part = |part: ItemPart| match part.text {
        Some(text) if KINDS.contains(&part.r#type.as_str()) => Ok(text),
        _ => Err(ApiError::invalid("input", "only parts of text are supported")),
    };
    match content {
        ItemContent::Text(text) => Ok(text),
        ItemContent::Parts(parts) => parts.into_iter().map(part).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(items: Value) -> Result<Value, ApiError> {
        let mut turns = Vec::new();
        add_turns(&mut turns, serde_json::from_value(items).unwrap())?;
        Ok(json!(turns))
    }

    #[test]
    fn items_of_one_answer_are_one_turn() {
        let items = json!([
            { "role": "user", "content": [{ "type": "input_text", "text": "Weather?" }] },
            { "type": "reasoning", "id": "rs_1", "summary": [], "content": [{ "type": "reasoning_text", "text": "Hm." }] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" },
            { "type": "function_call", "call_id": "d", "name": "f", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c", "output": "sunny" },
            { "role": "assistant", "content": "Sunny." },
            { "role": "assistant", "content": "Very." },
        ]);
        let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let expected = json!([
            { "role": "user", "content": "Weather?" },
            { "role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [call("c"), call("d")] },
            { "role": "tool", "content": "sunny", "tool_call_id": "c" },
            { "role": "assistant", "content": "Sunny." },
            { "role": "assistant", "content": "Very." },
        ]);
        assert_eq!(turns(items).unwrap(), expected);
        assert_eq!(turns(json!("Hi")).unwrap(), json!([{ "role": "user", "content": "Hi" }]));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for wrong in [
            json!([{ "type": "item_reference", "id": "x" }]),
            json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": "x" }] }]),
            json!([{ "type": "function_call", "name": "f", "arguments": "{}" }]),
            json!([{ "type": "message", "content": "who?" }]),
        ] {
            assert!(turns(wrong.clone()).is_err(), "{wrong}");
        }
        let search = json!({ "type": "web_search" });
        assert!(tool(&serde_json::from_value(search).unwrap()).is_err());
    }
}
