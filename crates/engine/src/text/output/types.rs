//! Types of functions' parameters, for formats that write a value without quotes: `42` is a number to
//! one function and a text to another.

use serde_json::{Map, Value};
use std::collections::HashMap;

/// The types each parameter of each function may have.
#[derive(Debug, Default)]
pub struct ArgumentTypes {
    functions: HashMap<String, HashMap<String, Vec<String>>>,
}

impl ArgumentTypes {
    /// From functions by name, with the JSON schema of their parameters where they have any.
    pub fn new<'a>(
        functions: impl IntoIterator<Item = (&'a str, Option<&'a Map<String, Value>>)>,
    ) -> Self {
        let types = |(name, schema): (&str, Option<&Map<String, Value>>)| {
            (name.to_owned(), schema.map(parameters).unwrap_or_default())
        };
        Self { functions: functions.into_iter().map(types).collect() }
    }

    /// Whether it may be a function's name, for all that is known.
    pub(super) fn may_call(&self, function: &str) -> bool {
        self.functions.is_empty() || self.functions.contains_key(function)
    }

    /// Whether the function may have this parameter, for all that is known.
    pub(super) fn may_have(&self, function: &str, parameter: &str) -> bool {
        let known = self.functions.get(function).filter(|known| !known.is_empty());
        known.is_none_or(|known| known.contains_key(parameter))
    }

    /// The value that `text` means as this parameter. Without a type it is what JSON says, unless that
    /// is a string: then it is the text itself.
    pub(super) fn value(&self, function: &str, parameter: &str, text: &str) -> Value {
        let types = self.functions.get(function).and_then(|types| types.get(parameter));
        let types = types.map(Vec::as_slice).unwrap_or_default();
        let is = |name: &str| types.iter().any(|kind| kind == name);
        let written = text.trim();
        let value = match written {
            "True" if is("boolean") => Some(Value::Bool(true)),
            "False" if is("boolean") => Some(Value::Bool(false)),
            "None" if is("null") => Some(Value::Null),
            _ => serde_json::from_str(written).ok(),
        };
        let fits = |value: &Value| match value {
            Value::String(_) => false,
            _ if types.is_empty() => keeps_digits(value, written),
            // A text that looks like something else, unless it is nothing.
            _ if is("string") => value.is_null() && is("null"),
            _ => types.iter().any(|kind| has_type(value, kind)),
        };
        value.filter(fits).unwrap_or_else(|| text.into())
    }

    /// A value that has a type of its own, which was written as `written`: text where the parameter is
    /// one, what a text means where the parameter is none.
    pub(super) fn fitted(
        &self,
        function: &str,
        parameter: &str,
        value: Value,
        written: &str,
    ) -> Value {
        let types = self.functions.get(function).and_then(|types| types.get(parameter));
        let types = types.map(Vec::as_slice).unwrap_or_default();
        let is_text = types.iter().any(|kind| kind == "string");
        match value {
            Value::String(text) if !types.is_empty() && !is_text => {
                self.value(function, parameter, &text)
            }
            Value::Bool(_) | Value::Number(_)
                if is_text && !types.iter().any(|kind| has_type(&value, kind)) =>
            {
                written.trim().into()
            }
            value => value,
        }
    }
}

/// Whether no digit of a number is lost.
fn keeps_digits(value: &Value, written: &str) -> bool {
    !value.is_f64() || written.contains(['.', 'e', 'E'])
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" | "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => false,
    }
}

fn parameters(schema: &Map<String, Value>) -> HashMap<String, Vec<String>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let types = |(name, schema): (&String, &Value)| (name.clone(), types(schema));
    properties.into_iter().flatten().map(types).collect()
}

/// Types a schema names, itself or in its alternatives.
fn types(schema: &Value) -> Vec<String> {
    let named = |value: &Value| value.as_str().map(str::to_owned);
    let own: Vec<String> = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(named).collect(),
        Some(one) => named(one).into_iter().collect(),
        None => Vec::new(),
    };
    if !own.is_empty() {
        return own;
    }
    let alternatives = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
    if let Some(alternatives) = alternatives {
        let kinds = alternatives.iter().filter_map(|schema| schema.get("type"));
        return kinds.filter_map(named).collect();
    }
    let texts = |values: &Vec<Value>| values.iter().all(Value::is_string);
    match schema.get("enum").and_then(Value::as_array) {
        Some(values) if texts(values) => vec!["string".to_owned()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_has_the_type_of_its_parameter() {
        let schema = json!({ "properties": {
            "text": { "type": "string" }, "count": { "type": "integer" },
            "flag": { "type": ["boolean", "null"] }, "kind": { "enum": ["1", "2"] },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        } });
        let types = ArgumentTypes::new([("f", schema.as_object())]);
        let value = |parameter: &str, text: &str| types.value("f", parameter, text);
        assert_eq!(value("text", "42"), json!("42"));
        assert_eq!(value("text", "null"), json!("null"));
        assert_eq!(value("count", " 42\n"), json!(42));
        assert_eq!(value("count", "many"), json!("many"));
        assert_eq!(value("flag", "True"), json!(true));
        assert_eq!(value("flag", "None"), Value::Null);
        assert_eq!(value("kind", "1"), json!("1"));
        assert_eq!(value("note", "null"), Value::Null);
        assert_eq!(value("note", "7"), json!("7"));
    }

    #[test]
    fn without_a_type_it_is_json_or_text() {
        let types = ArgumentTypes::default();
        let value = |text: &str| types.value("f", "p", text);
        assert_eq!(value("1.5"), json!(1.5));
        assert_eq!(value("[1, 2]"), json!([1, 2]));
        assert_eq!(value("\"quoted\""), json!("\"quoted\""));
        assert_eq!(value("12345678901234567890123"), json!("12345678901234567890123"));
        assert_eq!(value(" text\n"), json!(" text\n"));
        assert_eq!(value("True"), json!("True"));
    }
}
