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
        let arguments = match arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(Self { name: json.get("name")?.as_str()?.to_owned(), arguments })
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        Self::from_json(&serde_json::from_str(text.trim()).ok()?)
    }
}
