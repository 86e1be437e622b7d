//! Formats, grammars and forced calls as constraints. Which of them are taken is the engine's to say;
//! what it refuses is refused here.

use super::prompt::Tools;
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{ChatRequest, FormFields, ResponseFormat};
use motley_engine::{Constraint, TextForm};
use serde_json::{Value, json};

/// What the response must look like, if anything.
pub(crate) fn constraint(
    app: &App,
    request: &ChatRequest,
    tools: &Tools<'_>,
) -> Result<Option<Constraint>, ApiError> {
    let schema = schema(request, tools).map(|(param, schema)| (param, Form::Schema(schema)));
    let all = schema.into_iter().chain(forms(&request.form)?);
    one_of(all.collect())?.map(|form| compiled(app, form)).transpose()
}

/// What a continuation must look like, if anything.
pub(crate) fn text_constraint(
    app: &App,
    fields: &FormFields,
) -> Result<Option<Constraint>, ApiError> {
    one_of(forms(fields)?)?.map(|form| compiled(app, form)).transpose()
}

/// A form, and the field it came in.
type NamedForm<'a> = (&'static str, Form<'a>);

enum Form<'a> {
    Schema(Value),
    Text(TextForm<'a>),
}

fn one_of(mut forms: Vec<NamedForm<'_>>) -> Result<Option<NamedForm<'_>>, ApiError> {
    if let [(first, _), (second, _), ..] = forms[..] {
        let words = format!("`{second}` cannot be asked for beside `{first}`: one form at most");
        return Err(ApiError::invalid(second, words));
    }
    Ok(forms.pop())
}

fn compiled(app: &App, (param, form): NamedForm<'_>) -> Result<Constraint, ApiError> {
    let engine = app.batching.engine();
    let constraint = match form {
        Form::Schema(schema) if !schema.is_object() => {
            return Err(ApiError::invalid(param, "a schema must be a JSON object"));
        }
        Form::Schema(schema) => engine.constraint(&schema),
        Form::Text(form) => engine.text_constraint(form),
    };
    constraint.map_err(|error| ApiError::invalid(param, format!("`{param}`: {error}")))
}

/// All fields that say what a text must look like.
fn forms(fields: &FormFields) -> Result<Vec<NamedForm<'_>>, ApiError> {
    // Clients of llama.cpp send an empty grammar for none.
    fn grammar(text: &Option<String>) -> Option<Form<'_>> {
        let text = text.as_deref().filter(|text| !text.is_empty());
        text.map(|text| Form::Text(TextForm::Grammar(text)))
    }
    fn regex(text: &Option<String>) -> Option<Form<'_>> {
        text.as_deref().map(|text| Form::Text(TextForm::Regex(text)))
    }
    fn choice(texts: &Option<Vec<String>>) -> Option<Form<'_>> {
        texts.as_deref().map(|texts| Form::Text(TextForm::Choice(texts)))
    }
    let mut forms = vec![
        ("grammar", grammar(&fields.grammar)),
        ("regex", regex(&fields.regex)),
        ("guided_regex", regex(&fields.guided_regex)),
        ("guided_choice", choice(&fields.guided_choice)),
    ];
    if let Some(outputs) = &fields.structured_outputs {
        let json = outputs.json.clone().map(Form::Schema);
        let all = [json, regex(&outputs.regex), choice(&outputs.choice), grammar(&outputs.grammar)];
        if all.iter().all(Option::is_none) {
            let words = "`structured_outputs` needs one of `json`, `regex`, `choice`, `grammar`";
            return Err(ApiError::invalid("structured_outputs", words));
        }
        forms.extend(all.map(|form| ("structured_outputs", form)));
    }
    Ok(forms.into_iter().filter_map(|(param, form)| Some((param, form?))).collect())
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
