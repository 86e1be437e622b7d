//! Workers on hosts of their own and the head on this one, paired before anything is measured.

use super::net::Host;
use crate::capped::cage::Cage;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Port of every worker.
const PORT: u16 = 7467;

/// A worker that may be started again; its keys stay.
pub(super) struct Worker {
    pub(super) host: Host,
    program: PathBuf,
    model: PathBuf,
    flags: Vec<String>,
    state: tempfile::TempDir,
    cage: Option<Cage>,
    process: Option<Child>,
    code: String,
}

impl Worker {
    /// On a host of that number, with `memory_bytes` if that is limited.
    pub(super) fn start(
        (program, model): (&Path, &Path),
        number: u8,
        flags: &[&str],
        memory_bytes: Option<u64>,
    ) -> Result<Self> {
        let mut worker = Self {
            host: Host::new(number)?,
            program: program.to_owned(),
            model: model.to_owned(),
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            state: tempfile::tempdir()?,
            cage: memory_bytes.map(|bytes| Cage::new(Some(bytes))).transpose()?,
            process: None,
            code: String::new(),
        };
        worker.begin()?;
        Ok(worker)
    }

    /// Starts the process, and waits until it listens.
    pub(super) fn begin(&mut self) -> Result<()> {
        let mut command = match &self.cage {
            Some(cage) => {
                let mut command = cage.command(Path::new("ip"));
                let inside = self.host.command(&self.program);
                command.args(inside.get_args());
                command
            }
            None => self.host.command(&self.program),
        };
        command
            .args(["worker", "--json", "--pair", "--trust-file", "--listen", &self.address()])
            .args(&self.flags)
            .arg(&self.model)
            .env("MOTLEY_STATE", self.state.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command.spawn().context("cannot start a worker")?;
        let mut line = String::new();
        let stdout = process.stdout.take().context("piped")?;
        BufReader::new(stdout).read_line(&mut line)?;
        self.process = Some(process);
        let said: Value = serde_json::from_str(&line).context("the worker did not start")?;
        self.code = said["code"].as_str().context("a code")?.to_owned();
        Ok(())
    }

    /// Host and port.
    pub(super) fn address(&self) -> String {
        format!("{}:{PORT}", self.host.address())
    }

    /// Sends a signal to the process, which is the worker itself.
    pub(super) fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let process = self.process.as_ref().context("it runs")?;
        rustix::process::kill_process(rustix::process::Pid::from_child(process), signal)?;
        Ok(())
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kill();
    }
}

/// What the head keeps: its keys, and the workers it knows.
pub(super) struct Head {
    program: PathBuf,
    state: tempfile::TempDir,
}

impl Head {
    pub(super) fn new(program: &Path) -> Result<Self> {
        Ok(Self { program: program.to_owned(), state: tempfile::tempdir()? })
    }

    /// `motley` as this head.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        self.dress(&mut command);
        command
    }

    /// The same in a control group.
    pub(super) fn command_in(&self, cage: &Cage) -> Command {
        let mut command = cage.command(&self.program);
        self.dress(&mut command);
        command
    }

    fn dress(&self, command: &mut Command) {
        command.env("MOTLEY_STATE", self.state.path()).env("CI", "1").stdin(Stdio::null());
    }

    /// Meets every worker, by its code.
    pub(super) fn pair(&self, model: &Path, workers: &[Worker]) -> Result<()> {
        for worker in workers {
            let output = self
                .command()
                .args(["run", "--raw", "--trust-file", "--no-record", "-n", "1", "-p", "a"])
                .args(["--workers", &worker.address(), "--pair-code", &worker.code])
                .arg(model)
                .output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{}: {}", worker.address(), said.trim());
        }
        Ok(())
    }
}

/// Addresses as `--workers` takes them.
pub(super) fn addresses(workers: &[Worker]) -> Vec<String> {
    workers.iter().map(Worker::address).collect()
}

/// A file's name, without the folders of this machine.
pub(super) fn named(model: &Path) -> String {
    model.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
