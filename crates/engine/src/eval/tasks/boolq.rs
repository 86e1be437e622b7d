//! BoolQ: a passage, a question, yes or no.

use crate::eval::question::Question;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    question: String,
    passage: String,
    answer: bool,
}

/// `passage`, `Question: …?`, `Answer:`, then ` no` or ` yes`.
pub(super) fn parse(line: &str) -> Result<Question, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let asked = line.question.trim_end_matches('?');
    Ok(Question {
        prompt: format!("{}\nQuestion: {asked}?\nAnswer:", line.passage),
        choices: vec![" no".into(), " yes".into()],
        answer: usize::from(line.answer),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_prompt() {
        let line =
            r#"{"question": "is it so", "answer": true, "passage": "It is so.", "title": "x"}"#;
        let question = parse(line).unwrap();
        assert_eq!(question.prompt, "It is so.\nQuestion: is it so?\nAnswer:");
        assert_eq!(question.choices[question.answer], " yes");
        assert!(parse("{}").unwrap_err().contains("question"));
    }
}
