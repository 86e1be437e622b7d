//! Messages and tools as the model's template takes them.

use crate::app::App;
use crate::error::ApiError;
use crate::wire::{ChatRequest, Message, Tool};
use motley_engine::Conversation;
use motley_engine::text::output::{ArgumentTypes, Format};
use serde_json::{Map, Value, json};

/// Messages and tools of a request.
const MESSAGES_MAX: usize = 4096;
const TOOLS_MAX: usize = 128;
const NAME_BYTES_MAX: usize = 128;

const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// Tools a request may use.
pub(crate) struct Tools<'a> {
    tools: &'a [Tool],
    forced: bool,
}

impl<'a> Tools<'a> {
    /// The tools that `tool_choice` leaves.
    pub(crate) fn of(request: &'a ChatRequest) -> Result<Self, ApiError> {
        let tools = request.tools.as_deref().unwrap_or_default();
        check(tools)?;
        let choice = request.tool_choice.as_ref();
        match choice.and_then(Value::as_str) {
            Some("none") => return Ok(Self { tools: &[], forced: false }),
            Some("required") if !tools.is_empty() => return Ok(Self { tools, forced: true }),
            Some("auto") => return Ok(Self { tools, forced: false }),
            _ => {}
        }
        match choice {
            None | Some(Value::Null) => Ok(Self { tools, forced: false }),
            Some(choice) => {
                let name = choice.pointer("/function/name").and_then(Value::as_str);
                let at = tools.iter().position(|tool| Some(tool.function.name.as_str()) == name);
                let at = at.ok_or_else(|| {
                    ApiError::invalid("tool_choice", "`tool_choice` names an unknown tool")
                })?;
                Ok(Self { tools: &tools[at..=at], forced: true })
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether one of them must be called.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced
    }

    pub(crate) fn list(&self) -> &[Tool] {
        self.tools
    }

    /// Types of their parameters.
    pub(crate) fn types(&self) -> ArgumentTypes {
        let schema = |tool: &'a Tool| (&*tool.function.name, tool.function.parameters.as_ref());
        ArgumentTypes::new(self.tools.iter().map(schema))
    }

    fn values(&self) -> Vec<Value> {
        self.tools.iter().map(|tool| json!(tool)).collect()
    }
}

fn check(tools: &[Tool]) -> Result<(), ApiError> {
    let bad = |tool: &Tool| {
        let name = &tool.function.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        tool.r#type != "function"
            || name.is_empty()
            || name.len() > NAME_BYTES_MAX
            || !name.chars().all(plain)
    };
    if tools.len() > TOOLS_MAX {
        return Err(ApiError::invalid("tools", format!("at most {TOOLS_MAX} tools are allowed")));
    }
    if tools.iter().any(bad) {
        let message =
            "a tool must be a function whose name has only letters, digits, `_`, `-` and `.`";
        return Err(ApiError::invalid("tools", message));
    }
    Ok(())
}

/// The conversation for the template.
pub(crate) fn conversation(
    app: &App,
    request: &ChatRequest,
    tools: &Tools<'_>,
) -> Result<Conversation, ApiError> {
    if request.messages.is_empty() || request.messages.len() > MESSAGES_MAX {
        let message = format!("`messages` must have 1 to {MESSAGES_MAX} entries");
        return Err(ApiError::invalid("messages", message));
    }
    let developer = app.format.calls == Format::Harmony;
    let turns = request.messages.iter().map(|message| turn(message, developer));
    let mut messages = turns.collect::<Result<Vec<_>, _>>()?;
    if !tools.is_empty() && !app.shows_tools {
        describe_tools(&mut messages, tools);
    }
    let mut extra = request.chat_template_kwargs.clone().unwrap_or_default();
    for own in ["messages", "tools", "add_generation_prompt", "bos_token", "eos_token"] {
        extra.remove(own);
    }
    if let Some(effort) = &request.reasoning_effort {
        extra.insert("reasoning_effort".into(), effort.as_str().into());
    }
    Ok(Conversation { messages, tools: tools.values(), extra })
}

fn turn(message: &Message, developer: bool) -> Result<Value, ApiError> {
    if !ROLES.contains(&message.role.as_str()) {
        let message = format!("a role must be one of {}", ROLES.join(", "));
        return Err(ApiError::invalid("messages", message));
    }
    let role = match message.role.as_str() {
        "developer" if !developer => "system",
        role => role,
    };
    let mut turn = Map::new();
    turn.insert("role".into(), role.into());
    turn.insert("content".into(), text(message.content.as_ref())?.into());
    if let Some(calls) = &message.tool_calls {
        if !calls.iter().all(Value::is_object) {
            return Err(ApiError::invalid("messages", "a call must be an object"));
        }
        turn.insert("tool_calls".into(), calls.iter().map(call).collect());
    }
    // Templates have either name for it.
    let thought = &message.reasoning_content.as_ref().or(message.reasoning.as_ref()).cloned();
    let named = [
        ("tool_call_id", &message.tool_call_id),
        ("name", &message.name),
        ("reasoning_content", thought),
        ("reasoning", thought),
    ];
    for (key, value) in named {
        if let Some(value) = value {
            turn.insert(key.into(), value.as_str().into());
        }
    }
    Ok(turn.into())
}

/// Text of a content: a string, or parts that are text.
fn text(content: Option<&Value>) -> Result<String, ApiError> {
    let part = |part: &Value| match (part.get("type"), part.get("text")) {
        (Some(Value::String(kind)), Some(Value::String(text))) if kind == "text" => {
            Ok(text.clone())
        }
        _ => Err(ApiError::invalid("messages", "only text parts are supported")),
    };
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        Some(_) => {
            Err(ApiError::invalid("messages", "`content` must be text or a list of text parts"))
        }
    }
}

/// Arguments are JSON in a string to clients and an object to templates.
fn call(call: &Value) -> Value {
    let mut call = call.clone();
    if let Some(arguments) = call.pointer_mut("/function/arguments")
        && let Some(parsed) = arguments.as_str().and_then(|text| serde_json::from_str(text).ok())
    {
        *arguments = parsed;
    }
    call
}

/// Explains tool calls to a model whose template has no tools.
fn describe_tools(messages: &mut Vec<Value>, tools: &Tools<'_>) {
    let list: Vec<String> = tools.values().iter().map(Value::to_string).collect();
    let words = format!(
        "You may call these functions:\n<tools>\n{}\n</tools>\nTo call one, write\n<tool_call>\n\
         {{\"name\": <function name>, \"arguments\": <arguments as JSON>}}\n</tool_call>",
        list.join("\n")
    );
    match messages.first_mut().filter(|first| first["role"] == "system") {
        Some(system) => {
            let before = system["content"].as_str().unwrap_or_default();
            system["content"] = format!("{before}\n\n{words}").into();
        }
        None => messages.insert(0, json!({ "role": "system", "content": words })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(json: Value) -> ChatRequest {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn parts_of_text_are_joined_and_others_refused() {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(text(Some(&parts)).unwrap(), "ab");
        assert_eq!(text(None).unwrap(), "");
        assert!(text(Some(&json!([{ "type": "image_url", "image_url": {} }]))).is_err());
        assert!(text(Some(&json!(7))).is_err());
    }

    #[test]
    fn a_choice_leaves_its_tools() {
        let tool = |name| json!({ "type": "function", "function": { "name": name } });
        let with = |choice: Value| {
            let json =
                json!({ "messages": [], "tools": [tool("f"), tool("g")], "tool_choice": choice });
            Tools::of(&request(json)).map(|tools| (tools.list().len(), tools.is_forced()))
        };
        assert_eq!(with(json!("none")).unwrap(), (0, false));
        assert_eq!(with(json!("auto")).unwrap(), (2, false));
        assert_eq!(with(Value::Null).unwrap(), (2, false));
        assert_eq!(with(json!("required")).unwrap(), (2, true));
        assert_eq!(with(tool("g")).unwrap(), (1, true));
        assert!(with(tool("h")).is_err());
        assert!(with(json!("perhaps")).is_err());
    }

    #[test]
    fn names_that_no_tool_may_have_are_refused() {
        let json = json!({ "messages": [], "tools": [{ "type": "function", "function": { "name": "a b" } }] });
        assert!(Tools::of(&request(json)).is_err());
    }

    #[test]
    fn thoughts_of_an_earlier_answer_reach_the_template() {
        for name in ["reasoning_content", "reasoning"] {
            let message = json!({ "role": "assistant", "content": "Yes.", name: "Hm." });
            let turn = turn(&serde_json::from_value(message).unwrap(), false).unwrap();
            assert_eq!(
                (&turn["reasoning_content"], &turn["reasoning"]),
                (&json!("Hm."), &json!("Hm."))
            );
        }
    }

    #[test]
    fn arguments_become_objects() {
        let written = json!({ "function": { "name": "f", "arguments": "{\"a\":1}" } });
        assert_eq!(call(&written)["function"]["arguments"], json!({ "a": 1 }));
        let broken = json!({ "function": { "name": "f", "arguments": "{" } });
        assert_eq!(call(&broken), broken);
    }
}
