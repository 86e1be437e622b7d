//! One run of the program on a file, and how it ended.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a run may take: a child of a small file has 30 s of it at most.
const DEADLINE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);
/// Address space, in KiB as `ulimit` takes it; the child limits itself to 32 GiB.
const ADDRESS_SPACE_KIB: u64 = 40 << 20;
/// The message when the child was ended.
const CHILD_FAILED: &str = "makes the engine fail: ";

/// How a run ended.
pub(crate) enum Ending {
    Answered,
    Refused,
    /// The program refused because its child met its end; the child's last words.
    ChildFailed(String),
    /// A signal, a code no refusal has, or no end; in words.
    Bad(String),
}

/// `motley run` on these bytes.
pub(crate) fn run(file: &[u8]) -> Ending {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder")).path();
    let (model, log) = (folder.join("model.gguf"), folder.join("stderr"));
    std::fs::write(&model, file).expect("the model is written");
    let status = wait(&mut start(folder, &model, &log));
    let said = String::from_utf8_lossy(&std::fs::read(&log).expect("its words")).into_owned();
    ending(status, &said)
}

fn start(folder: &Path, model: &Path, log: &Path) -> Child {
    let program = std::env::var_os("MOTLEY_FUZZ_PROGRAM");
    Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$0\" \"$@\"")])
        .arg(program.expect("MOTLEY_FUZZ_PROGRAM is set: cargo xtask fuzz does"))
        .arg("run")
        .arg(model)
        .args(["--raw", "-p", "Hello 12", "-n", "2", "--no-record", "--context", "256", "--threads", "1"])
        .args(["--loading", "on-demand"])
        .env("CI", "true")
        .env("GGML_NO_BACKTRACE", "1")
        .env("MOTLEY_STATE", folder.join("state"))
        .env("MOTLEY_CONFIG", folder.join("config"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(log).expect("a log"))
        .spawn()
        .expect("the program starts")
}

/// Its status, or nothing when it had to be killed.
#[expect(clippy::disallowed_methods, reason = "a run has a deadline")]
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < DEADLINE {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return Some(status);
        }
        std::thread::sleep(LOOK);
    }
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    None
}

fn ending(status: Option<ExitStatus>, said: &str) -> Ending {
    let Some(status) = status else {
        return Ending::Bad(format!("did not end within {} s", DEADLINE.as_secs()));
    };
    match (status.code(), said.split_once(CHILD_FAILED)) {
        (Some(0), _) => Ending::Answered,
        (Some(1 | 2), Some((_, words))) => Ending::ChildFailed(last_words(words)),
        (Some(1 | 2), None) => Ending::Refused,
        (Some(code), _) => Ending::Bad(format!("ended with code {code}: {said}")),
        (None, _) => Ending::Bad(format!("ended by signal {:?}: {said}", status.signal())),
    }
}

/// Without the names of folders.
fn last_words(words: &str) -> String {
    let words = words.split(" (seen").next().unwrap_or_default();
    let short = |word: &str| match word.rfind("/llama.cpp/") {
        Some(at) => word[at + 1..].to_owned(),
        None => word.to_owned(),
    };
    words.split_whitespace().map(short).collect::<Vec<_>>().join(" ")
}
