//! One mutation in a process of its own: address space and time are bounded, and how it ended is
//! all that counts.

use super::options::{LoadingPath, Mutations};
use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Address space of a trial, in KiB as `ulimit` takes it.
const ADDRESS_SPACE_KIB: u64 = 6 << 20;
/// How long a trial may take.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(5);
/// What is tokenized and continued; several scripts.
const PROMPT: &str = "Hello 世界, Привет! 12345 naïve 🙂 x";
/// Words of the message when a child process found that a file ends the engine.
const CHILD_FAILED: &str = "makes the engine fail: ";

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It answered.
    Answered,
    /// It refused by itself, with these words.
    Refused(String),
    /// The child process that looks at new files met its end; the program itself refused.
    ChildFailed(String),
    /// It ended in no way a program should: signal, another code, or not at all.
    Bad { how: String, said: String },
}

/// Runs the program under test on `model`.
pub(super) fn trial(
    mutations: &Mutations,
    model: &Path,
    path: LoadingPath,
    folder: &Path,
) -> Result<Ending> {
    let log = folder.join("stderr");
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$0\" \"$@\"")])
        .arg(&mutations.motley)
        .arg("run")
        .arg(model)
        .args([
            "--raw",
            "-p",
            PROMPT,
            "-n",
            "2",
            "--no-record",
            "--context",
            "256",
            "--threads",
            "1",
        ])
        .args(["--loading", path.name()])
        .args(&mutations.flags)
        .env("CI", "true")
        .env("GGML_NO_BACKTRACE", "1")
        .env("MOTLEY_STATE", folder.join("state"))
        .env("MOTLEY_CONFIG", folder.join("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log)?)
        .spawn()
        .with_context(|| format!("cannot start {}", mutations.motley.display()))?;
    let status = wait(&mut child)?;
    let said = last_line(&String::from_utf8_lossy(&std::fs::read(&log)?), model);
    Ok(ending(status, said))
}

/// Its status, or nothing when it had to be killed.
#[expect(clippy::disallowed_methods, reason = "a trial has a deadline")]
fn wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn ending(status: Option<ExitStatus>, said: String) -> Ending {
    let Some(status) = status else {
        return Ending::Bad { how: format!("no end within {} s", DEADLINE.as_secs()), said };
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => Ending::Answered,
        (Some(1 | 2), _) => match said.split_once(CHILD_FAILED) {
            Some((_, words)) => {
                let words = words.rsplit_once(" (seen").map_or(words, |(words, _)| words);
                Ending::ChildFailed(words.to_owned())
            }
            None => Ending::Refused(said),
        },
        (_, Some(signal)) => Ending::Bad { how: format!("signal {signal}"), said },
        (code, None) => Ending::Bad { how: format!("exit code {code:?}"), said },
    }
}

/// The last line with words in it, without the names of folders.
fn last_line(text: &str, model: &Path) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = line.replace(&model.display().to_string(), "MODEL");
    let short = |word: &str| match word.rfind("/llama.cpp/") {
        Some(at) => word[at + 1..].to_owned(),
        None => word.to_owned(),
    };
    let line = line.split(' ').map(short).collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_told_apart() {
        let ended = |raw| ending(Some(ExitStatus::from_raw(raw)), String::new());
        assert_eq!(ended(0), Ending::Answered);
        assert_eq!(ended(1 << 8), Ending::Refused(String::new()));
        assert!(matches!(ended(101 << 8), Ending::Bad { .. }));
        assert!(matches!(ended(6), Ending::Bad { how, .. } if how == "signal 6"));
        assert!(matches!(ending(None, String::new()), Ending::Bad { .. }));
        let child =
            ending(Some(ExitStatus::from_raw(1 << 8)), format!("MODEL {CHILD_FAILED}x (seen)"));
        assert_eq!(child, Ending::ChildFailed("x".into()));
    }

    #[test]
    fn the_last_line_names_no_folder() {
        let text =
            "one\n/home/me/reg/llama.cpp/src/a.cpp:1: GGML_ASSERT(x) failed in /t/m.gguf\n\n";
        let line = last_line(text, Path::new("/t/m.gguf"));
        assert_eq!(line, "llama.cpp/src/a.cpp:1: GGML_ASSERT(x) failed in MODEL");
    }
}
