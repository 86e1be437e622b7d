//! Text, thoughts and function calls: what every format is parsed into, in pieces and put together.

use serde_json::Value;

/// A piece of a model's output, in the order it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Text(String),
    Thought(String),
    /// A call of the function with this name begins.
    Call(String),
    /// More of the arguments of the call that began last: JSON, as text.
    Arguments(String),
    /// The call that began last is whole. One that broke off has no end, and its arguments lack their
    /// last brace, so that nobody takes it for a whole one.
    CallEnd,
}

/// Pieces put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    pub text: String,
    pub thought: String,
    pub calls: Vec<Call>,
}

impl Extend<Said> for Parsed {
    fn extend<T: IntoIterator<Item = Said>>(&mut self, pieces: T) {
        for piece in pieces {
            match piece {
                Said::Text(text) => self.text.push_str(&text),
                Said::Thought(thought) => self.thought.push_str(&thought),
                Said::Call(name) => self.calls.push(Call { name, arguments: String::new() }),
                Said::Arguments(more) => {
                    if let Some(call) = self.calls.last_mut() {
                        call.arguments.push_str(&more);
                    }
                }
                Said::CallEnd => {}
            }
        }
    }
}

impl FromIterator<Said> for Parsed {
    fn from_iter<T: IntoIterator<Item = Said>>(pieces: T) -> Self {
        let mut parsed = Self::default();
        parsed.extend(pieces);
        parsed
    }
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

    /// Whether it is the call `name` with arguments that mean the same.
    pub(super) fn means(&self, name: &str, arguments: &str) -> bool {
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        let meant = value(arguments);
        self.name == name && meant.is_some() && meant == value(&self.arguments)
    }
}

/// Arguments as JSON, in the order they were written, without the last brace.
pub(super) fn unclosed_object(values: &[(String, Value)]) -> String {
    let pairs = values.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
    format!("{{{}", pairs.collect::<Vec<_>>().join(","))
}

/// The same, whole.
pub(super) fn object(values: &[(String, Value)]) -> String {
    unclosed_object(values) + "}"
}

/// Whether it may be a function's name: one word, without quotes and brackets.
pub(super) fn is_name(text: &str) -> bool {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"<>{}[]()\"'`|｜".contains(c);
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.chars().all(plain)
}

const NAME_BYTES_MAX: usize = 256;
