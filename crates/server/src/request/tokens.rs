//! Text to tokens and back, for `/tokenize` and `/detokenize`. Computes nothing of a model.

use crate::app::App;
use crate::error::ApiError;
use crate::wire::{
    DetokenizeRequest, DetokenizeResponse, TokenPiece, TokenizeRequest, TokenizeResponse,
    TokenizedToken,
};
use motley_model::format_bytes;

/// Bytes of a text. A prompt may be shorter; documents are measured before they are cut.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Tokens of a list.
const TOKENS_MAX: usize = 64 << 10;

/// The tokens of a text.
pub(crate) fn tokenize(app: &App, request: TokenizeRequest) -> Result<TokenizeResponse, ApiError> {
    let text = &request.content;
    if text.len() > TEXT_BYTES_MAX {
        let most = format_bytes(TEXT_BYTES_MAX as u64);
        return Err(ApiError::invalid("content", format!("`content` has more than {most}")));
    }
    let engine = app.batching.engine();
    let (begins, parses) =
        (request.add_special.unwrap_or(false), request.parse_special.unwrap_or(true));
    let tokens = if parses { engine.tokenize(text) } else { engine.tokenize_plain(text) };
    let failed =
        |error: motley_engine::TokenizeError| ApiError::invalid("content", error.to_string());
    let (mut tokens, begin) = (tokens.map_err(failed)?, engine.begin_tokens().map_err(failed)?);
    // Parsed text comes with its beginning, plain text without.
    if parses && !begins && tokens.starts_with(&begin) {
        tokens.drain(..begin.len());
    } else if !parses && begins {
        tokens.splice(..0, begin);
    }
    let with_pieces = request.with_pieces == Some(true);
    let token = |id| match with_pieces {
        false => TokenizedToken::Id(id),
        true => TokenizedToken::WithPiece { id, piece: piece(engine.token_bytes_with_control(id)) },
    };
    Ok(TokenizeResponse { tokens: tokens.into_iter().map(token).collect() })
}

/// The text of tokens.
pub(crate) fn detokenize(
    app: &App,
    request: DetokenizeRequest,
) -> Result<DetokenizeResponse, ApiError> {
    let engine = app.batching.engine();
    if request.tokens.len() > TOKENS_MAX {
        return Err(ApiError::invalid("tokens", format!("at most {TOKENS_MAX} tokens")));
    }
    request.tokens.iter().try_for_each(|&token| check_token(app, "tokens", token))?;
    let bytes = request.tokens.iter().flat_map(|&token| engine.token_bytes_with_control(token));
    let bytes: Vec<u8> = bytes.collect();
    Ok(DetokenizeResponse { content: String::from_utf8_lossy(&bytes).into_owned() })
}

/// Refuses a token that the model does not have.
pub(super) fn check_token(app: &App, param: &'static str, token: i32) -> Result<(), ApiError> {
    let size = app.batching.engine().vocab_size();
    match usize::try_from(token) {
        Ok(token) if token < size => Ok(()),
        _ => Err(ApiError::invalid(param, "a token is not in the vocabulary")),
    }
}

fn piece(bytes: Vec<u8>) -> TokenPiece {
    match String::from_utf8(bytes) {
        Ok(text) => TokenPiece::Text(text),
        Err(broken) => TokenPiece::Bytes(broken.into_bytes()),
    }
}
