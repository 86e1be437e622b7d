//! JSON as models write it. What is not quite JSON is mended where only one meaning is possible: a
//! missing brace at the end, one too many, a comma before a brace, a line break inside a string.

use super::parsed::Call;
use serde_json::Value;

/// Brackets that may be missing at the end of a text that a mark ends.
const MISSING_MAX: usize = 8;

/// How the text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By a mark: nothing more was meant to come.
    Marked,
    /// With the output, which may have been cut off.
    Open,
}

/// JSON, or why there is none.
#[derive(Debug, PartialEq)]
pub(super) enum Json<T> {
    Is(T),
    /// The text ends inside a string: a mark after it is part of that string.
    InString,
    Not,
}

/// Calls as JSON objects or lists of them, one after the other, `between` or commas between them.
pub(super) fn calls(text: &str, between: &[&str], end: End) -> Json<Vec<Call>> {
    let (mut rest, mut found) = (after(text, between), Vec::new());
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = match values.next() {
            Some(Ok(value)) => {
                // A bracket too many.
                let past = rest[values.byte_offset()..].trim_start();
                rest = after(past.trim_start_matches(['}', ']']), between);
                value
            }
            _ => match mended(without(rest, between), end) {
                Json::Is(value) => {
                    rest = "";
                    value
                }
                Json::InString => return Json::InString,
                Json::Not => return Json::Not,
            },
        };
        let list = if let Value::Array(list) = value { list } else { vec![value] };
        for value in &list {
            let Some(call) = Call::from_marked_json(value) else { return Json::Not };
            found.push(call);
        }
    }
    if found.is_empty() { Json::Not } else { Json::Is(found) }
}

/// Arguments that stand alone: an object, the text of one in a string, or nothing.
pub(super) fn arguments(text: &str, end: End) -> Json<String> {
    let text = text.trim();
    let value = match serde_json::from_str(text) {
        Ok(Value::Object(_)) => return Json::Is(text.to_owned()),
        Ok(value) => value,
        Err(_) if text.is_empty() && end == End::Marked => Value::Null,
        // One that lacks a brace may lack more, when no mark ends it.
        Err(_) if end == End::Open => return Json::Not,
        Err(_) => match mended(text, end) {
            Json::Is(value) => value,
            Json::InString => return Json::InString,
            Json::Not => return Json::Not,
        },
    };
    match value {
        Value::Null => Json::Is("{}".to_owned()),
        Value::Object(_) => Json::Is(value.to_string()),
        Value::String(inner) => match serde_json::from_str(&inner) {
            Ok(Value::Object(_)) => Json::Is(inner),
            _ => Json::Not,
        },
        _ => Json::Not,
    }
}

/// Past white space, separators and what may stand between calls.
fn after<'a>(text: &'a str, between: &[&str]) -> &'a str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ",;".contains(c));
        match between.iter().find_map(|mark| rest.strip_prefix(mark)) {
            Some(past) => rest = past,
            None => return rest,
        }
    }
}

/// Without marks at the end.
fn without<'a>(text: &'a str, marks: &[&str]) -> &'a str {
    let mut rest = text.trim_end();
    while let Some(before) = marks.iter().find_map(|mark| rest.strip_suffix(mark)) {
        rest = before.trim_end();
    }
    rest
}

/// The one value that the text can mean.
fn mended(text: &str, end: End) -> Json<Value> {
    let (mut out, mut open) = (String::with_capacity(text.len() + 1), Vec::new());
    let (mut string, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if string {
            match c {
                '"' if !escaped => string = false,
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                _ => {}
            }
            escaped = c == '\\' && !escaped;
            if !"\n\r\t".contains(c) {
                out.push(c);
            }
            continue;
        }
        match c {
            '"' => string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            ',' if ends_list(&text[at + 1..]) => continue,
            // One too many, after all is closed.
            '}' | ']' if open.is_empty() && !out.is_empty() => continue,
            '}' | ']' if open.pop() != Some(c) => return Json::Not,
            _ => {}
        }
        out.push(c);
    }
    if string {
        return Json::InString;
    }
    let allowed = match end {
        End::Marked => MISSING_MAX,
        // The outermost alone: all that it has is there.
        End::Open => usize::from(out.ends_with(['}', ']'])),
    };
    if open.len() > allowed {
        return Json::Not;
    }
    out.extend(open.into_iter().rev());
    serde_json::from_str(&out).map_or(Json::Not, Json::Is)
}

/// Whether a closing bracket or the end comes next.
fn ends_list(text: &str) -> bool {
    matches!(text.trim_start().chars().next(), None | Some('}' | ']'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_one_meaning_is_mended() {
        for (text, value) in [
            (r#"{"a": [1, 2,], }"#, json!({ "a": [1, 2] })),
            (r#"{"a": {"b": 1}"#, json!({ "a": { "b": 1 } })),
            (r#"{"a": 1}}"#, json!({ "a": 1 })),
            ("{\"a\": \"x\n\ty\"}", json!({ "a": "x\n\ty" })),
            (r#"{"a": "\"}", "b": [1"#, json!({ "a": "\"}", "b": [1] })),
        ] {
            assert_eq!(mended(text, End::Marked), Json::Is(value), "{text}");
        }
    }

    #[test]
    fn what_may_mean_more_is_not() {
        assert_eq!(mended(r#"{"a": "x"#, End::Marked), Json::InString);
        for text in [r#"{"a": 1"#, r#"{"a": [{"b": 1}"#, r#"{"a": ]}"#, "", "no"] {
            assert_eq!(mended(text, End::Open), Json::Not, "{text}");
        }
        assert_eq!(arguments(r#"{"a": {"b": 1}"#, End::Open), Json::Not);
    }

    #[test]
    fn arguments_may_be_the_text_of_an_object() {
        assert_eq!(arguments(r#" "{\"a\": 1}" "#, End::Open), Json::Is(r#"{"a": 1}"#.to_owned()));
        assert_eq!(arguments(" ", End::Marked), Json::Is("{}".to_owned()));
        assert_eq!(arguments("[1]", End::Marked), Json::Not);
    }
}
