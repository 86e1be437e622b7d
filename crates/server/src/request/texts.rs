//! Texts whose vectors or scores are wanted: checked, and as tokens.

use super::params;
use super::tokens::check_token;
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{EmbeddingsRequest, OllamaEmbedRequest, Prompts, RerankDocument, RerankRequest};
use motley_engine::batching::Refused;
use motley_engine::{SubmitError, TokenizeError};
use motley_model::Pooling;
use std::sync::Arc;

/// Texts of a request, as OpenAI's API has it.
const TEXTS_MAX: usize = 2048;

/// Texts as tokens.
pub(crate) type Texts = Vec<Arc<[i32]>>;

/// Numbers of a vector that are wanted; all of them where it is not said.
pub(crate) type Dimensions = Option<usize>;

/// Texts, and the numbers wanted of each vector.
pub(crate) fn prepare_embeddings(
    app: &App,
    request: &EmbeddingsRequest,
) -> Result<(Texts, Dimensions), ApiError> {
    check_makes_vectors(app)?;
    let texts = texts(app, &request.input, TooLong::Refuse)?;
    Ok((texts, dimensions(request.dimensions)?))
}

/// The same of Ollama's request; no texts where none was sent.
pub(crate) fn prepare_ollama_embed(
    app: &App,
    request: &OllamaEmbedRequest,
) -> Result<(Texts, Dimensions), ApiError> {
    check_makes_vectors(app)?;
    let too_long = if request.truncate == Some(false) { TooLong::Refuse } else { TooLong::Cut };
    let texts = request.input.as_ref().map(|input| texts(app, input, too_long)).transpose()?;
    Ok((texts.unwrap_or_default(), dimensions(request.dimensions)?))
}

/// A query and each of the texts.
pub(crate) fn prepare_rerank(app: &App, request: &RerankRequest) -> Result<Texts, ApiError> {
    if pooling(app)? != Pooling::Rank {
        let message = "this model makes vectors and no scores; /v1/embeddings has them";
        return Err(ApiError::invalid("model", message));
    }
    check_count("documents", request.documents.len())?;
    params::check_count("top_n", request.top_n)?;
    let (engine, most) = (app.batching.engine(), most_tokens(app));
    let tokens = |document: &RerankDocument| {
        let tokens = engine.ranking_tokens(&request.query, document.text(), most);
        checked(app, "documents", tokens.map_err(failed("documents"))?)
    };
    request.documents.iter().map(tokens).collect()
}

/// What becomes of a text that is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TooLong {
    Refuse,
    Cut,
}

fn check_makes_vectors(app: &App) -> Result<(), ApiError> {
    match pooling(app)? {
        Pooling::Rank => {
            let message = "this model ranks texts and makes no vectors; /v1/rerank has scores";
            Err(ApiError::invalid("model", message))
        }
        Pooling::Mean | Pooling::First | Pooling::Last => Ok(()),
    }
}

fn pooling(app: &App) -> Result<Pooling, ApiError> {
    let embedding = app.batching.options().embedding;
    Ok(embedding.ok_or(SubmitError::MakesNoVectors)?.pooling)
}

fn texts(app: &App, input: &Prompts, too_long: TooLong) -> Result<Texts, ApiError> {
    let text = |text: &String| self::text(app, text, too_long);
    let tokens = |tokens: &Vec<i32>| {
        tokens.iter().try_for_each(|&token| check_token(app, "input", token))?;
        checked(app, "input", tokens.clone())
    };
    match input {
        Prompts::Text(one) => Ok(vec![text(one)?]),
        Prompts::Tokens(one) => Ok(vec![tokens(one)?]),
        Prompts::Texts(many) => {
            check_count("input", many.len())?;
            many.iter().map(text).collect()
        }
        Prompts::TokenLists(many) => {
            check_count("input", many.len())?;
            many.iter().map(tokens).collect()
        }
    }
}

fn text(app: &App, text: &str, too_long: TooLong) -> Result<Arc<[i32]>, ApiError> {
    let (engine, most) = (app.batching.engine(), most_tokens(app));
    if too_long == TooLong::Refuse {
        return checked(app, "input", engine.text_tokens(text, most).map_err(failed("input"))?);
    }
    // What is behind that many bytes is behind the last token that fits.
    let text = &text[..text.floor_char_boundary(app.prompt_bytes_max)];
    let mut tokens = engine.text_tokens(text, usize::MAX).map_err(failed("input"))?;
    if tokens.len() > most {
        let end = engine.text_bounds().end.filter(|end| tokens.last() == Some(end));
        tokens.truncate(most - usize::from(end.is_some()));
        tokens.extend(end);
    }
    checked(app, "input", tokens)
}

/// Refuses what the engine would, under the name of the field.
fn checked(app: &App, param: &'static str, tokens: Vec<i32>) -> Result<Arc<[i32]>, ApiError> {
    let (most, longest) = (most_tokens(app), app.batching.longest());
    match tokens.len() {
        0 => Err(ApiError::invalid(param, "a text is empty")),
        count if count > most => {
            let refused = Refused::TooLong { tokens: count, longest };
            Err(ApiError::too_long(param, format!("a text is too long: {refused}")))
        }
        _ => Ok(tokens.into()),
    }
}

/// Most tokens of a text.
fn most_tokens(app: &App) -> usize {
    (app.batching.longest() as usize).saturating_sub(1)
}

fn check_count(param: &'static str, count: usize) -> Result<(), ApiError> {
    if (1..=TEXTS_MAX).contains(&count) {
        return Ok(());
    }
    Err(ApiError::invalid(param, format!("`{param}` must have 1 to {TEXTS_MAX} entries")))
}

fn dimensions(wanted: Option<u32>) -> Result<Dimensions, ApiError> {
    params::check_count("dimensions", wanted)?;
    Ok(wanted.map(|wanted| wanted as usize))
}

fn failed(param: &'static str) -> impl Fn(TokenizeError) -> ApiError {
    move |error| ApiError::invalid(param, error.to_string())
}
