//! `motley run` as people meet it: a question by the model's template, text from files and pipes,
//! thoughts, and a chat on a terminal, which is a pseudo-terminal here.

mod support;

use motley_testkit::terminal::{self, Terminal};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
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
struct Chat {
    terminal: Terminal,
    state: TempDir,
}

impl Chat {
    fn open(model: &Path, args: &[&str], term: &str) -> Self {
        let state = tempdir().unwrap();
        let mut command = terminal::command(MOTLEY);
        command.arg("run").arg(model).args(["--temperature", "0", "--threads", "1"]).args(args);
        command.env("MOTLEY_STATE", state.path()).env("CI", "true").env("TERM", term);
        Self { terminal: Terminal::open(command).unwrap(), state }
    }

    fn key(&mut self, keys: &str) {
        self.terminal.key(keys).unwrap();
    }

    /// Types a line once the prompt is there, and waits for `reply`.
    fn say(&mut self, line: &str, reply: &str) -> String {
        self.key(&format!("{line}\r"));
        self.wait_for(reply)
    }

    fn wait_for(&mut self, words: &str) -> String {
        self.terminal.wait_for(words, PATIENCE).unwrap()
    }

    fn end(self) -> TempDir {
        assert!(self.terminal.end().unwrap().0.success());
        self.state
    }
}

#[test]
fn a_chat_keeps_its_turns_and_obeys_its_commands() {
    let Some(model) = model() else { return };
    let mut chat = Chat::open(&model, &[], "xterm");
    chat.wait_for("/help lists");
    let said = chat.say("Hi there", "prompt");
    assert!(said.contains("Hello"), "{said:?}");
    chat.wait_for("/s");
    chat.say("/save greeting", "kept in");
    chat.say("/nonsense", "there is no /nonsense");
    chat.say("/clear", "a new conversation");
    chat.say("/load", "kept: greeting");
    chat.say("/load greeting", "2 turns");
    chat.say("/load ../greeting", "name has letters");
    chat.say("/explain", "Decode");
    chat.wait_for("so far");
    chat.say("/think", "folded");
    chat.say("/help", "Ctrl-C ends an answer");
    chat.wait_for("> ");
    chat.key("/quit\r");
    let state = chat.end();
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
    let mut chat = Chat::open(thinker.path(), &args, "dumb");
    chat.wait_for("/help lists");
    chat.key("one two three\r");
    chat.wait_for("[thinking]");
    chat.key("\u{3}");
    chat.wait_for("[end of thinking]");
    chat.wait_for("interrupted");
    chat.say("/help", "Ctrl-C ends an answer");
    chat.key("\u{4}");
    let state = chat.end();
    assert!(!state.path().join("history.jsonl").exists());
}
