//! HellaSwag: the beginning of a scene and four endings. Text is cleaned as is common for
//! this set: marks in brackets go, `[title]` ends a sentence.

use crate::eval::question::Question;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    activity_label: String,
    ctx_a: String,
    ctx_b: String,
    endings: Vec<String>,
    /// A number as text in the published files.
    label: Label,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Number(usize),
    Text(String),
}

/// `Activity: beginning`, then each ending.
pub(super) fn parse(line: &str) -> Result<Question, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let answer = match line.label {
        Label::Number(number) => number,
        Label::Text(text) => text.parse().map_err(|_| format!("`{text}` is not a label"))?,
    };
    if answer >= line.endings.len() {
        return Err(format!("label {answer} of {} endings", line.endings.len()));
    }
    let begun = format!("{}: {} {}", line.activity_label, line.ctx_a, capital(&line.ctx_b));
    Ok(Question {
        prompt: clean(&begun),
        choices: line.endings.iter().map(|ending| format!(" {}", clean(ending))).collect(),
        answer,
    })
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

/// Without marks in brackets and without double spaces.
fn clean(text: &str) -> String {
    let text = text.trim().replace(" [title]", ". ");
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, mark)) = rest.split_once('[') {
        let Some((_, after)) = mark.split_once(']') else { break };
        cleaned.push_str(before);
        rest = after;
    }
    cleaned.push_str(rest);
    while cleaned.contains("  ") {
        cleaned = cleaned.replace("  ", " ");
    }
    cleaned.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_prompt() {
        let line = r#"{"activity_label": "Roof", "ctx_a": "A man sits.", "ctx_b": "he", "label": "1",
            "endings": ["sleeps.", "works [substeps] on."], "ind": 4}"#;
        let question = parse(line).unwrap();
        assert_eq!(question.prompt, "Roof: A man sits. He");
        assert_eq!(question.choices, [" sleeps.", " works on."]);
        assert_eq!(question.answer, 1);
    }

    #[test]
    fn marks_go_and_labels_are_checked() {
        assert_eq!(
            clean("How to  bake [title] Mix [step] all [open"),
            "How to bake. Mix all [open"
        );
        let line =
            r#"{"activity_label": "", "ctx_a": "", "ctx_b": "", "label": 2, "endings": ["a"]}"#;
        assert!(parse(line).unwrap_err().contains("label 2 of 1"));
    }
}
