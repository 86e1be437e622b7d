//! Which JSON schemas are taken, keyword by keyword: what would not be enforced is refused by
//! name, the rest is written anew in one dialect (2020-12) with patterns and formats spelled out.
//! Compiles nothing.

use super::error::ConstraintError;
use super::{expansion, format, pattern};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;

/// Largest schema, written out.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Patterns of names in one schema: each is compared with each other. A hundred take 0.6 s.
const PATTERN_PROPERTIES_MAX: usize = 64;

/// Least common multiple of every `multipleOf`, in units of the last decimal place of any: states
/// of the machine that divides as digits come. 999,983 took 51 s.
const MULTIPLES_MAX: u64 = 1000;

/// Keywords of JSON Schema's drafts that say something about a value and are not enforced. What
/// no draft knows is an annotation, as the standard has it, and left out.
const REFUSED: [&str; 22] = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "propertyNames",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
    "contentSchema",
    "extends",
    "disallow",
    "divisibleBy",
    "$anchor",
    "$dynamicAnchor",
];

/// The schema as it is enforced, or the keyword that keeps it from being.
pub(super) fn accepted(schema: &Value) -> Result<Value, ConstraintError> {
    if schema.to_string().len() > SCHEMA_BYTES_MAX {
        return Err(ConstraintError::TooLarge { limit_bytes: SCHEMA_BYTES_MAX });
    }
    let mut reader = Reader::default();
    let written = reader.schema(schema, "#")?;
    for (at, target) in &reader.references {
        if !reader.schemas.contains(target) {
            return Err(refused("$ref", at, "must name a schema in this document (`#/…`)"));
        }
    }
    if reader.pattern_properties > PATTERN_PROPERTIES_MAX || !reader.multiples_are_small() {
        return Err(ConstraintError::TooComplex);
    }
    expansion::check(&written)?;
    Ok(written)
}

/// Walks a schema once.
#[derive(Default)]
struct Reader {
    /// Pointers (`#/…`) of every schema seen.
    schemas: HashSet<String>,
    /// Where a reference stands, and what it names.
    references: Vec<(String, String)>,
    pattern_properties: usize,
    /// Every `multipleOf`, as written.
    multiples: Vec<String>,
}

impl Reader {
    fn schema(&mut self, value: &Value, at: &str) -> Result<Value, ConstraintError> {
        self.schemas.insert(at.to_owned());
        let Value::Object(fields) = value else {
            let unnamed = at.rsplit('/').next().unwrap_or_default();
            return match value {
                Value::Bool(_) => Ok(value.clone()),
                _ => Err(refused(unnamed, at, "a schema must be an object, `true` or `false`")),
            };
        };
        let mut written = Map::new();
        for (keyword, value) in fields {
            self.keyword(keyword, value, at, fields, &mut written)?;
        }
        Ok(Value::Object(written))
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &str,
        all: &Map<String, Value>,
        written: &mut Map<String, Value>,
    ) -> Result<(), ConstraintError> {
        match keyword {
            "uniqueItems" if value == &Value::Bool(false) => Ok(()),
            _ if REFUSED.contains(&keyword) => {
                Err(refused(keyword, at, "is not enforced here, so it is not taken"))
            }
            "$id" | "id" if at != "#" && value.is_string() => {
                Err(refused(keyword, at, "is taken in the outermost schema only"))
            }
            "items" | "prefixItems" | "additionalItems" => {
                self.items(keyword, value, at, all, written)
            }
            "minProperties" => {
                at_least(value, at, all)?;
                put(written, keyword, value.clone());
                Ok(())
            }
            "format" => {
                let pattern = format_of(value, at)?;
                match written.get_mut("allOf").and_then(Value::as_array_mut) {
                    Some(all) => all.push(pattern),
                    None => put(written, "allOf", Value::Array(vec![pattern])),
                }
                Ok(())
            }
            _ => {
                let taken = self.taken(keyword, value, at)?;
                taken.into_iter().for_each(|value| put(written, keyword, value));
                Ok(())
            }
        }
    }

    /// What a keyword that stands by itself is enforced as; `None` for an annotation.
    fn taken(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &str,
    ) -> Result<Option<Value>, ConstraintError> {
        Ok(Some(match keyword {
            "properties" | "$defs" | "definitions" => self.map(keyword, value, at)?,
            "patternProperties" => self.pattern_map(value, at)?,
            "additionalProperties" => self.schema(value, &format!("{at}/{keyword}"))?,
            "anyOf" | "oneOf" | "allOf" => self.list(keyword, value, at)?,
            "pattern" => Value::String(enforced(keyword, at, text(keyword, value, at)?)?),
            "$ref" => {
                let target = reference(text(keyword, value, at)?, at)?;
                self.references.push((at.to_owned(), target.clone()));
                Value::String(target)
            }
            "multipleOf" => {
                literal(keyword, value, at)?;
                self.multiples.push(value.to_string());
                value.clone()
            }
            "const" | "enum" | "required" | "minimum" | "maximum" | "exclusiveMinimum"
            | "exclusiveMaximum" => {
                literal(keyword, value, at)?;
                value.clone()
            }
            "type" | "minLength" | "maxLength" | "minItems" | "maxItems" | "maxProperties" => {
                value.clone()
            }
            _ => return Ok(None),
        }))
    }

    fn map(&mut self, keyword: &str, value: &Value, at: &str) -> Result<Value, ConstraintError> {
        let Value::Object(fields) = value else {
            return Err(refused(keyword, at, "must be an object"));
        };
        let mut written = Map::new();
        for (name, schema) in fields {
            writable(keyword, name, at)?;
            let schema = self.schema(schema, &format!("{at}/{keyword}/{name}"))?;
            written.insert(name.clone(), schema);
        }
        Ok(Value::Object(written))
    }

    fn pattern_map(&mut self, value: &Value, at: &str) -> Result<Value, ConstraintError> {
        let keyword = "patternProperties";
        let Value::Object(fields) = self.map(keyword, value, at)? else { return Ok(Value::Null) };
        self.pattern_properties += fields.len();
        let mut written = Map::new();
        for (pattern, schema) in fields {
            let pattern = enforced(keyword, at, &pattern)?;
            if written.insert(pattern, schema).is_some() {
                return Err(refused(keyword, at, "has the same pattern twice"));
            }
        }
        Ok(Value::Object(written))
    }

    fn list(&mut self, keyword: &str, value: &Value, at: &str) -> Result<Value, ConstraintError> {
        let Value::Array(items) = value else {
            return Err(refused(keyword, at, "must be an array of schemas"));
        };
        let one = |(index, item)| self.schema(item, &format!("{at}/{keyword}/{index}"));
        items.iter().enumerate().map(one).collect::<Result<_, _>>().map(Value::Array)
    }

    fn multiples_are_small(&self) -> bool {
        let decimals = |text: &String| text.split_once('.').map_or(0, |(_, tail)| tail.len());
        let places = self.multiples.iter().map(decimals).max().unwrap_or(0);
        let scaled = |text: &String| {
            let digits: String = text.chars().filter(|c| *c != '.').collect();
            let zeros = u32::try_from(places - decimals(text)).ok()?;
            digits.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(zeros)?)
        };
        let multiples: Option<Vec<u64>> = self.multiples.iter().map(scaled).collect();
        let common = multiples.and_then(|all| {
            all.into_iter().try_fold(1_u64, |common, one| match gcd(common, one) {
                0 => None,
                shared => (common / shared).checked_mul(one),
            })
        });
        common.is_some_and(|common| common <= MULTIPLES_MAX)
    }

    /// Tuples of older drafts (`items` as an array, `additionalItems`) in the words of the newest.
    fn items(
        &mut self,
        keyword: &str,
        value: &Value,
        at: &str,
        all: &Map<String, Value>,
        written: &mut Map<String, Value>,
    ) -> Result<(), ConstraintError> {
        let old = all.get("items").is_some_and(Value::is_array);
        let (name, schema) = match (keyword, old) {
            ("prefixItems", true) => {
                return Err(refused(keyword, at, "stands beside `items` as an array"));
            }
            ("items", true) => ("prefixItems", self.list(keyword, value, at)?),
            ("prefixItems", false) => (keyword, self.list(keyword, value, at)?),
            ("additionalItems", true) | ("items", false) => {
                ("items", self.schema(value, &format!("{at}/{keyword}"))?)
            }
            // Without a tuple it says nothing, by the drafts that have it.
            _ => return Ok(()),
        };
        written.insert(name.to_owned(), schema);
        Ok(())
    }
}

fn refused(keyword: &str, at: &str, why: &str) -> ConstraintError {
    ConstraintError::Refused { keyword: keyword.into(), at: at.into(), why: why.into() }
}

fn text<'a>(keyword: &str, value: &'a Value, at: &str) -> Result<&'a str, ConstraintError> {
    value.as_str().ok_or_else(|| refused(keyword, at, "must be a string"))
}

fn enforced(keyword: &str, at: &str, text: &str) -> Result<String, ConstraintError> {
    pattern::translated(text).map_err(|what| {
        let why = format!("has a regular expression with what is not enforced here: {what}");
        refused(keyword, at, &why)
    })
}

/// Adds to what a format may have put there; the schema's own places keep their numbers.
fn put(written: &mut Map<String, Value>, keyword: &str, mut value: Value) {
    if let (Some(Value::Array(before)), Value::Array(list)) = (written.get(keyword), &mut value) {
        list.extend(before.iter().cloned());
    }
    written.insert(keyword.to_owned(), value);
}

/// A format becomes one more pattern.
fn format_of(value: &Value, at: &str) -> Result<Value, ConstraintError> {
    let name = text("format", value, at)?;
    let Some(pattern) = format::pattern(name) else {
        let why = format!("is not one of those enforced here: {}", format::FORMATS);
        return Err(refused("format", at, &why));
    };
    Ok(Value::Object(Map::from_iter([("pattern".to_owned(), Value::String(pattern))])))
}

/// A pointer into this document, spelled without escapes.
fn reference(target: &str, at: &str) -> Result<String, ConstraintError> {
    let local = target == "#" || target.starts_with("#/");
    if !local || target.contains(['~', '%']) {
        return Err(refused("$ref", at, "must name a schema in this document (`#/…`)"));
    }
    Ok(if target == "#/" { "#".to_owned() } else { target.to_owned() })
}

/// A name may come twice in an answer, so that only names that are listed count for sure.
fn at_least(value: &Value, at: &str, all: &Map<String, Value>) -> Result<(), ConstraintError> {
    let least = value.as_u64().unwrap_or(u64::MAX);
    let required = all.get("required").and_then(Value::as_array);
    let required = required.map_or(0, |names| names.iter().collect::<HashSet<_>>().len());
    let closed = all.get("additionalProperties") == Some(&Value::Bool(false))
        && !all.contains_key("patternProperties");
    match least <= 1 || least <= required as u64 || closed {
        true => Ok(()),
        false => {
            let why = "above 1 is enforced with `additionalProperties` false only";
            Err(refused("minProperties", at, why))
        }
    }
}

/// Whether a value can be written as it is. Numbers are compared as doubles, so that one that is
/// none would be enforced as its neighbour.
fn literal(keyword: &str, value: &Value, at: &str) -> Result<(), ConstraintError> {
    match value {
        Value::Number(number) if !is_double(number) => {
            Err(refused(keyword, at, "has a number of more digits than are enforced"))
        }
        Value::String(text) => writable(keyword, text, at),
        Value::Array(items) => items.iter().try_for_each(|item| literal(keyword, item, at)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, item)| {
            writable(keyword, name, at).and_then(|()| literal(keyword, item, at))
        }),
        _ => Ok(()),
    }
}

fn writable(keyword: &str, text: &str, at: &str) -> Result<(), ConstraintError> {
    match text.chars().all(pattern::is_writable) {
        true => Ok(()),
        false => Err(refused(keyword, at, "has a control character, which answers never hold")),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn is_double(number: &Number) -> bool {
    let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    whole.is_none_or(|whole| (whole as f64) as i128 == whole)
}
