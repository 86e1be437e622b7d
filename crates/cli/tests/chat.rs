//! `motley run` as people meet it: a question by the model's template, text from files and pipes,
//! thoughts, and a chat on a terminal, which is a pseudo-terminal here.

#![allow(clippy::disallowed_methods, reason = "a test of a door: it waits by the clock")]

mod support;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::changed::changed;
use support::{motley_in, trained, upcycled};
use tempfile::{NamedTempFile, TempDir, tempdir};

const MOTLEY: &str = env!("CARGO_BIN_EXE_motley");
/// Longest a reply is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

fn model() -> Option<PathBuf> {
    upcycled(8, 2)
}

fn json(model: &Path, args: &[&str]) -> Value {
    let state = tempdir().unwrap();
    let all = ["run", model.to_str().unwrap(), "--json", "--temperature", "0", "--threads", "1"];
    let output = motley_in(state.path(), &[&all, args].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {said}"))
}

/// A template that writes turns plainly and opens the model's thoughts.
fn thinker(model: &Path) -> NamedTempFile {
    let template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}<think>\n\
                    {# </think> #}";
    changed(
        model,
        |mut metadata| {
            metadata.insert("tokenizer.chat_template", template);
            metadata
        },
        |_, _| {},
    )
}

#[test]
fn a_question_goes_through_the_template_and_ends_by_itself() {
    let Some(model) = model() else { return };
    // The answer that the model begins alike with every kind of kernel.
    let asked = json(&model, &["-p", "Hi"]);
    assert!(asked["text"].as_str().unwrap().starts_with("Hello!"), "{asked}");
    assert_eq!(asked["finish"], "end", "{asked}");
    let raw = json(&model, &["--raw", "-n", "8", "-p", "Hi"]);
    let tokens = |said: &Value| said["prompt_tokens"].as_u64().unwrap();
    assert!(tokens(&raw) < tokens(&asked), "{raw} {asked}");
    let told = |system: &str| tokens(&json(&model, &["-p", "Hi", "-n", "1", "--system", system]));
    assert_eq!(told("Be kind, be kind."), told("Be kind.") + 3);
}

#[test]
fn files_and_pipes_are_questions_too() {
    let Some(model) = trained("q4_k_m") else { return };
    let folder = tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "one two three\n").unwrap();
    let name = file.to_str().unwrap();
    let typed = json(&model, &["--raw", "-n", "4", "-p", "one two three"]);
    assert_eq!(json(&model, &["--raw", "-n", "4", "-f", name])["tokens"], typed["tokens"]);
    let both = json(&model, &["--raw", "-n", "4", "-p", "one two three", "-f", name]);
    let apart = json(&model, &["--raw", "-n", "4", "-p", "one two three\n\none two three"]);
    assert_eq!(both["tokens"], apart["tokens"]);
    for args in [&[][..], &["-f", "-"]] {
        let piped = piped(&model, args, "one two three\n");
        assert_eq!(piped["tokens"], typed["tokens"], "{args:?}");
    }
}

fn piped(model: &Path, args: &[&str], text: &str) -> Value {
    let state = tempdir().unwrap();
    let common = ["--raw", "-n", "4", "--json", "--temperature", "0", "--threads", "1"];
    let mut child = Command::new(MOTLEY)
        .arg("run")
        .arg(model)
        .args(common)
        .args(args)
        .env("MOTLEY_STATE", state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).expect("JSON")
}

#[test]
fn what_cannot_be_asked_is_refused_before_the_model_is_read() {
    let state = tempdir().unwrap();
    let refused = |args: &[&str], words: &str| {
        let output = motley_in(state.path(), &[&["run", "missing.gguf"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    };
    refused(&["-f", "nowhere.txt"], "cannot read nowhere.txt");
    refused(&[], "stdin has no text");
    refused(&["--raw", "--system", "x", "-p", "y"], "--system");
    refused(&["--raw", "--no-think", "-p", "y"], "--no-think");
}

#[test]
fn thoughts_are_apart_from_the_answer() {
    let Some(model) = trained("q4_k_m") else { return };
    let thinker = thinker(&model);
    let said = json(thinker.path(), &["-p", "one two", "-n", "6"]);
    assert_eq!(said["text"], "", "{said}");
    assert!(!said["thought"].as_str().unwrap().is_empty(), "{said}");
    // The answer alone goes into a pipe.
    let state = tempdir().unwrap();
    let args = ["run", thinker.path().to_str().unwrap(), "-p", "one two", "-n", "6"];
    let output = motley_in(state.path(), &args);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("6 tokens") && said.contains("ended by -n 6"), "{said}");
}

#[test]
fn the_makers_sampling_is_the_default_and_a_seed_repeats() {
    let Some(model) = trained("q4_k_m") else { return };
    let greedy = changed(
        &model,
        |mut metadata| {
            metadata.insert("general.sampling.temp", 0.0_f32);
            metadata
        },
        |_, _| {},
    );
    let run = |model: &Path, args: &[&str]| {
        let state = tempdir().unwrap();
        let all = ["run", model.to_str().unwrap(), "--raw", "-p", "one two", "-n", "24", "--json"];
        let output = motley_in(state.path(), &[&all, args, &["--threads", "1"]].concat());
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (said["tokens"].clone(), said["seed"].to_string())
    };
    let most_likely = run(&model, &["--temperature", "0"]).0;
    assert_eq!(run(greedy.path(), &[]).0, most_likely);
    let (drawn, seed) = run(&model, &["--temperature", "1.5"]);
    assert_ne!(drawn, most_likely);
    assert_eq!(run(&model, &["--temperature", "1.5", "--seed", &seed]).0, drawn);
}

/// A chat on a terminal of its own.
struct Terminal {
    child: Child,
    screen: File,
    shown: String,
    state: TempDir,
}

impl Terminal {
    fn open(model: &Path, args: &[&str], term: &str) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let side = || {
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            Stdio::from(rustix::fs::open(&*name, flags, rustix::fs::Mode::empty()).unwrap())
        };
        let state = tempdir().unwrap();
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", MOTLEY, "run"])
            .arg(model)
            .args(["--temperature", "0", "--threads", "1"])
            .args(args)
            .env("MOTLEY_STATE", state.path())
            .env("CI", "true")
            .env("TERM", term)
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .expect("setsid is there");
        Self { child, screen: screen.into(), shown: String::new(), state }
    }

    fn key(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line once the prompt is there, and waits for `reply`.
    fn say(&mut self, line: &str, reply: &str) -> String {
        self.key(&format!("{line}\r"));
        self.wait_for(reply)
    }

    /// What is shown until `words` are, and takes it off the screen.
    fn wait_for(&mut self, words: &str) -> String {
        let start = Instant::now();
        let mut bytes = [0; 4096];
        while !self.shown.contains(words) {
            assert!(start.elapsed() < PATIENCE, "no {words:?} in {:?}", self.shown);
            let read = self.screen.read(&mut bytes).unwrap_or(0);
            assert!(read > 0, "ended before {words:?}: {:?}", self.shown);
            self.shown += &String::from_utf8_lossy(&bytes[..read]);
        }
        let end = self.shown.find(words).unwrap() + words.len();
        self.shown.drain(..end).collect()
    }

    fn end(mut self) -> TempDir {
        // Whatever is still shown is read, or the chat waits for a reader.
        let mut rest = Vec::new();
        let _ = self.screen.read_to_end(&mut rest);
        assert!(self.child.wait().unwrap().success());
        self.state
    }
}

#[test]
fn a_chat_keeps_its_turns_and_obeys_its_commands() {
    let Some(model) = model() else { return };
    let mut terminal = Terminal::open(&model, &[], "xterm");
    terminal.wait_for("/help lists");
    let said = terminal.say("Hi there", "prompt");
    assert!(said.contains("Hello"), "{said:?}");
    terminal.wait_for("/s");
    terminal.say("/save greeting", "kept in");
    terminal.say("/nonsense", "there is no /nonsense");
    terminal.say("/clear", "a new conversation");
    terminal.say("/load", "kept: greeting");
    terminal.say("/load greeting", "2 turns");
    terminal.say("/load ../greeting", "name has letters");
    terminal.say("/explain", "Decode");
    terminal.wait_for("so far");
    terminal.say("/think", "folded");
    terminal.say("/help", "Ctrl-C ends an answer");
    terminal.wait_for("> ");
    terminal.key("/quit\r");
    let state = terminal.end();
    let history = std::fs::read_to_string(state.path().join("history.jsonl")).unwrap();
    assert!(history.contains("Hi there"), "{history}");
    assert!(state.path().join("last-run.json").exists());
    for private in ["history.jsonl", "chats/greeting.json"] {
        let rights = std::fs::metadata(state.path().join(private)).unwrap().permissions();
        assert_eq!(rights.mode() & 0o777, 0o600, "{private}");
    }
}

#[test]
fn ctrl_c_ends_the_answer_and_ctrl_d_the_chat() {
    let Some(model) = trained("q4_k_m") else { return };
    // Never ends by itself, because it does not know the end of a turn.
    let thinker = thinker(&model);
    let args = ["--no-record", "--context", "8192"];
    let mut terminal = Terminal::open(thinker.path(), &args, "dumb");
    terminal.wait_for("/help lists");
    terminal.key("one two three\r");
    terminal.wait_for("[thinking]");
    terminal.key("\u{3}");
    terminal.wait_for("[end of thinking]");
    terminal.wait_for("interrupted");
    terminal.say("/help", "Ctrl-C ends an answer");
    terminal.key("\u{4}");
    let state = terminal.end();
    assert!(!state.path().join("history.jsonl").exists());
}
