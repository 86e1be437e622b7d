//! How much a schema grows when its parts meet: `allOf` of two `anyOf` is compiled pair by pair,
//! and patterns that hold for one string become one expression, with as many states as all of
//! theirs multiplied. Counts before anything is built; does not compile.

use super::error::ConstraintError;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Bytes of schema, written out with every combination of alternatives.
const EXPANDED_BYTES_MAX: u64 = 1 << 20;
/// Patterns that may come to hold for one string. Twelve take 20 ms, twenty take 9 s.
const PATTERNS_MAX: usize = 10;
/// References followed in one place.
const REFERENCES_MAX: usize = 32;

/// Whether every place of the schema stays within the bound.
pub(super) fn check(schema: &Value) -> Result<(), ConstraintError> {
    let mut counter = Counter { root: schema, known: HashMap::new() };
    counter.visit(schema)
}

/// What one place becomes.
#[derive(Clone, Copy)]
struct Size {
    alternatives: u64,
    bytes: u64,
}

impl Size {
    const NOTHING: Self = Self { alternatives: 1, bytes: 0 };

    /// Each alternative of one beside each of the other.
    fn and(self, other: Self) -> Self {
        let alternatives = self.alternatives.saturating_mul(other.alternatives);
        let ours = self.bytes.saturating_mul(other.alternatives);
        let theirs = other.bytes.saturating_mul(self.alternatives);
        Self { alternatives, bytes: ours.saturating_add(theirs) }
    }

    /// The alternatives of both.
    fn or(self, other: Self) -> Self {
        Self {
            alternatives: self.alternatives.saturating_add(other.alternatives),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

struct Counter<'a> {
    root: &'a Value,
    known: HashMap<&'a str, Size>,
}

impl<'a> Counter<'a> {
    fn visit(&mut self, value: &'a Value) -> Result<(), ConstraintError> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item)),
            Value::Object(fields) => {
                let large = self.size(value, 0).bytes > EXPANDED_BYTES_MAX;
                if large || self.patterns_met(fields) > PATTERNS_MAX {
                    return Err(ConstraintError::TooComplex);
                }
                fields.values().try_for_each(|item| self.visit(item))
            }
            _ => Ok(()),
        }
    }

    fn size(&mut self, value: &'a Value, depth: usize) -> Size {
        let Value::Object(fields) = value else { return plain(value) };
        let mut size = Size::NOTHING;
        let mut rest = 0;
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("anyOf" | "oneOf", Value::Array(options)) => {
                    let none = Size { alternatives: 0, bytes: 0 };
                    let sizes = options.iter().map(|option| self.size(option, depth));
                    size = size.and(sizes.fold(none, Size::or));
                }
                ("allOf", Value::Array(parts)) => {
                    size = parts.iter().fold(size, |size, part| size.and(self.size(part, depth)));
                }
                ("enum", Value::Array(values)) => {
                    let alternatives = values.len() as u64;
                    size = size.and(Size { alternatives, ..plain(value) });
                }
                ("$ref", Value::String(target)) => {
                    size = size.and(self.target(target, depth));
                }
                ("$defs" | "definitions", _) => {}
                _ => rest += plain(value).bytes + keyword.len() as u64,
            }
        }
        size.and(Size { alternatives: 1, bytes: rest })
    }

    /// Different patterns within the parts of one place, when several parts have some.
    fn patterns_met(&self, fields: &'a Map<String, Value>) -> usize {
        let (mut all, mut rest, mut parts) = (HashSet::new(), HashSet::new(), 0);
        let mut add = |values: &mut dyn Iterator<Item = &'a Value>| {
            for value in values {
                let mut found = HashSet::new();
                self.patterns(value, &mut HashSet::new(), &mut found);
                parts += usize::from(!found.is_empty());
                all.extend(found);
            }
        };
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("allOf", Value::Array(list)) => add(&mut list.iter()),
                ("anyOf" | "oneOf", _) => add(&mut std::iter::once(value)),
                ("$ref", Value::String(target)) => {
                    add(&mut self.root.pointer(&target[1..]).into_iter());
                }
                ("$defs" | "definitions" | "const" | "enum", _) => {}
                ("pattern", Value::String(text)) => drop(rest.insert(text.as_str())),
                _ => self.patterns(value, &mut HashSet::new(), &mut rest),
            }
        }
        parts += usize::from(!rest.is_empty());
        all.extend(rest);
        if parts > 1 { all.len() } else { 0 }
    }

    /// Every pattern that can be reached from `value`.
    fn patterns(
        &self,
        value: &'a Value,
        followed: &mut HashSet<&'a str>,
        found: &mut HashSet<&'a str>,
    ) {
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| self.patterns(item, followed, found));
            }
            Value::Object(fields) => {
                for (keyword, value) in fields {
                    match (keyword.as_str(), value) {
                        ("pattern", Value::String(text)) => drop(found.insert(text)),
                        ("$ref", Value::String(target)) if followed.insert(target) => {
                            if let Some(value) = self.root.pointer(&target[1..]) {
                                self.patterns(value, followed, found);
                            }
                        }
                        ("$defs" | "definitions" | "const" | "enum", _) => {}
                        _ => self.patterns(value, followed, found),
                    }
                }
            }
            _ => {}
        }
    }

    fn target(&mut self, target: &'a str, depth: usize) -> Size {
        if let Some(size) = self.known.get(target) {
            return *size;
        }
        // A circle in one place says nothing new.
        self.known.insert(target, Size::NOTHING);
        let size = match (depth < REFERENCES_MAX, self.root.pointer(&target[1..])) {
            (true, Some(value)) => self.size(value, depth + 1),
            (true, None) => Size::NOTHING,
            (false, _) => Size { alternatives: 1, bytes: u64::MAX },
        };
        self.known.insert(target, size);
        size
    }
}

/// As written.
fn plain(value: &Value) -> Size {
    Size { alternatives: 1, bytes: written_bytes(value) }
}

fn written_bytes(value: &Value) -> u64 {
    let map = |fields: &Map<String, Value>| {
        fields.iter().map(|(name, value)| name.len() as u64 + 4 + written_bytes(value)).sum()
    };
    match value {
        Value::Object(fields) => map(fields),
        Value::Array(items) => items.iter().map(|item| 1 + written_bytes(item)).sum(),
        Value::String(text) => text.len() as u64 + 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn strings(count: usize) -> Value {
        (0..count).map(|at| json!({ "const": format!("text {at}") })).collect()
    }

    #[test]
    fn combinations_are_counted_before_they_are_made() {
        let many = strings(200);
        assert!(check(&json!({ "anyOf": many })).is_ok());
        assert!(check(&json!({ "anyOf": many, "type": "string" })).is_ok());
        let both = json!({ "allOf": [{ "anyOf": many }, { "anyOf": many }] });
        assert!(matches!(check(&both), Err(ConstraintError::TooComplex)));
    }

    #[test]
    fn patterns_are_counted_where_they_meet() {
        let pattern = |at: usize| json!({ "pattern": format!("a{{{at}}}") });
        let patterns = |count| (0..count).map(pattern).collect::<Value>();
        assert!(check(&json!({ "allOf": patterns(10) })).is_ok());
        assert!(check(&json!({ "allOf": patterns(11) })).is_err());
        assert!(check(&json!({ "anyOf": patterns(50), "type": "string" })).is_ok());
        let field = |at| json!({ "properties": { "name": pattern(at) } });
        let fields = (0..11).map(field).collect::<Value>();
        assert!(check(&json!({ "allOf": fields })).is_err());
        assert!(check(&json!({ "prefixItems": fields })).is_ok());
    }

    #[test]
    fn references_are_followed_once_and_not_in_circles() {
        let nested = json!({
            "$defs": {
                "a": { "anyOf": strings(40) },
                "b": { "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }] },
            },
            "allOf": [{ "$ref": "#/$defs/b" }, { "$ref": "#/$defs/b" }],
        });
        assert!(matches!(check(&nested), Err(ConstraintError::TooComplex)));
        let circle = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/a" } } });
        assert!(check(&circle).is_ok());
    }
}
