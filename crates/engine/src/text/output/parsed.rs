//! Text, thoughts and function calls: what every format is parsed into.

use serde_json::Value;

/// What is new in a model's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    pub text: String,
    pub thought: String,
    pub calls: Vec<Call>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    /// JSON, as text.
    pub arguments: String,
}

impl Call {
    /// From `{"name": …, "arguments": …}`; `parameters` is accepted as well.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let arguments = json.get("arguments").or_else(|| json.get("parameters"))?;
        Self::named(json, arguments)
    }

    /// The same where a mark says that it is a call: `{"function": {…}}` around it is accepted, and
    /// that nothing is passed.
    pub(super) fn from_marked_json(json: &Value) -> Option<Self> {
        let json = json.get("function").filter(|inner| inner.is_object()).unwrap_or(json);
        let arguments = json.get("arguments").or_else(|| json.get("parameters"));
        Self::named(json, arguments.unwrap_or(&Value::Null))
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        Self::from_json(&serde_json::from_str(text.trim()).ok()?)
    }

    /// Arguments may be an object, or the text of one.
    fn named(json: &Value, arguments: &Value) -> Option<Self> {
        let arguments = match arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) if text.trim().is_empty() => "{}".to_owned(),
            Value::String(text) => {
                serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?;
                text.clone()
            }
            other => other.to_string(),
        };
        let name = json.get("name")?.as_str()?;
        is_name(name).then(|| Self { name: name.to_owned(), arguments })
    }
}

/// Whether it may be a function's name: one word, without quotes and brackets.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"<>{}[]()\"'`|｜".contains(c);
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(plain)
}

const NAME_BYTES_MAX: usize = 256;
