//! Prompts that cannot fit, refused by counts and bytes before anything is built of them. What
//! passes here may still have too many tokens; that is seen when it is tokenized.

use crate::app::App;
use crate::error::ApiError;
use crate::wire::{Message, Prompts};
use motley_engine::batching::Refused;
use motley_engine::{Engine, SubmitError};
use motley_model::format_bytes;
use serde_json::Value;

/// Control tokens written out are text of the prompt too, and may be longer than any other.
const CONTROL_TOKEN_BYTES: usize = 64;

/// Bytes of text that `longest` tokens can stand for at most.
pub(crate) fn prompt_bytes_max(engine: &Engine, longest: u32) -> usize {
    let tokens = 0..i32::try_from(engine.vocab_size()).unwrap_or(i32::MAX);
    let token_bytes = tokens.map(|token| engine.token_bytes(token).len()).max().unwrap_or(0);
    token_bytes.max(CONTROL_TOKEN_BYTES).saturating_mul(longest as usize)
}

/// Refuses no prompts, more choices than a request may have, and prompts that are too long for
/// certain.
pub(crate) fn check_prompts(app: &App, prompt: &Prompts, choices: u32) -> Result<(), ApiError> {
    let prompts = match prompt {
        Prompts::Text(_) | Prompts::Tokens(_) => 1,
        Prompts::Texts(many) => many.len(),
        Prompts::TokenLists(many) => many.len(),
    };
    if prompts == 0 {
        return Err(ApiError::invalid("prompt", "there is no prompt in it"));
    }
    let most = app.options.limits.choices;
    if prompts.saturating_mul(choices as usize) > most as usize {
        return Err(ApiError::invalid("prompt", format!("at most {most} choices in one request")));
    }
    match prompt {
        Prompts::Text(one) => check_text(app, "prompt", one.len()),
        Prompts::Texts(many) => {
            many.iter().try_for_each(|text| check_text(app, "prompt", text.len()))
        }
        Prompts::Tokens(one) => check_tokens(app, one.len()),
        Prompts::TokenLists(many) => {
            many.iter().try_for_each(|tokens| check_tokens(app, tokens.len()))
        }
    }
}

/// Refuses a conversation whose texts are too long for certain.
pub(crate) fn check_messages(app: &App, messages: &[Message]) -> Result<(), ApiError> {
    // Not the thoughts of earlier answers: most templates leave them out.
    let bytes = messages.iter().map(|message| content_bytes(message.content.as_ref()));
    check_text(app, "messages", bytes.fold(0, usize::saturating_add))
}

fn content_bytes(content: Option<&Value>) -> usize {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, str::len);
    match content {
        Some(Value::Array(parts)) => parts.iter().map(|part| text(part.get("text"))).sum(),
        content => text(content),
    }
}

pub(super) fn check_text(app: &App, param: &'static str, bytes: usize) -> Result<(), ApiError> {
    if bytes <= app.prompt_bytes_max {
        return Ok(());
    }
    let longest = app.batching.longest();
    let message = format!(
        "the prompt is too long: {} of text do not fit into {longest} tokens",
        format_bytes(bytes as u64)
    );
    Err(ApiError::too_long(param, message))
}

fn check_tokens(app: &App, tokens: usize) -> Result<(), ApiError> {
    let longest = app.batching.longest();
    if tokens < longest as usize {
        return Ok(());
    }
    Err(SubmitError::Refused(Refused::TooLong { tokens, longest }).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_of_all_parts_count() {
        assert_eq!(content_bytes(None), 0);
        assert_eq!(content_bytes(Some(&json!("abc"))), 3);
        let parts = json!([{ "type": "text", "text": "ab" }, { "type": "image_url" }, "c", { "text": "é" }]);
        assert_eq!(content_bytes(Some(&parts)), 4);
    }
}
