//! Formats and forced calls as constraints. Which schemas are taken is the engine's to say;
//! what it refuses is refused here.

use super::prompt::Tools;
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{ChatRequest, ResponseFormat};
use motley_engine::Constraint;
use serde_json::{Value, json};

/// What the response must look like, if anything.
pub(crate) fn constraint(
    app: &App,
    request: &ChatRequest,
    tools: &Tools<'_>,
) -> Result<Option<Constraint>, ApiError> {
    let Some((param, schema)) = schema(request, tools) else { return Ok(None) };
    if !schema.is_object() {
        return Err(ApiError::invalid(param, "a schema must be a JSON object"));
    }
    let constraint = app.batching.engine().constraint(&schema);
    constraint.map(Some).map_err(|error| ApiError::invalid(param, error.to_string()))
}

/// The schema, and the field it came in.
fn schema(request: &ChatRequest, tools: &Tools<'_>) -> Option<(&'static str, Value)> {
    match (tools.is_forced(), &request.response_format) {
        (true, _) => Some(("tools", call_schema(tools))),
        (false, None | Some(ResponseFormat::Text)) => None,
        (false, Some(ResponseFormat::JsonObject)) => {
            Some(("response_format", json!({ "type": "object" })))
        }
        (false, Some(ResponseFormat::JsonSchema { json_schema })) => {
            Some(("response_format", json_schema.schema.clone()))
        }
    }
}

/// `{"name": …, "arguments": …}` of one of the tools.
fn call_schema(tools: &Tools<'_>) -> Value {
    let tools = tools.list();
    let one = |(index, tool): (usize, &crate::wire::Tool)| {
        let any = json!({ "type": "object" });
        let mut arguments = tool.function.parameters.clone().map_or(any, Value::Object);
        let inside = match tools.len() {
            1 => "#/properties/arguments".to_owned(),
            _ => format!("#/anyOf/{index}/properties/arguments"),
        };
        move_references(&mut arguments, &inside);
        json!({
            "type": "object",
            "properties": { "name": { "const": tool.function.name }, "arguments": arguments },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    };
    let mut all: Vec<Value> = tools.iter().enumerate().map(one).collect();
    match all.len() {
        1 => all.remove(0),
        _ => json!({ "anyOf": all }),
    }
}

/// Parameters are a document of their own; `#` in them is where they stand now.
fn move_references(schema: &mut Value, inside: &str) {
    match schema {
        Value::Object(fields) => {
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(target)) => {
                        if let Some(pointer) = target.strip_prefix('#') {
                            *target = format!("{inside}{pointer}");
                        }
                    }
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (_, value) => move_references(value, inside),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, inside)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_parameters_stay_within_them() {
        let mut schema = json!({
            "properties": { "a": { "$ref": "#/$defs/x" }, "b": { "$ref": "#" } },
            "$defs": { "x": { "const": { "$ref": "#/y" } } },
        });
        move_references(&mut schema, "#/properties/arguments");
        let expected = json!({
            "properties": {
                "a": { "$ref": "#/properties/arguments/$defs/x" },
                "b": { "$ref": "#/properties/arguments" },
            },
            "$defs": { "x": { "const": { "$ref": "#/y" } } },
        });
        assert_eq!(schema, expected);
    }
}
