//! From a client's request to work for the engine. Everything a client can get wrong is
//! refused here, before anything is computed.
//!
//! * `params`: sampling fields and limits.
//! * `size`: prompts that cannot fit, refused before they are tokenized.
//! * `prompt`: messages and tools to a conversation.
//! * `schema`: formats, grammars and forced calls to a constraint.
//! * `infill`: a text with a gap; `gap`: its prompt.
//! * `anthropic`, `responses`, `ollama`: other APIs' conversations as those of chat completions.
//! * `texts`: texts whose vectors or scores are wanted.
//! * `tokens`: text to tokens and back.
//! * `wanted`: which model a body asks for, looked at first.

mod anthropic;
mod gap;
mod infill;
mod ollama;
pub(crate) mod params;
pub(crate) mod prompt;
mod responses;
pub(crate) mod schema;
pub(crate) mod size;
mod texts;
mod tokens;
mod wanted;

pub(crate) use anthropic::{count_tokens, prepare_messages};
pub(crate) use infill::prepare_infill;
pub(crate) use ollama::{prepare_ollama_chat, prepare_ollama_generate};
pub(crate) use responses::{PreparedResponse, prepare_response};
pub(crate) use texts::{
    Dimensions, Texts, prepare_embeddings, prepare_ollama_embed, prepare_rerank,
};
pub(crate) use tokens::{detokenize, tokenize};
pub(crate) use wanted::Wanted;

use crate::app::App;
use crate::error::ApiError;
use crate::wire::{ChatRequest, CompletionRequest, Message, Prompts};
use motley_engine::ChatError;
use motley_engine::batching::Ask;
use motley_engine::text::output::{ArgumentTypes, Calls, Format, OutputFormat, Parser};
use params::CheckedParams;
use std::sync::Arc;
use tokens::check_token;

/// Most tokens of a completion when the client does not say, as the API has it.
const COMPLETION_TOKENS: u32 = 16;

/// A request, checked and ready for the engine.
pub(crate) struct PreparedRequest {
    /// One per choice, prompt by prompt.
    pub(crate) asks: Vec<Ask>,
    pub(crate) choices: usize,
    pub(crate) format: OutputFormat,
    /// Types of the functions' parameters.
    types: Arc<ArgumentTypes>,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    /// Text each choice begins with (`echo`).
    pub(crate) echo: Vec<String>,
}

impl PreparedRequest {
    /// What reads one choice; a stream has calls in pieces.
    pub(crate) fn parser(&self) -> Parser {
        self.parser_of(if self.stream { Calls::InPieces } else { Calls::Whole })
    }

    pub(crate) fn parser_of(&self, calls: Calls) -> Parser {
        Parser::with_types(self.format, Arc::clone(&self.types), calls)
    }
}

/// Checks a conversation and turns it into tokens.
pub(crate) fn prepare_chat(app: &App, request: &ChatRequest) -> Result<PreparedRequest, ApiError> {
    let checked = params::check(&request.sampling, app)?;
    size::check_messages(app, &request.messages)?;
    let tools = prompt::Tools::of(request)?;
    let constraint = schema::constraint(app, request, &tools)?;
    let calls = match (tools.is_forced(), tools.is_empty(), app.format.calls) {
        (true, _, _) => Format::Forced,
        // The system prompt explains this format to a model whose template has none.
        (false, false, Format::Plain) => Format::Hermes,
        (false, false, calls) => calls,
        (false, true, _) => app.format.without_calls().calls,
    };
    let conversation = prompt::conversation(app, request, &tools)?;
    let (engine, most) = (app.batching.engine(), app.batching.longest() as usize);
    let tokens = engine.conversation_tokens(&conversation, Some(most)).map_err(template_error)?;
    // What a schema allows has no place for thoughts.
    let thoughts = app.format.thoughts.filter(|_| constraint.is_none());
    let format = OutputFormat { calls, thoughts }.after(&engine.end_of(&tokens));
    let candidates = params::candidates(request.logprobs, request.top_logprobs)?;
    // Also where the other one counts.
    params::check_count("max_tokens", request.max_tokens)?;
    let most = request.max_completion_tokens.or(request.max_tokens);
    let max_tokens = params::max_tokens(app, most, tokens.len())?;
    let tokens: Arc<[i32]> = tokens.into();
    log_text(app, || request.messages.iter().map(|m| format!("{:?}", m.content)).collect());
    let mut asks = Vec::new();
    for choice in 0..checked.choices {
        let constraint = constraint.clone();
        let ask =
            Ask { prompt: Arc::clone(&tokens), constraint, candidates, ..checked.ask(choice) };
        asks.push(Ask { max_tokens, control_tokens: format.control_tokens(), ..ask });
    }
    let types = Arc::new(tools.types());
    Ok(PreparedRequest { types, ..prepared(asks, format, &checked, Vec::new()) })
}

/// Checks a text to be continued.
pub(crate) fn prepare_completion(
    app: &App,
    request: &CompletionRequest,
) -> Result<PreparedRequest, ApiError> {
    let checked = params::check(&request.sampling, app)?;
    if request.best_of.is_some_and(|best_of| best_of != checked.choices) {
        return Err(ApiError::invalid("best_of", "only `best_of` equal to `n` is supported"));
    }
    let candidates = params::candidates(request.logprobs.map(|_| true), request.logprobs)?;
    size::check_prompts(app, &request.prompt, checked.choices)?;
    let constraint = schema::text_constraint(app, &request.form)?;
    let (mut asks, mut echo) = (Vec::new(), Vec::new());
    for (tokens, text) in prompts(app, request)? {
        let most = Some(request.max_tokens.unwrap_or(COMPLETION_TOKENS));
        let max_tokens = params::max_tokens(app, most, tokens.len())?;
        log_text(app, || vec![text.clone()]);
        for choice in 0..checked.choices {
            let prompt = Arc::clone(&tokens);
            let constraint = constraint.clone();
            asks.push(Ask { prompt, constraint, candidates, max_tokens, ..checked.ask(choice) });
            echo.push(if request.echo == Some(true) { text.clone() } else { String::new() });
        }
    }
    Ok(prepared(asks, OutputFormat::PLAIN, &checked, echo))
}

fn prepared(
    asks: Vec<Ask>,
    format: OutputFormat,
    checked: &CheckedParams,
    echo: Vec<String>,
) -> PreparedRequest {
    let CheckedParams { choices, stream, include_usage, .. } = *checked;
    let (choices, types) = (choices as usize, Arc::default());
    PreparedRequest { asks, choices, format, types, stream, include_usage, echo }
}

/// A prompt's tokens, and its text.
type TextPrompt = (Arc<[i32]>, String);

fn prompts(app: &App, request: &CompletionRequest) -> Result<Vec<TextPrompt>, ApiError> {
    let engine = app.batching.engine();
    let most = app.batching.longest() as usize;
    let suffix = request.suffix.as_deref().filter(|suffix| !suffix.is_empty());
    let text = |text: &String| {
        let tokens = match suffix {
            Some(suffix) => gap::gap_prompt(app, "suffix", [text, suffix])?,
            None => {
                let tokens = engine.tokenize_within(text, most);
                tokens.map_err(|error| ApiError::invalid("prompt", error.to_string()))?.into()
            }
        };
        Ok((tokens, text.clone()))
    };
    let tokens = |tokens: &Vec<i32>| {
        if suffix.is_some() {
            return Err(ApiError::invalid("suffix", "`suffix` needs prompts as text"));
        }
        tokens.iter().try_for_each(|&token| check_token(app, "prompt", token))?;
        let bytes: Vec<u8> = tokens.iter().flat_map(|&token| engine.token_bytes(token)).collect();
        Ok((tokens.as_slice().into(), String::from_utf8_lossy(&bytes).into_owned()))
    };
    match &request.prompt {
        Prompts::Text(one) => Ok(vec![text(one)?]),
        Prompts::Texts(many) => many.iter().map(text).collect(),
        Prompts::Tokens(one) => Ok(vec![tokens(one)?]),
        Prompts::TokenLists(many) => many.iter().map(tokens).collect(),
    }
}

/// One turn that is text.
fn turn(role: &str, text: String) -> Message {
    Message { role: role.into(), content: Some(text.into()), ..Message::default() }
}

fn template_error(error: ChatError) -> ApiError {
    ApiError::invalid("messages", error.to_string())
}

/// Request text is logged only with `--log-text`.
fn log_text(app: &App, text: impl FnOnce() -> Vec<String>) {
    if app.options.log_text {
        tracing::info!(target: crate::LOG_TEXT_TARGET, prompt = ?text());
    }
}
