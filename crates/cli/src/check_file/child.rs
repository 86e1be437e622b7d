//! The parent's side of a try: starts the child, waits within a deadline, and tells what came of
//! it. Whatever the child does, this process goes on.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// A try that takes longer than this is worth a word.
const SLOW: Duration = Duration::from_secs(1);
/// Bytes of the child's answer and of its last words that are kept.
const KEPT_BYTES: usize = 1 << 16;
/// Most characters of its last words that are shown.
const SHOWN_CHARS: usize = 300;

/// What the child is to do, on its stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) model: PathBuf,
    /// What the parent has read; the child must find the same.
    pub(crate) key: String,
}

/// What it says, on its stdout.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Sound,
    /// An ordinary error, in the words the parent would have met.
    Refused(String),
}

/// What came of a try.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Sound,
    Refused(String),
    /// The child was ended, or did not end; its last words.
    Failed(String),
}

/// Runs `job`; `on_slow` is called when it takes a while.
pub(super) fn run(job: &Job, deadline: Duration, on_slow: impl FnOnce()) -> Result<Outcome> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("check-file")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the process that tries new files; --trust-file does without")?;
    let mut stdin = child.stdin.take().context("the child's stdin")?;
    let stdout = child.stdout.take().context("the child's stdout")?;
    let stderr = child.stderr.take().context("the child's stderr")?;
    let (sender, receiver) = mpsc::channel();
    let words = std::thread::spawn(move || last_bytes(stderr));
    std::thread::spawn(move || sender.send(last_bytes(stdout)));
    // A child that ends before it has read its job says so by its status.
    let _ = stdin.write_all(&serde_json::to_vec(job)?);
    drop(stdin);
    let mut answer = receiver.recv_timeout(SLOW.min(deadline));
    if answer.is_err() {
        on_slow();
        answer = receiver.recv_timeout(deadline.saturating_sub(SLOW));
    }
    if answer.is_err() {
        child.kill().context("cannot end the process that tries new files")?;
    }
    let status = child.wait()?;
    let words = words.join().unwrap_or_default();
    Ok(match answer {
        Ok(answer) => outcome(status, &answer, &words),
        Err(_) => Outcome::Failed(format!("it did not end within {} s", deadline.as_secs())),
    })
}

fn outcome(status: ExitStatus, answer: &[u8], words: &[u8]) -> Outcome {
    match serde_json::from_slice(answer) {
        Ok(Answer::Sound) if status.success() => Outcome::Sound,
        Ok(Answer::Refused(words)) if status.success() => Outcome::Refused(words),
        _ => Outcome::Failed(last_line(&String::from_utf8_lossy(words), status)),
    }
}

/// The last line with words in it, or how the process ended.
fn last_line(words: &str, status: ExitStatus) -> String {
    match words.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => line.trim().chars().take(SHOWN_CHARS).collect(),
        None => status.to_string(),
    }
}

/// Everything to the end, of which the last [`KEPT_BYTES`] stay.
fn last_bytes(mut from: impl Read) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    // An error ends it as the end does: the child's status says the rest.
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..len]);
        let surplus = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..surplus);
    }
    kept
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn of(raw: i32, answer: &str, words: &str) -> Outcome {
        outcome(ExitStatus::from_raw(raw), answer.as_bytes(), words.as_bytes())
    }

    #[test]
    fn only_a_whole_answer_and_a_clean_end_count() {
        assert_eq!(of(0, "\"sound\"", ""), Outcome::Sound);
        assert_eq!(of(0, "{\"refused\":\"no\"}", ""), Outcome::Refused("no".into()));
        let failed = |words: &str| Outcome::Failed(words.into());
        assert_eq!(of(6, "\"sound\"", "one\n two \n\n"), failed("two"));
        assert!(matches!(of(11, "", ""), Outcome::Failed(words) if words.contains("11")));
        assert!(matches!(of(0, "", "half"), Outcome::Failed(_)));
    }

    #[test]
    fn only_the_last_words_are_kept() {
        let long = "x".repeat(3 * KEPT_BYTES) + "end";
        let kept = last_bytes(long.as_bytes());
        assert_eq!(kept.len(), KEPT_BYTES);
        assert!(kept.ends_with(b"end"));
    }
}
