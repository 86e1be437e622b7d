//! A request's JSON body, within the limits of size, time, depth and number of values. Bytes
//! are let in by the gate before they are read.

use crate::error::ApiError;
use crate::gate::Ticket;
use crate::models::Models;
use crate::options::ServeLimits;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use motley_model::format_bytes;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// JSON values of a body beside those of a prompt given as tokens: messages, parts, schemas.
/// Each takes a hundred bytes once it is read, however short it was written.
const VALUES_MAX: usize = 64 << 10;
/// How long the rest of a refused body is read and thrown away, so that its sender can read
/// the refusal: a connection closed with bytes unread loses it.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// A body read whole, and the place it holds.
pub(crate) struct ReadBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ticket: Ticket,
}

/// Lets a request in and reads its body. One that is refused is told why.
pub(crate) async fn read_body(
    models: &Models,
    request: Request<Body>,
) -> Result<ReadBody, ApiError> {
    let limits = &models.options.limits;
    let (parts, mut body) = request.into_parts();
    let read = async {
        check_type(&parts.headers)?;
        let length = content_length(&parts.headers);
        check_length(length, limits)?;
        let ticket = models.gate.enter(length as u64, models.queued())?;
        let bytes = collect(&mut body, length, limits, &ticket).await?;
        Ok(ReadBody { bytes, ticket })
    };
    let read = read.await;
    // Who asked whether to send has not sent yet.
    if read.is_err() && !parts.headers.contains_key(header::EXPECT) {
        discard(body, limits.body_bytes).await;
    }
    read
}

/// Reads JSON of at most so many values as a request with `prompt_tokens` tokens could have.
/// serde_json refuses more than 128 levels.
pub(crate) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    prompt_tokens: usize,
) -> Result<T, ApiError> {
    let most = VALUES_MAX.saturating_add(prompt_tokens);
    let values = count_values(bytes);
    if values > most {
        let message = format!("the body has {values} values; at most {most} are read");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_values", message));
    }
    // Left to itself, a type with named fields is read from a list as well.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::invalid("body", "the body must be a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| ApiError::invalid("body", error.to_string()))
}

async fn collect(
    body: &mut Body,
    length: usize,
    limits: &ServeLimits,
    ticket: &Ticket,
) -> Result<Vec<u8>, ApiError> {
    let collected = async {
        let mut bytes = Vec::with_capacity(length);
        while let Some(frame) = body.frame().await {
            let cut_off = |_| ApiError::invalid("body", "the body was cut off");
            let Ok(data) = frame.map_err(cut_off)?.into_data() else { continue };
            check_length(bytes.len().saturating_add(data.len()), limits)?;
            ticket.grow(bytes.len() + data.len())?;
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    };
    let late = |_| {
        let message = "the body did not arrive in time";
        Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message))
    };
    tokio::time::timeout(limits.body_time, collected).await.unwrap_or_else(late)
}

pub(crate) fn check_length(bytes: usize, limits: &ServeLimits) -> Result<(), ApiError> {
    if bytes <= limits.body_bytes {
        return Ok(());
    }
    let limit = format_bytes(limits.body_bytes as u64);
    let message = format!("the body is larger than {limit}");
    Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message))
}

/// Bytes the body says to have; 0 when it does not say. hyper has refused what is no number.
fn content_length(headers: &HeaderMap) -> usize {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|length| length.parse().ok()).unwrap_or(0)
}

/// Reads at most `most` bytes of what is left and keeps nothing.
async fn discard(mut body: Body, most: usize) {
    let reading = async {
        let mut left = most;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, |data| data.len());
            let Some(rest) = left.checked_sub(bytes) else { return };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

/// Values in JSON text, at least: each begins after a bracket or a comma outside of strings.
fn count_values(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (1, false, false);
    for &byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Accepts only a type that a foreign page cannot send without a preflight request.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.unwrap_or("").split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = "send JSON with `Content-Type: application/json`";
    Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn values_are_counted_and_text_is_not() {
        assert_eq!(count_values(br#"{"a": [1, 2, 3]}"#), 5);
        assert_eq!(count_values(br#"["a,b[{,,", "\",,"]"#), 3);
        assert_eq!(count_values(br#""\\","#), 2);
    }

    #[test]
    fn more_values_than_a_request_can_have_are_not_read() {
        let many = format!("{{\"a\": [{}0]}}", "0,".repeat(VALUES_MAX));
        let refused = parse::<Value>(many.as_bytes(), 0).unwrap_err();
        assert!(refused.body().error.message.contains("values"));
        assert!(parse::<Value>(many.as_bytes(), 10).is_ok());
    }

    #[test]
    fn a_body_is_an_object() {
        assert!(parse::<Value>(b" \n{}", 0).is_ok());
        for wrong in [&b"[]"[..], b"null", b"", b"7", b"{"] {
            assert!(parse::<Value>(wrong, 0).is_err());
        }
    }
}
