//! Schemas of the keywords there are, put together at will: many are refused, and those that are
//! taken combine what no person would.

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};

/// Schemas in schemas.
const DEPTH_MAX: usize = 4;
const NAMES: [&str; 6] = ["a", "b", "ab", "name", "\u{e9}", "a\"b"];
const PATTERNS: [&str; 12] = [
    "^a",
    "b$",
    r"^\d{1,3}$",
    "^[a-c]*$",
    "^(foo|bar)$",
    r"^[^\x22]+$",
    ".",
    r"^\w+-\w+$",
    "^$",
    "a|b",
    r"^[\u00e0-\u00ff]{2}$",
    r"\s",
];
const FORMATS: [&str; 11] = [
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uuid",
    "regex",
];

/// One whole schema, definitions included.
pub(crate) fn schema(choices: &mut Unstructured<'_>) -> Result<Value> {
    let mut whole = object(choices, 0)?;
    if choices.ratio(1, 3)? {
        let definitions = json!({ "d": object(choices, 1)?, "e": object(choices, 1)? });
        whole.insert("$defs".into(), definitions);
    }
    Ok(whole.into())
}

fn any(choices: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    match choices.int_in_range(0..=15)? {
        0 => Ok(Value::Bool(choices.arbitrary()?)),
        _ => Ok(object(choices, depth)?.into()),
    }
}

/// Keywords of one kind, sometimes of two.
fn object(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let mut keywords = kind(choices, depth)?;
    if choices.ratio(1, 5)? {
        keywords.extend(kind(choices, depth + 1)?);
    }
    Ok(keywords)
}

fn kind(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let leaf = depth >= DEPTH_MAX;
    match choices.int_in_range(0..=if leaf { 4 } else { 9 })? {
        0 | 1 => text(choices),
        2 => number(choices),
        3 => typed(*choices.choose(&["null", "boolean", "integer", "number", "string"])?),
        4 => fixed(choices),
        5 => array(choices, depth + 1),
        6 | 7 => map(choices, depth + 1),
        8 => several(choices, depth + 1),
        _ => rare(choices, depth + 1),
    }
}

fn typed(name: &str) -> Result<Map<String, Value>> {
    Ok(Map::from_iter([("type".to_owned(), json!(name))]))
}

/// Puts a keyword in, one time in three.
fn perhaps(
    keywords: &mut Map<String, Value>,
    choices: &mut Unstructured<'_>,
    name: &str,
    value: impl FnOnce(&mut Unstructured<'_>) -> Result<Value>,
) -> Result<()> {
    if choices.ratio(1, 3)? {
        keywords.insert(name.to_owned(), value(choices)?);
    }
    Ok(())
}

fn small(choices: &mut Unstructured<'_>) -> Result<Value> {
    Ok(json!(choices.int_in_range(0..=5)?))
}

fn text(choices: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
    let mut keywords = typed("string")?;
    perhaps(&mut keywords, choices, "minLength", small)?;
    perhaps(&mut keywords, choices, "maxLength", small)?;
    perhaps(&mut keywords, choices, "pattern", |c| Ok(json!(c.choose(&PATTERNS)?)))?;
    perhaps(&mut keywords, choices, "format", |c| Ok(json!(c.choose(&FORMATS)?)))?;
    Ok(keywords)
}

fn number(choices: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
    let bound = |c: &mut Unstructured<'_>| match c.int_in_range(0..=4)? {
        0 => Ok(json!(c.arbitrary::<i8>()?)),
        1 => Ok(json!(f64::from(c.arbitrary::<i16>()?) / 100.0)),
        2 => Ok(json!(c.arbitrary::<i64>()?)),
        3 => Ok(json!(*c.choose(&[0.0, -0.0, 0.1, 1e3, -1.5, 1e20, 1e-7])?)),
        _ => small(c),
    };
    let mut keywords = typed(*choices.choose(&["integer", "number"])?)?;
    for name in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        perhaps(&mut keywords, choices, name, bound)?;
    }
    Ok(keywords)
}

fn fixed(choices: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
    let value = |c: &mut Unstructured<'_>| {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1.5),
            json!(""),
            json!("a"),
            json!("\u{e9}\"\\\n"),
            json!([1, "a"]),
            json!({ "a": 1, "b": [] }),
            json!([]),
            json!({}),
            json!(12_345_678_901_234_i64),
        ];
        Ok(c.choose(&values)?.clone())
    };
    if choices.arbitrary()? {
        return Ok(Map::from_iter([("const".to_owned(), value(choices)?)]));
    }
    let count = choices.int_in_range(1..=4)?;
    let values = (0..count).map(|_| value(choices)).collect::<Result<Vec<_>>>()?;
    Ok(Map::from_iter([("enum".to_owned(), values.into())]))
}

fn list(choices: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let count = choices.int_in_range(1..=3)?;
    Ok((0..count).map(|_| any(choices, depth)).collect::<Result<Vec<_>>>()?.into())
}

fn array(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let mut keywords = typed("array")?;
    perhaps(&mut keywords, choices, "items", |c| any(c, depth))?;
    perhaps(&mut keywords, choices, "prefixItems", |c| list(c, depth))?;
    perhaps(&mut keywords, choices, "minItems", small)?;
    perhaps(&mut keywords, choices, "maxItems", small)?;
    Ok(keywords)
}

fn names(choices: &mut Unstructured<'_>) -> Result<Value> {
    let count = choices.int_in_range(0..=3)?;
    let names = (0..count).map(|_| Ok(json!(choices.choose(&NAMES)?)));
    Ok(names.collect::<Result<Vec<_>>>()?.into())
}

fn map(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let by = |c: &mut Unstructured<'_>, keys: &[&str]| {
        let count = c.int_in_range(0..=3)?;
        let one = |_| Ok(((*c.choose(keys)?).to_owned(), any(c, depth)?));
        Ok((0..count).map(one).collect::<Result<Map<_, _>>>()?.into())
    };
    let mut keywords = typed("object")?;
    if choices.ratio(4, 5)? {
        keywords.insert("properties".into(), by(choices, &NAMES)?);
    }
    perhaps(&mut keywords, choices, "required", names)?;
    perhaps(&mut keywords, choices, "additionalProperties", |c| any(c, depth))?;
    perhaps(&mut keywords, choices, "patternProperties", |c| by(c, &PATTERNS))?;
    perhaps(&mut keywords, choices, "minProperties", small)?;
    perhaps(&mut keywords, choices, "maxProperties", small)?;
    Ok(keywords)
}

fn several(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let name = *choices.choose(&["anyOf", "oneOf", "allOf"])?;
    Ok(Map::from_iter([(name.to_owned(), list(choices, depth)?)]))
}

/// References, several types at once, and keywords that nothing enforces.
fn rare(choices: &mut Unstructured<'_>, depth: usize) -> Result<Map<String, Value>> {
    let (name, value) = match choices.int_in_range(0..=7)? {
        0..=3 => ("$ref", json!(choices.choose(&["#/$defs/d", "#/$defs/e", "#"])?)),
        4 | 5 => ("type", json!(["string", *choices.choose(&["null", "integer", "array"])?])),
        6 => ("not", any(choices, depth)?),
        _ => ("uniqueItems", json!(choices.arbitrary::<bool>()?)),
    };
    Ok(Map::from_iter([(name.to_owned(), value)]))
}
