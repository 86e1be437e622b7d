//! Formats and forced calls as grammars. llama.cpp's converter reads the schema; what
//! it cannot express is refused.

use super::prompt::Tools;
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{ChatRequest, ResponseFormat};
use motley_engine::{Grammar, GrammarError, schema_grammar};
use serde_json::{Value, json};

/// Largest schema, written out.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// The converter's regular expressions recurse once per character of a name.
const CONVERTER_STACK_BYTES: usize = 64 << 20;

/// GBNF of what the response must look like, if anything.
pub(crate) fn grammar(
    request: &ChatRequest,
    tools: &Tools<'_>,
) -> Result<Option<String>, ApiError> {
    let (param, schema) = match (tools.is_forced(), &request.response_format) {
        (true, _) => ("tools", call_schema(tools)),
        (false, None | Some(ResponseFormat::Text)) => return Ok(None),
        (false, Some(ResponseFormat::JsonObject)) => {
            ("response_format", json!({ "type": "object" }))
        }
        (false, Some(ResponseFormat::JsonSchema { json_schema })) => {
            ("response_format", json_schema.schema.clone())
        }
    };
    if !schema.is_object() {
        return Err(ApiError::invalid(param, "a schema must be a JSON object"));
    }
    if !patterns(&schema).iter().all(|pattern| is_plain(pattern)) {
        return Err(ApiError::invalid(
            param,
            "a `pattern` uses features that grammars cannot express",
        ));
    }
    let written = schema.to_string();
    if written.len() > SCHEMA_BYTES_MAX {
        let message = format!("a schema may have at most {SCHEMA_BYTES_MAX} bytes");
        return Err(ApiError::invalid(param, message));
    }
    let gbnf = convert(written).map_err(|error| ApiError::invalid(param, error.to_string()))?;
    Ok(Some(gbnf))
}

/// A grammar at its beginning.
pub(crate) fn compile(app: &App, gbnf: &str) -> Result<Grammar, ApiError> {
    let grammar = app.batching.engine().grammar(gbnf);
    grammar.map_err(|error| ApiError::invalid("response_format", error.to_string()))
}

/// `{"name": …, "arguments": …}` of one of the tools.
fn call_schema(tools: &Tools<'_>) -> Value {
    let one = |tool: &crate::wire::Tool| {
        let any = json!({ "type": "object" });
        let arguments = tool.function.parameters.clone().unwrap_or(any);
        json!({
            "type": "object",
            "properties": { "name": { "const": tool.function.name }, "arguments": arguments },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    };
    let mut all: Vec<Value> = tools.list().iter().map(one).collect();
    match all.len() {
        1 => all.remove(0),
        _ => json!({ "anyOf": all }),
    }
}

/// Regular expressions anywhere in the schema.
fn patterns(schema: &Value) -> Vec<&str> {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("pattern").and_then(Value::as_str);
            own.into_iter().chain(fields.values().flat_map(patterns)).collect()
        }
        Value::Array(items) => items.iter().flat_map(patterns).collect(),
        _ => Vec::new(),
    }
}

/// Whether the converter takes a pattern as it is: it would accept any string instead
/// of one it does not understand, and write it to stderr.
fn is_plain(pattern: &str) -> bool {
    let mut depth = 0_i32;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c) if "dwsn.-+*?()[]{}|/^$\\\"".contains(c) => {}
                _ => return false,
            },
            '(' if chars.peek() == Some(&'?') => return false,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0 && pattern.starts_with('^') && pattern.ends_with('$')
}

fn convert(schema: String) -> Result<String, GrammarError> {
    let thread = std::thread::Builder::new().stack_size(CONVERTER_STACK_BYTES);
    let converting = thread.spawn(move || schema_grammar(&schema));
    let converted = converting.map_err(|_| GrammarError::Schema)?.join();
    converted.unwrap_or(Err(GrammarError::Schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_looked_at_wherever_they_are() {
        let schema = json!({ "items": [{ "pattern": "^a$" }], "properties": { "x": { "pattern": "(?=b)" } } });
        assert_eq!(patterns(&schema), ["^a$", "(?=b)"]);
        for plain in ["^[a-z]{2}-\\d+$", "^(a|b)*$", "^$"] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in ["a", "^(?=a)$", "^\\bword$", "^(a$", "^a)($", "^\\1$", "^\\"] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn hostile_schemas_are_errors_and_nothing_worse() {
        let long_name = "é".repeat(30_000);
        let deep = (0..100).fold(
            json!({ "type": "string" }),
            |inner, _| json!({ "type": "array", "items": inner }),
        );
        for schema in [
            json!({ "type": "object", "properties": { long_name.clone(): { "type": "string" } } }),
            json!({ "const": long_name }),
            json!({ "type": "string", "pattern": "^(((a{9}){9}){9}){9}$" }),
            json!({ "type": "string", "pattern": "(" }),
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 4_000_000_000_u64 }),
            json!({ "$ref": "https://example.com/schema.json" }),
            json!({ "$ref": "#" }),
            json!({ "type": ["string", 7] }),
            deep,
        ] {
            // Either is fine; a crash is not.
            let _ = convert(schema.to_string()).map(|grammar| assert!(grammar.contains("root")));
        }
    }
}
