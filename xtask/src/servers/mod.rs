//! Servers as processes of their own: started, waited for until they listen, ended.
//!
//! * `motley`: ours.
//! * `llama`: llama.cpp's own, from PyPI or as a program.

mod llama;
mod motley;

pub use llama::{Rival, RivalServe};
pub use motley::{Context, MotleyServe, motley_program};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest a server may take to load its model.
const START_TIME: Duration = Duration::from_secs(180);
/// Time between two looks whether it listens.
const LOOK_TIME: Duration = Duration::from_millis(100);
/// The system counts processor time in these (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;

/// How it is known where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listens {
    /// It says so: one line of JSON with `url` on stdout.
    Says,
    /// It was given this address; `/health` answers 200 when the model is loaded.
    At(String),
}

/// A server to be started.
pub struct Start {
    /// The program and its arguments.
    pub command: Command,
    /// Where it will listen.
    pub listens: Listens,
}

/// A server that listens; ended when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Host and port.
    pub address: String,
    /// What it said of itself.
    pub said: Value,
}

impl Running {
    /// Starts it and waits until it listens. Its log goes nowhere, save a line on what it was
    /// built for.
    #[allow(clippy::disallowed_methods, reason = "a driver waits")]
    pub fn start(start: Start) -> Result<Self> {
        let Start { mut command, listens } = start;
        let log = tempfile::NamedTempFile::new()?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(log.path())?)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let stdout = child.stdout.take().context("piped")?;
        let mut server = Self { child, address: String::new(), said: Value::Null };
        let listening = match listens {
            Listens::Says => server.wait_for_line(stdout),
            Listens::At(address) => {
                drain(stdout);
                server.look(address)
            }
        };
        let logged = std::fs::read_to_string(log.path()).unwrap_or_default();
        listening.with_context(|| last_lines(&logged))?;
        if server.said["system_info"].is_null() {
            server.said["system_info"] = json!(logged.lines().find(|l| l.contains("system_info")));
        }
        Ok(server)
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has not ended.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(mut self) -> Result<()> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }

    /// Processor time it has taken, where the system counts it.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        // After the name, which may hold anything, fields 14 and 15 of all are user and system.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
    }

    /// The most memory it ever had resident, in KiB, where the system counts it.
    pub fn peak_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    fn wait_for_line(&mut self, stdout: ChildStdout) -> Result<()> {
        let line = first_json_line(stdout).recv_timeout(START_TIME);
        let line = line.context("the server ended or was silent before it listened")?;
        self.said = serde_json::from_str(&line)?;
        let url = self.said["url"].as_str().context("the server did not say its `url`")?;
        self.address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Ok(())
    }

    #[allow(clippy::disallowed_methods, reason = "a driver waits")]
    fn look(&mut self, address: String) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < START_TIME {
            if !self.is_alive() {
                bail!("the server ended before it listened");
            }
            if get(&address, "/health").is_ok_and(|(status, _)| status == 200) {
                let props = get(&address, "/props").map(|(_, body)| body).unwrap_or_default();
                let props: Value = serde_json::from_str(&props).unwrap_or_default();
                self.said =
                    json!({ "url": format!("http://{address}"), "build": props["build_info"] });
                self.address = address;
                return Ok(());
            }
            std::thread::sleep(LOOK_TIME);
        }
        bail!("the server did not listen within {} s", START_TIME.as_secs())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Status and body of a page.
pub fn get(address: &str, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.context("no status")?, body.to_owned()))
}

/// What is answered to a question in JSON; an error when it is not 200.
pub(crate) fn post(address: &str, path: &str, body: &Value) -> Result<Value> {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.contains(" 200 "), "{head}\n{body}");
    Ok(serde_json::from_str(body)?)
}

/// A port nobody listens on at the moment.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The first line that is an object. Reads on, so that the server never waits for a reader.
#[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
fn first_json_line(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with('{') {
                let _ = sender.send(line);
            }
        }
    });
    receiver
}

#[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
fn drain(mut stdout: ChildStdout) {
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Start {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Start { command, listens: Listens::Says }
    }

    #[test]
    fn a_server_says_where_it_listens_and_ends_when_dropped() {
        let script = r#"echo loading; echo '{"url":"http://127.0.0.1:9/"}'; exec sleep 60"#;
        let mut server = Running::start(shell(script)).expect("it says so");
        assert_eq!(server.address, "127.0.0.1:9");
        assert!(server.is_alive());
        assert!(server.cpu_seconds().is_none_or(|seconds| seconds < 5.0));
        let stat = format!("/proc/{}", server.id());
        drop(server);
        assert!(!std::path::Path::new(&stat).exists());
    }

    #[test]
    fn the_log_of_one_that_ends_is_reported() {
        let error = Running::start(shell("echo no such model >&2; exit 1")).unwrap_err();
        assert!(format!("{error:#}").contains("no such model"), "{error:#}");
    }
}
