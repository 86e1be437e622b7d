//! `cargo xtask dist-record`: the first minutes of somebody who has never run Motley, typed into a
//! terminal in a clean root. The hub is on this machine, so a download takes no time that means
//! something; everything else does.
//!
//! Written as asciinema's `.cast` (version 2: a header, then `[seconds, "o", text]` per line), and as
//! plain text with the second at which each line was complete.

use super::install::{self, Way};
use super::root::{Root, UNSHARE};
use super::{Facts, PROCESSORS, tools};
use anyhow::{Context, Result, ensure};
use motley_testkit::hub::Hub;
use motley_testkit::terminal::{self, SIZE, Terminal};
use motley_testkit::{smollm2, upcycle};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The Debian of the root.
const SUITE: &str = "bookworm";
/// What the shell shows when it waits.
const PROMPT: &str = "you@clean:~$ ";
/// Where a session begins, and the package lies.
const HOME: &str = "/srv";
/// Under which name the hub offers SmolLM2 as a mixture of eight experts.
const NAME: &str = "example/SmolLM2-8x135M-Instruct-GGUF";
/// Longest that one step may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is recorded.
#[derive(Debug, Clone, clap::Args)]
pub struct Recording {
    /// Folder the artefacts are in.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub out: PathBuf,
    /// File for the recording; its text goes beside it.
    #[arg(long, value_name = "FILE.cast")]
    pub cast: PathBuf,
}

/// Text, and the time since the start at which it was shown.
type Shown = (Duration, String);

/// Records; the text.
pub fn record(asked: &Recording) -> Result<String> {
    let processor = &PROCESSORS[0];
    tools::install_programs(processor)?;
    let facts = Facts::read(processor)?;
    let artefacts = install::artefacts(&asked.out, &facts)?;
    let package = artefacts.iter().find(|artefact| artefact.way == Way::Deb).context("no deb")?;
    let root = Root::of_debian(&facts, SUITE)?;
    root.copy(&package.path, &format!("{HOME}/{}", package.name()))?;
    let dense = smollm2::fetch(false)?;
    let request = upcycle::Request { experts: 8, topk: 2, block: 32, seed: 0 };
    let hub = Hub::start()?;
    hub.add_model(
        NAME,
        "SmolLM2-8x135M-Instruct-Q8_0",
        &upcycle::ensure_cached(&dense, &request)?,
    )?;
    let shown = play(&root, &hub, &package.name())?;
    let text = to_text(&shown);
    fs::write(&asked.cast, to_cast(&shown)).with_context(|| asked.cast.display().to_string())?;
    fs::write(asked.cast.with_extension("txt"), &text)?;
    Ok(text)
}

/// Types it all.
fn play(root: &Root, hub: &Hub, package: &str) -> Result<Vec<Shown>> {
    let endpoint = format!("HF_ENDPOINT={}", hub.endpoint());
    let prompt = format!("PS1={PROMPT}");
    let shell = ["env", "-C", HOME, "TERM=xterm", &endpoint, &prompt, "sh", "-i"];
    let mut terminal = Terminal::open(root.enter(terminal::command(UNSHARE), &shell))?;
    terminal.wait_for(PROMPT, PATIENCE)?;
    let model = format!("{NAME}:Q8_0");
    for line in [
        &format!("dpkg --install {package}"),
        "motley --version",
        "motley doctor",
        &format!("motley pull {model}"),
        "motley list",
        &format!("motley run {model} -p 'What is the capital of France?'"),
    ] {
        terminal.key(&format!("{line}\r"))?;
        terminal.wait_for(PROMPT, PATIENCE)?;
    }
    terminal.key(&format!("motley run {model}\r"))?;
    terminal.wait_for("/help lists", PATIENCE)?;
    for line in ["Hi there", "What can you help me with?"] {
        terminal.wait_for("> ", PATIENCE)?;
        terminal.key(&format!("{line}\r"))?;
        terminal.wait_for("; prompt ", PATIENCE)?;
    }
    terminal.wait_for("> ", PATIENCE)?;
    terminal.key("/quit\r")?;
    terminal.wait_for(PROMPT, PATIENCE)?;
    terminal.key("exit\r")?;
    let (status, shown) = terminal.end()?;
    ensure!(status.success(), "the shell ended badly: {status}");
    Ok(shown)
}

/// As asciinema plays it.
fn to_cast(shown: &[Shown]) -> String {
    let (width, height) = SIZE;
    let mut cast = format!("{}\n", json!({ "version": 2, "width": width, "height": height }));
    for (at, text) in shown {
        let _ = writeln!(cast, "{}", json!([at.as_secs_f64(), "o", text]));
    }
    cast
}

/// Line by line as it stood when it was left, each with the second.
fn to_text(shown: &[Shown]) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (at, piece) in shown {
        for character in piece.chars() {
            if character == '\n' {
                let _ = writeln!(text, "{:7.1} s  {}", at.as_secs_f64(), as_seen(&line));
                line.clear();
            } else {
                line.push(character);
            }
        }
    }
    text
}

/// What of a line is seen at its end: without colours, and with what was written over gone.
fn as_seen(line: &str) -> String {
    let (mut seen, mut column) = (Vec::new(), 0);
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\r' => column = 0,
            '\u{7}' => {}
            '\u{1b}' => match sequence(&mut characters) {
                (count, 'C') => column += count.max(1),
                (0, 'K') => seen.truncate(column),
                _ => {}
            },
            _ => {
                seen.resize(seen.len().max(column + 1), ' ');
                seen[column] = character;
                column += 1;
            }
        }
    }
    seen.into_iter().collect::<String>().trim_end().to_owned()
}

/// After an escape: `[`, numbers, and the letter that says what it does. The last number, and it.
fn sequence(characters: &mut std::str::Chars<'_>) -> (usize, char) {
    let mut number = 0;
    for character in characters {
        match character {
            '[' | '?' => {}
            ';' => number = 0,
            '0'..='9' => number = number * 10 + character as usize - '0' as usize,
            _ => return (number, character),
        }
    }
    (number, ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Vec<Shown> {
        let pieces =
            [(0, "$ x\r\n"), (1500, "10 %\r20 %\u{1b}[K"), (2000, "\r\u{1b}[2mdone\r\n$ ")];
        pieces.map(|(at, text)| (Duration::from_millis(at), text.to_owned())).to_vec()
    }

    #[test]
    fn text_has_each_line_as_it_stood_at_its_end() {
        assert_eq!(to_text(&shown()), "    0.0 s  $ x\n    2.0 s  done\n");
    }

    #[test]
    fn what_is_typed_stays_behind_its_prompt() {
        assert_eq!(as_seen("\r\u{1b}[K> \r\u{1b}[2CHi\u{1b}[0m there\r"), "> Hi there");
        assert_eq!(as_seen("12345\rab\u{1b}[K"), "ab");
    }

    #[test]
    fn a_cast_has_a_header_and_an_event_per_line() {
        let cast = to_cast(&shown());
        let lines: Vec<serde_json::Value> =
            cast.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], json!({ "version": 2, "width": 80, "height": 24 }));
        assert_eq!(lines[2][0], 1.5);
        assert_eq!(lines.len(), 4);
    }
}
