//! Question files as prompts with choices. One task, one file; this one reads lines,
//! picks questions by seed and puts examples in front.

use super::error::EvalError;
use super::question::{Question, Task};
use std::path::Path;

mod boolq;
mod hellaswag;

/// Largest file of text or questions that is read.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// One question from one line of JSON.
fn parse(task: Task, line: &str) -> Result<Question, String> {
    match task {
        Task::Boolq => boolq::parse(line),
        Task::Hellaswag => hellaswag::parse(line),
    }
}

/// Which questions of a file are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    pub items: usize,
    /// Solved examples before each; the same for all, and never asked themselves.
    pub shots: usize,
    /// Picks both.
    pub seed: u64,
}

/// Reads a file whole, within [`MAX_FILE_BYTES`].
pub fn read_text(path: &Path) -> Result<String, EvalError> {
    let failed = |source| EvalError::Read { path: path.into(), source };
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(EvalError::TooLarge { path: path.into(), bytes, limit_bytes: MAX_FILE_BYTES });
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// The questions of a file (one JSON object a line), picked, with examples in front.
pub fn read_questions(task: Task, path: &Path, pick: &Pick) -> Result<Vec<Question>, EvalError> {
    let text = read_text(path)?;
    let mut questions = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = |reason| EvalError::Question { path: path.into(), line: index + 1, task, reason };
        questions.push(parse(task, line).map_err(bad)?);
    }
    let (have, least) = (questions.len(), pick.shots + 1);
    if have < least {
        return Err(EvalError::TooLittle { path: path.into(), have, least });
    }
    Ok(picked(questions, pick))
}

/// Shuffles by seed: first the examples, then the questions.
fn picked(mut questions: Vec<Question>, pick: &Pick) -> Vec<Question> {
    fastrand::Rng::with_seed(pick.seed).shuffle(&mut questions);
    let mut asked = questions.split_off(pick.shots);
    asked.truncate(pick.items.max(1));
    let examples: String = questions.iter().map(|example| example.solved() + "\n\n").collect();
    for question in &mut asked {
        question.prompt.insert_str(0, &examples);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(count: usize) -> Vec<Question> {
        let question = |index| Question {
            prompt: format!("{index:02} is"),
            choices: vec![" even".into(), " odd".into()],
            answer: index % 2,
        };
        (0..count).map(question).collect()
    }

    #[test]
    fn examples_are_solved_shared_and_never_asked() {
        let pick = Pick { items: 5, shots: 2, seed: 7 };
        let asked = picked(made(20), &pick);
        assert_eq!(asked.len(), 5);
        let examples = |question: &Question| {
            let (examples, own) = question.prompt.rsplit_once("\n\n").unwrap();
            assert!(!examples.contains(own), "{own} is an example too");
            examples.to_owned()
        };
        let first = examples(&asked[0]);
        assert_eq!(first.matches(" is ").count(), 2);
        assert!(asked.iter().all(|question| examples(question) == first));
        assert_eq!(picked(made(20), &pick), asked, "a seed picks the same again");
        assert_ne!(picked(made(20), &Pick { seed: 8, ..pick }), asked);
    }

    #[test]
    fn a_bad_line_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\n{\"question\": \"is it\", \"answer\": 3}\n").unwrap();
        let pick = Pick { items: 1, shots: 0, seed: 0 };
        let error = read_questions(Task::Boolq, file.path(), &pick).unwrap_err();
        assert!(matches!(error, EvalError::Question { line: 2, .. }), "{error}");
        std::fs::write(file.path(), "").unwrap();
        let error = read_questions(Task::Boolq, file.path(), &pick).unwrap_err();
        assert!(matches!(error, EvalError::TooLittle { have: 0, least: 1, .. }), "{error}");
    }
}
