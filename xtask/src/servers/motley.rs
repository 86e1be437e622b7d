//! `motley serve`, on a free port.

use super::{Listens, Start};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// KV cells of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// So many, shared by all streams.
    Shared(u32),
    /// So many for each stream.
    Each(u32),
}

/// How to serve.
#[derive(Debug, Clone)]
pub struct MotleyServe {
    /// The program.
    pub program: PathBuf,
    /// The model.
    pub model: PathBuf,
    /// Threads.
    pub threads: u32,
    /// Answers at once.
    pub streams: usize,
    /// KV cells.
    pub context: Context,
    /// `--memory`.
    pub memory_bytes: Option<u64>,
    /// `--exact`.
    pub exact: bool,
    /// More options, as on the command line.
    pub more: Vec<String>,
}

impl MotleyServe {
    /// As a process of its own.
    pub fn start(&self) -> Start {
        self.start_by(Command::new(&self.program))
    }

    /// As the last argument of another program: `command` runs what follows it.
    pub fn start_by(&self, mut command: Command) -> Start {
        command.arg("serve").arg(&self.model).args(["--json", "--port", "0"]);
        command.args(["--threads", &self.threads.to_string()]);
        command.args(["--streams", &self.streams.to_string()]);
        match self.context {
            Context::Shared(all) => command.args(["--context", &all.to_string()]),
            Context::Each(each) => command.args(["--stream-context", &each.to_string()]),
        };
        if let Some(bytes) = self.memory_bytes {
            command.args(["--memory", &bytes.to_string()]);
        }
        if self.exact {
            command.arg("--exact");
        }
        command.args(&self.more);
        Start { command, listens: Listens::Says }
    }
}

/// The `motley` built beside this program, or the one given.
pub fn motley_program(given: Option<&Path>) -> Result<PathBuf> {
    let program = match given {
        Some(program) => program.to_owned(),
        None => std::env::current_exe()?.with_file_name("motley"),
    };
    ensure!(
        program.exists(),
        "{} is not there; run `cargo build --release -p motley-cli`",
        program.display()
    );
    Ok(program)
}
