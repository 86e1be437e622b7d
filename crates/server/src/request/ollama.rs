//! `/api/chat` and `/api/generate` as what the routes of OpenAI take. Checks only what those
//! cannot see.

use super::prompt::Tools;
use super::{PreparedRequest, params, prepare_chat, prepare_completion, turn};
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{
    ChatRequest, CompletionRequest, FormFields, Message, OllamaCall, OllamaChatRequest,
    OllamaFields, OllamaGenerateRequest, OllamaMessage, Prompts, ResponseFormat, SamplingFields,
    Schema, Think,
};
use serde_json::{Map, Value, json};

/// Checks a conversation and turns it into tokens; `None` when there is nothing to answer.
pub(crate) fn prepare_ollama_chat(
    app: &App,
    request: OllamaChatRequest,
) -> Result<Option<PreparedRequest>, ApiError> {
    let turns = request.messages.into_iter().enumerate();
    let messages = turns.map(|(index, message)| said(index, message)).collect::<Result<_, _>>()?;
    let chat = ChatRequest { messages, tools: request.tools, ..chat(request.common)? };
    if chat.messages.is_empty() {
        return check_rest(app, &chat).map(|()| None);
    }
    prepare_chat(app, &chat).map(Some)
}

/// What is checked of a request that says nothing.
fn check_rest(app: &App, chat: &ChatRequest) -> Result<(), ApiError> {
    params::check(&chat.sampling, app)?;
    Tools::of(chat).map(drop)
}

/// The same for one text.
pub(crate) fn prepare_ollama_generate(
    app: &App,
    request: OllamaGenerateRequest,
) -> Result<Option<PreparedRequest>, ApiError> {
    refuse_unsupported(&request)?;
    let OllamaGenerateRequest { prompt, system, raw, common, .. } = request;
    if prompt.is_empty() {
        return check_rest(app, &chat(common)?).map(|()| None);
    }
    if raw == Some(true) {
        return prepare_completion(app, &completion(prompt, common)?).map(Some);
    }
    let system = system.filter(|text| !text.is_empty()).map(|text| turn("system", text));
    let messages = system.into_iter().chain([turn("user", prompt)]).collect();
    prepare_chat(app, &ChatRequest { messages, ..chat(common)? }).map(Some)
}

fn refuse_unsupported(request: &OllamaGenerateRequest) -> Result<(), ApiError> {
    let has_text = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let wrong = [
        ("suffix", has_text(&request.suffix)),
        ("template", has_text(&request.template)),
        ("context", request.context.as_ref().is_some_and(|tokens| !tokens.is_empty())),
        ("images", request.images.as_ref().is_some_and(|images| !images.is_empty())),
    ];
    match wrong.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(ApiError::invalid(field, format!("`{field}` is not supported"))),
        None => Ok(()),
    }
}

fn chat(fields: OllamaFields) -> Result<ChatRequest, ApiError> {
    let mut variables = Map::new();
    let mut effort = None;
    match fields.think.clone() {
        Some(Think::Switch(thinks)) => {
            drop(variables.insert("enable_thinking".into(), thinks.into()))
        }
        Some(Think::Effort(word)) => effort = Some(word),
        None => {}
    }
    Ok(ChatRequest {
        model: fields.model.clone(),
        max_tokens: most_tokens(&fields)?,
        response_format: response_format(fields.format.as_ref())?,
        reasoning_effort: effort,
        chat_template_kwargs: Some(variables),
        sampling: sampling(fields),
        ..ChatRequest::default()
    })
}

fn completion(prompt: String, fields: OllamaFields) -> Result<CompletionRequest, ApiError> {
    if response_format(fields.format.as_ref())?.is_some() {
        return Err(ApiError::invalid("format", "`format` is not supported with `raw`"));
    }
    Ok(CompletionRequest {
        model: fields.model.clone(),
        prompt: Prompts::Text(prompt),
        // As many as fit, where OpenAI's route has few.
        max_tokens: Some(most_tokens(&fields)?.unwrap_or(i32::MAX as u32)),
        logprobs: None,
        echo: None,
        suffix: None,
        best_of: None,
        form: FormFields::default(),
        sampling: sampling(fields),
    })
}

/// Below 0 there is no limit but the context.
fn most_tokens(fields: &OllamaFields) -> Result<Option<u32>, ApiError> {
    match fields.options.as_ref().and_then(|options| options.num_predict) {
        Some(0) => Err(ApiError::invalid("num_predict", "`num_predict` must not be 0")),
        Some(most) => Ok(u32::try_from(most).ok()),
        None => Ok(None),
    }
}

fn response_format(format: Option<&Value>) -> Result<Option<ResponseFormat>, ApiError> {
    match format {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(word)) if word.is_empty() => Ok(None),
        Some(Value::String(word)) if word == "json" => Ok(Some(ResponseFormat::JsonObject)),
        Some(Value::Object(schema)) => {
            let json_schema = Schema { schema: schema.clone().into() };
            Ok(Some(ResponseFormat::JsonSchema { json_schema }))
        }
        Some(_) => Err(ApiError::invalid("format", "`format` must be `json` or a JSON schema")),
    }
}

fn sampling(fields: OllamaFields) -> SamplingFields {
    let options = fields.options.unwrap_or_default();
    SamplingFields {
        temperature: options.temperature,
        top_k: options.top_k,
        top_p: options.top_p,
        min_p: options.min_p,
        stop: options.stop,
        seed: options.seed,
        repeat_penalty: options.repeat_penalty,
        presence_penalty: options.presence_penalty,
        frequency_penalty: options.frequency_penalty,
        stream: Some(fields.stream.unwrap_or(true)),
        ..SamplingFields::default()
    }
}

fn said(index: usize, message: OllamaMessage) -> Result<Message, ApiError> {
    if message.images.is_some_and(|images| !images.is_empty()) {
        return Err(ApiError::invalid("messages", "images are not supported"));
    }
    let calls = message.tool_calls.filter(|calls| !calls.is_empty());
    let call = |(at, call): (usize, OllamaCall)| {
        // Calls have no identifiers here, and some templates want one.
        let id = format!("call_{index}_{at}");
        json!({ "id": id, "type": "function", "function": call.function })
    };
    Ok(Message {
        role: message.role,
        content: message.content.map(Value::String),
        reasoning_content: message.thinking.filter(|thoughts| !thoughts.is_empty()),
        reasoning: None,
        tool_calls: calls.map(|calls| calls.into_iter().enumerate().map(call).collect()),
        tool_call_id: None,
        name: message.tool_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: Value) -> OllamaFields {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn options_become_sampling_and_limits() {
        let options = json!({ "temperature": 0.5, "num_predict": 7, "stop": ["a"], "num_ctx": 9 });
        let asked = fields(json!({ "options": options, "think": false, "keep_alive": "5m" }));
        let chat = chat(asked).unwrap();
        assert_eq!((chat.max_tokens, chat.sampling.temperature), (Some(7), Some(0.5)));
        assert_eq!(chat.sampling.stream, Some(true));
        assert_eq!(chat.chat_template_kwargs.unwrap()["enable_thinking"], false);
        let endless = fields(json!({ "options": { "num_predict": -1 } }));
        assert_eq!(most_tokens(&endless).unwrap(), None);
    }

    #[test]
    fn formats_are_json_or_a_schema() {
        let read = |format: Value| response_format(Some(&format));
        assert!(matches!(read(json!("json")).unwrap(), Some(ResponseFormat::JsonObject)));
        assert!(read(json!("")).unwrap().is_none());
        assert!(read(json!({ "type": "object" })).unwrap().is_some());
        assert!(read(json!("xml")).is_err() && read(json!(7)).is_err());
    }
}
