//! Which model a body asks for, how long that is to stay, and how urgent it is: looked at before
//! anything else of it, since the rest is checked by the model.

use crate::body::parse;
use crate::error::ApiError;
use motley_engine::batching::Priority;
use motley_engine::models::KeepAlive;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Longest time that can be asked for in so many seconds: a hundred years.
const SECONDS_MAX: f64 = 3.2e9;

/// What a body says of its model.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) model: Option<String>,
    /// Of Ollama's requests, and of others that say so.
    pub(crate) keep_alive: Option<KeepAlive>,
    /// By `service_tier`, as OpenAI's API names them.
    pub(crate) priority: Option<Priority>,
    /// By `deadline_ms`.
    pub(crate) deadline: Option<Duration>,
}

#[derive(Deserialize)]
struct Fields {
    model: Option<Value>,
    /// What Ollama's `/api/show` once called it.
    name: Option<Value>,
    keep_alive: Option<Value>,
    service_tier: Option<Value>,
    deadline_ms: Option<Value>,
}

impl Wanted {
    /// A name that is not text is left to the reader of the whole body.
    pub(crate) fn of(bytes: &[u8], prompt_values: usize) -> Result<Self, ApiError> {
        let fields: Fields = parse(bytes, prompt_values)?;
        let model =
            fields.model.or(fields.name).as_ref().and_then(Value::as_str).map(str::to_owned);
        let keep_alive =
            "`keep_alive` is a number of seconds or a time such as \"10m\"; below 0: always";
        let deadline = "`deadline_ms` is a whole number of milliseconds, at least 1";
        Ok(Self {
            model,
            keep_alive: checked("keep_alive", fields.keep_alive, read, keep_alive)?,
            priority: fields.service_tier.as_ref().and_then(Value::as_str).and_then(priority_of),
            deadline: checked("deadline_ms", fields.deadline_ms, milliseconds, deadline)?,
        })
    }
}

/// What a field says, if it is there.
fn checked<T>(
    name: &'static str,
    value: Option<Value>,
    read: fn(&Value) -> Option<T>,
    otherwise: &str,
) -> Result<Option<T>, ApiError> {
    let value = value.filter(|value| !value.is_null());
    let read = value.map(|value| read(&value).ok_or_else(|| ApiError::invalid(name, otherwise)));
    read.transpose()
}

/// OpenAI's tiers; any other is as none.
fn priority_of(tier: &str) -> Option<Priority> {
    match tier {
        "priority" => Some(Priority::High),
        "flex" => Some(Priority::Low),
        _ => None,
    }
}

fn milliseconds(value: &Value) -> Option<Duration> {
    value.as_u64().filter(|ms| *ms > 0).map(Duration::from_millis)
}

/// Seconds, or a time: `300`, `"10m"`, `"1h30m"`; `-1` and `"-1m"` are for ever.
fn read(value: &Value) -> Option<KeepAlive> {
    let seconds = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) if text.starts_with('-') => -1.0,
        Value::String(text) => {
            let time = || humantime::parse_duration(text).ok().map(|time| time.as_secs_f64());
            text.parse().ok().or_else(time)?
        }
        _ => return None,
    };
    match seconds {
        below if below < 0.0 => Some(KeepAlive::Always),
        seconds if seconds <= SECONDS_MAX => Some(KeepAlive::For(Duration::from_secs_f64(seconds))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_read_as_ollama_reads_them() {
        let seconds = |seconds: f64| Some(KeepAlive::For(Duration::from_secs_f64(seconds)));
        for (value, expected) in [
            (json!(300), seconds(300.0)),
            (json!("300"), seconds(300.0)),
            (json!("10m"), seconds(600.0)),
            (json!("1h30m"), seconds(5400.0)),
            (json!("500ms"), seconds(0.5)),
            (json!(0), seconds(0.0)),
            (json!(-1), Some(KeepAlive::Always)),
            (json!("-1m"), Some(KeepAlive::Always)),
            (json!("ten"), None),
            (json!("10"), seconds(10.0)),
            (json!("10x"), None),
            (json!("m"), None),
            (json!("1e300h"), None),
            (json!("nan"), None),
            (json!(1e30), None),
            (json!([]), None),
        ] {
            assert_eq!(read(&value), expected, "{value}");
        }
    }

    #[test]
    fn names_are_found_before_the_body_is_checked() {
        let of = |body: &str| Wanted::of(body.as_bytes(), 0);
        assert_eq!(of(r#"{"messages": 7, "model": "a"}"#).unwrap().model.as_deref(), Some("a"));
        assert_eq!(of(r#"{"name": "b"}"#).unwrap().model.as_deref(), Some("b"));
        assert_eq!(of(r#"{"model": 5, "keep_alive": null}"#).unwrap(), Wanted::default());
        assert!(of("[]").is_err() && of("{").is_err());
        let refused = of(r#"{"keep_alive": "soon"}"#).unwrap_err().body();
        assert_eq!(refused.error.param, Some("keep_alive"));
        let urgent = of(r#"{"service_tier": "priority", "deadline_ms": 1500}"#).unwrap();
        assert_eq!(urgent.priority, Some(Priority::High));
        assert_eq!(urgent.deadline, Some(Duration::from_millis(1500)));
        assert_eq!(of(r#"{"service_tier": "auto"}"#).unwrap(), Wanted::default());
        for wrong in ["0", "-1", "1.5", "\"soon\""] {
            assert!(of(&format!("{{\"deadline_ms\": {wrong}}}")).is_err(), "{wrong}");
        }
    }
}
