//! `/v1/messages` as the conversation that `/v1/chat/completions` takes. Checks only what that
//! cannot see.

use super::{PreparedRequest, prepare_chat, turn};
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{
    AnthropicContent, AnthropicConversation, AnthropicMessage, AnthropicRole, AnthropicText,
    AnthropicTool, AnthropicToolChoice, ChatRequest, Function, InputBlock, Message,
    MessagesRequest, OutputSchema, ResponseFormat, SamplingFields, Schema, Stop, TextBlock,
    Thinking, Tool,
};
use serde_json::{Map, Value, json};

/// A client puts a line that begins so, and changes with every request, before its system prompt.
/// In a prompt it would keep every request from beginning where an earlier one ended.
const BILLING_LINE: &str = "x-anthropic-billing-header:";

/// Checks a conversation and turns it into tokens.
pub(crate) fn prepare_messages(
    app: &App,
    request: MessagesRequest,
) -> Result<PreparedRequest, ApiError> {
    let MessagesRequest { max_tokens, conversation, stop_sequences, .. } = request;
    let sampling = SamplingFields {
        temperature: request.temperature,
        top_p: request.top_p,
        top_k: request.top_k,
        stop: stop_sequences.map(Stop::Many),
        stream: request.stream,
        ..SamplingFields::default()
    };
    let chat = ChatRequest { max_tokens: Some(max_tokens), sampling, ..chat(conversation)? };
    prepare_chat(app, &chat)
}

/// Tokens of the prompt that the conversation would become.
pub(crate) fn count_tokens(
    app: &App,
    conversation: AnthropicConversation,
) -> Result<usize, ApiError> {
    let prepared = prepare_chat(app, &chat(conversation)?)?;
    Ok(prepared.asks.first().map_or(0, |ask| ask.prompt.len()))
}

fn chat(conversation: AnthropicConversation) -> Result<ChatRequest, ApiError> {
    let AnthropicConversation { model, messages, system, tools, tool_choice, .. } = conversation;
    let (thinking, output) = (conversation.thinking, conversation.output_config);
    let mut turns = Vec::new();
    if let Some(text) = system.map(system_text).transpose()?.filter(|text| !text.is_empty()) {
        turns.push(turn("system", text));
    }
    match messages.last() {
        None => return Err(ApiError::invalid("messages", "there is no message in it")),
        Some(last) if last.role == AnthropicRole::Assistant => {
            let message =
                "the last message must be the user's: answers cannot be begun for the model";
            return Err(ApiError::invalid("messages", message));
        }
        Some(_) => {}
    }
    for message in messages {
        add_turns(&mut turns, message)?;
    }
    let (effort, format) = output.map_or((None, None), |output| (output.effort, output.format));
    Ok(ChatRequest {
        model,
        messages: turns,
        tools: tools.map(|tools| tools.into_iter().map(tool).collect()).transpose()?,
        tool_choice: tool_choice.map(choice).transpose()?,
        response_format: format.map(response_format).transpose()?,
        reasoning_effort: effort,
        chat_template_kwargs: thinking.map(template_variables).transpose()?.flatten(),
        ..ChatRequest::default()
    })
}

fn system_text(system: AnthropicText) -> Result<String, ApiError> {
    if let AnthropicText::Blocks(blocks) = &system
        && let Some(TextBlock { text: Some(text), .. }) = blocks.first()
        && text.starts_with(BILLING_LINE)
    {
        return joined(&blocks[1..], "system");
    }
    text(system, "system")
}

/// Text of a text, or of blocks with a line break between two.
fn text(text: AnthropicText, param: &'static str) -> Result<String, ApiError> {
    match text {
        AnthropicText::Text(text) => Ok(text),
        AnthropicText::Blocks(blocks) => joined(&blocks, param),
    }
}

fn joined(blocks: &[TextBlock], param: &'static str) -> Result<String, ApiError> {
    let text = |block: &TextBlock| match &block.text {
        Some(text) if block.r#type == "text" => Ok(text.clone()),
        _ => Err(ApiError::invalid(param, "only blocks of text are supported here")),
    };
    let texts: Vec<String> = blocks.iter().map(text).collect::<Result<_, _>>()?;
    Ok(texts.join("\n"))
}

/// One message may be several turns: results of calls are turns of their own.
fn add_turns(turns: &mut Vec<Message>, message: AnthropicMessage) -> Result<(), ApiError> {
    let role = match message.role {
        AnthropicRole::User => "user",
        AnthropicRole::Assistant => "assistant",
        AnthropicRole::System => "system",
    };
    let blocks = match message.content {
        AnthropicContent::Text(text) => {
            turns.push(turn(role, text));
            return Ok(());
        }
        AnthropicContent::Blocks(blocks) => blocks,
    };
    let (mut texts, mut calls, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block.r#type.as_str() {
            "text" => texts.push(block.text.ok_or_else(|| missing("text"))?),
            "tool_use" => calls.push(call(block)?),
            "tool_result" => turns.push(result(block)?),
            "thinking" => thoughts.push(block.thinking.ok_or_else(|| missing("thinking"))?),
            "redacted_thinking" => {}
            other => {
                let kind: String = other.chars().take(40).collect();
                let message = format!("blocks of type `{kind}` are not supported");
                return Err(ApiError::invalid("messages", message));
            }
        }
    }
    let said_something = !(texts.is_empty() && calls.is_empty() && thoughts.is_empty());
    if said_something {
        let some = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join("\n"));
        turns.push(Message {
            tool_calls: (!calls.is_empty()).then_some(calls),
            reasoning_content: some(thoughts),
            ..turn(role, texts.join("\n"))
        });
    }
    Ok(())
}

fn call(block: InputBlock) -> Result<Value, ApiError> {
    let id = block.id.ok_or_else(|| missing("id"))?;
    let name = block.name.ok_or_else(|| missing("name"))?;
    let input = block.input.ok_or_else(|| missing("input"))?;
    Ok(json!({ "id": id, "type": "function", "function": { "name": name, "arguments": input } }))
}

fn result(block: InputBlock) -> Result<Message, ApiError> {
    let id = block.tool_use_id.ok_or_else(|| missing("tool_use_id"))?;
    let said = block.content.map(|content| text(content, "messages")).transpose()?;
    Ok(Message { tool_call_id: Some(id), ..turn("tool", said.unwrap_or_default()) })
}

fn missing(field: &str) -> ApiError {
    ApiError::invalid("messages", format!("a block lacks its `{field}`"))
}

fn response_format(format: OutputSchema) -> Result<ResponseFormat, ApiError> {
    if format.r#type != "json_schema" {
        let message = "the only format is `json_schema`";
        return Err(ApiError::invalid("output_config", message));
    }
    Ok(ResponseFormat::JsonSchema { json_schema: Schema { schema: format.schema.into() } })
}

fn tool(tool: AnthropicTool) -> Result<Tool, ApiError> {
    if let Some(kind) = tool.r#type.filter(|kind| kind != "custom") {
        let kind: String = kind.chars().take(40).collect();
        let message =
            format!("tools of type `{kind}` are not supported: this server runs no tools");
        return Err(ApiError::invalid("tools", message));
    }
    let AnthropicTool { name, description, input_schema, .. } = tool;
    let function = Function { name, description, parameters: input_schema };
    Ok(Tool { r#type: "function".into(), function })
}

fn choice(choice: AnthropicToolChoice) -> Result<Value, ApiError> {
    match (choice.r#type.as_str(), choice.name) {
        ("auto", _) => Ok("auto".into()),
        ("any", _) => Ok("required".into()),
        ("none", _) => Ok("none".into()),
        ("tool", Some(name)) => Ok(json!({ "type": "function", "function": { "name": name } })),
        _ => {
            let message = "`tool_choice` must be auto, any, none, or tool with a name";
            Err(ApiError::invalid("tool_choice", message))
        }
    }
}

fn template_variables(thinking: Thinking) -> Result<Option<Map<String, Value>>, ApiError> {
    let enable = match thinking.r#type.as_str() {
        "enabled" => true,
        "disabled" => false,
        "adaptive" | "between_tools" => return Ok(None),
        _ => {
            let message = "`thinking` must be enabled, disabled, adaptive or between_tools";
            return Err(ApiError::invalid("thinking", message));
        }
    };
    Ok(Some(Map::from_iter([("enable_thinking".into(), enable.into())])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: Value) -> Result<ChatRequest, ApiError> {
        chat(serde_json::from_value(json).unwrap())
    }

    fn user(content: Value) -> Value {
        json!({ "role": "user", "content": content })
    }

    #[test]
    fn blocks_become_turns_calls_and_results() {
        let chat = read(json!({
            "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }],
            "messages": [
                user(json!("Weather?")),
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "Hm.", "signature": "" },
                    { "type": "text", "text": "I look." },
                    { "type": "tool_use", "id": "t1", "name": "f", "input": { "a": 1 } },
                ] },
                user(json!([
                    { "type": "tool_result", "tool_use_id": "t1", "content": [{ "type": "text", "text": "sunny" }] },
                    { "type": "text", "text": "So?" },
                ])),
            ],
        }));
        let turns = json!(chat.unwrap().messages);
        let expected = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Weather?" },
            { "role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
                { "id": "t1", "type": "function", "function": { "name": "f", "arguments": { "a": 1 } } },
            ] },
            { "role": "tool", "content": "sunny", "tool_call_id": "t1" },
            { "role": "user", "content": "So?" },
        ]);
        assert_eq!(turns, expected);
    }

    #[test]
    fn a_changing_first_line_stays_out_of_the_prompt() {
        let with = |first: &str| {
            let block = |text: &str| json!({ "type": "text", "text": text });
            let system = json!([block(first), block("You are helpful.")]);
            let chat = read(json!({ "system": system, "messages": [user(json!("Hi"))] })).unwrap();
            chat.messages[0].content.clone().unwrap()
        };
        assert_eq!(with("x-anthropic-billing-header: cc_version=1; cch=abc;"), "You are helpful.");
        assert_eq!(with("You are kind."), "You are kind.\nYou are helpful.");
    }

    #[test]
    fn choices_and_thinking_are_translated() {
        let with = |field: &str, value: Value| {
            let mut json = json!({ "messages": [user(json!("Hi"))] });
            json[field] = value;
            read(json).unwrap()
        };
        let choice = |value| with("tool_choice", value).tool_choice.unwrap();
        assert_eq!(choice(json!({ "type": "any", "disable_parallel_tool_use": true })), "required");
        let named = choice(json!({ "type": "tool", "name": "f" }));
        assert_eq!(named.pointer("/function/name"), Some(&json!("f")));
        let thinking = with("thinking", json!({ "type": "enabled", "budget_tokens": 1024 }));
        assert_eq!(thinking.chat_template_kwargs.unwrap()["enable_thinking"], true);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let image = json!([{ "type": "image", "source": { "type": "url", "url": "x" } }]);
        let begun = json!([user(json!("Hi")), { "role": "assistant", "content": "{" }]);
        let search = json!([{ "type": "web_search_20250305", "name": "web_search" }]);
        for wrong in [
            json!({ "messages": [] }),
            json!({ "messages": [user(image)] }),
            json!({ "messages": begun }),
            json!({ "messages": [user(json!("Hi"))], "tools": search }),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
