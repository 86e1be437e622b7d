//! The reference of the server's API, made from its OpenAPI document: one section per route, one
//! table per type. Knows nothing of the server.

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::fmt::Write as _;

const HEAD: &str = "\
<!-- Made by `cargo xtask docs` from the server's OpenAPI document; edits are lost. -->

# API of the server

What `motley serve` answers. The same as a document for programs: `/openapi.json` of a running
server, or `motley openapi` without one. [Serve a team](../guide/serve.md) says how to set it up.

";

/// In which order methods of a path are shown.
const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];

/// The page, of a document as JSON.
pub(super) fn page(document: &str) -> Result<String> {
    let document: Value = serde_json::from_str(document).context("the server's document")?;
    let mut page = HEAD.to_owned();
    page += "## Routes\n\n";
    for (path, operations) in object(&document["paths"]) {
        for method in METHODS {
            if let Some(operation) = operations.get(method) {
                route(&mut page, method, path, operation);
            }
        }
    }
    page += "## Types\n\n";
    for (name, schema) in object(&document["components"]["schemas"]) {
        type_section(&mut page, name, schema);
    }
    page.truncate(page.trim_end().len());
    Ok(page + "\n")
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn route(page: &mut String, method: &str, path: &str, operation: &Value) {
    let _ = write!(page, "### {} {path}\n\n", method.to_uppercase());
    for field in ["summary", "description"] {
        if let Some(text) = operation[field].as_str() {
            let _ = write!(page, "{}\n\n", one_line(text));
        }
    }
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let about = parameter["description"].as_str().unwrap_or_default();
        let place = parameter["in"].as_str().unwrap_or_default();
        let _ = write!(page, "* `{name}` ({place}) {}\n\n", one_line(about));
    }
    let body = contents(&operation["requestBody"]);
    if !body.is_empty() {
        let _ = write!(page, "Body: {body}.\n\n");
    }
    page.push_str("| status | answer |\n|---|---|\n");
    for (status, response) in object(&operation["responses"]) {
        let about = one_line(response["description"].as_str().unwrap_or_default());
        let parts = [about, contents(response)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let _ = writeln!(page, "| {status} | {} |", cell(&parts.join(": ")));
    }
    page.push('\n');
}

/// Types of a body, by media type.
fn contents(holder: &Value) -> String {
    let kinds =
        object(&holder["content"]).map(|(media, content)| match type_of(&content["schema"]) {
            shown if shown.is_empty() => format!("`{media}`"),
            shown => format!("{shown} as `{media}`"),
        });
    kinds.collect::<Vec<_>>().join(", or ")
}

fn type_section(page: &mut String, name: &str, schema: &Value) {
    let _ = write!(page, "### {name}\n\n");
    if let Some(text) = schema["description"].as_str() {
        let _ = write!(page, "{}\n\n", one_line(text));
    }
    let (mut fields, mut others) = (Vec::new(), Vec::new());
    gather(schema, &mut fields, &mut others);
    if fields.is_empty() && others.is_empty() {
        others.push(type_of(schema));
    }
    if !others.is_empty() {
        let _ = write!(page, "{}\n\n", others.join("; "));
    }
    if fields.is_empty() {
        return;
    }
    page.push_str("| field | type | |\n|---|---|---|\n");
    for Field { name, schema, required } in fields {
        let about = one_line(schema["description"].as_str().unwrap_or_default());
        let must = if required { "**required.** " } else { "" };
        let shown = cell(&type_of(schema));
        let _ = writeln!(page, "| `{name}` | {shown} | {must}{} |", cell(&about));
    }
    page.push('\n');
}

struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

/// Fields of a type and of the types it is put together from; of types that are named, the name.
fn gather<'a>(schema: &'a Value, fields: &mut Vec<Field<'a>>, others: &mut Vec<String>) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, schema) in object(&schema["properties"]) {
        fields.push(Field { name, schema, required: required.contains(&name.as_str()) });
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        match part["$ref"].as_str() {
            Some(_) => others.push(format!("All of {}", type_of(part))),
            None => gather(part, fields, others),
        }
    }
}

/// A type in words: a name with a link, or what JSON it is.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{})", super::markdown::anchor(name));
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" or ");
    }
    for (key, between) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(kinds) = schema[key].as_array() {
            return kinds.iter().map(type_of).collect::<Vec<_>>().join(between);
        }
    }
    match &schema["type"] {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            let shown: Vec<String> = kinds.map(|kind| plain(kind, schema)).collect();
            shown.join(" or ")
        }
        Value::String(kind) => plain(kind, schema),
        _ if schema.as_object().is_some_and(Map::is_empty) => "any JSON".into(),
        _ => String::new(),
    }
}

fn plain(kind: &str, schema: &Value) -> String {
    match kind {
        "null" => "null".into(),
        "array" => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["properties"].is_object() => inline(schema),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", type_of(&schema["additionalProperties"]))
        }
        "object" => "object".into(),
        kind => kind.into(),
    }
}

/// An object without a name, by its fields.
fn inline(schema: &Value) -> String {
    let fields = object(&schema["properties"]).map(|(name, schema)| match type_of(schema) {
        shown if shown.is_empty() => format!("`{name}`"),
        shown => format!("`{name}`: {shown}"),
    });
    format!("object with {}", fields.collect::<Vec<_>>().join(", "))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A bar would end the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn routes_and_types_become_sections() {
        let document = json!({
            "paths": { "/v1/x": { "post": {
                "summary": "Does x.",
                "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/X" } } } },
                "responses": { "200": { "description": "" , "content": { "text/plain": {} } } },
            } } },
            "components": { "schemas": { "X": {
                "description": "An x.",
                "required": ["n"],
                "properties": {
                    "n": { "type": ["integer", "null"], "description": "How\nmany." },
                    "kinds": { "type": "array", "items": { "enum": ["a|b"] } },
                },
            } } },
        });
        let page = page(&document.to_string()).unwrap();
        for line in [
            "### POST /v1/x",
            "Body: [X](#x) as `application/json`.",
            "| 200 | `text/plain` |",
            "| `n` | integer | **required.** How many. |",
            "| `kinds` | list of `\"a\\|b\"` |  |",
        ] {
            assert!(page.contains(line), "{line} in\n{page}");
        }
    }
}
