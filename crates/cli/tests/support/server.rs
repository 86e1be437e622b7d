//! A real `motley serve` in a process of its own, and a client that speaks HTTP by
//! hand, so that it can also speak it badly.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Serves `model` on a free port with one thread.
    pub(crate) fn start(model: &Path, args: &[&str]) -> Self {
        Self::start_logging(model, args, Stdio::inherit())
    }

    /// As [`Server::start`], with its log going to `log`.
    pub(crate) fn start_logging(model: &Path, args: &[&str], log: impl Into<Stdio>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        Self::launch(command.stderr(log), model, args)
    }

    /// As [`Server::start`], with its settings in `config`.
    pub(crate) fn start_in(config: &Path, model: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        Self::launch(command.env("MOTLEY_CONFIG", config), model, args)
    }

    /// As [`Server::start`], with what is kept in `state`.
    pub(crate) fn start_keeping(state: &Path, model: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        Self::launch(command.env("MOTLEY_STATE", state), model, args)
    }

    /// As [`Server::start`], on `port`.
    pub(crate) fn start_on(port: u16, model: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        Self::launch_all(&mut command, port, &[model], &[&["--alias", "m"], args].concat())
    }

    /// Serves all models at `paths`, under their own names.
    pub(crate) fn start_several(paths: &[&Path], args: &[&str]) -> Self {
        Self::start_several_logging(paths, args, Stdio::inherit())
    }

    /// As [`Server::start_several`], with its log going to `log`.
    pub(crate) fn start_several_logging(
        paths: &[&Path],
        args: &[&str],
        log: impl Into<Stdio>,
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        Self::launch_all(command.stderr(log), 0, paths, args)
    }

    fn launch(command: &mut Command, model: &Path, args: &[&str]) -> Self {
        Self::launch_all(command, 0, &[model], &[&["--alias", "m"], args].concat())
    }

    fn launch_all(command: &mut Command, port: u16, models: &[&Path], args: &[&str]) -> Self {
        if !command.get_envs().any(|(name, _)| name == "MOTLEY_STATE") {
            command.env("MOTLEY_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
        }
        let mut child = command
            .arg("serve")
            .args(models)
            .args(["--json", "--port", &port.to_string(), "--threads", "1"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("motley starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the server says where it listens");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let url = said["url"].as_str().expect("a URL");
        let address = url.trim_start_matches("http://").parse().expect("an address");
        Self { child, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Posts JSON; status and body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.send(&post(path, body));
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Gets a page; status and text.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        self.send(head.as_bytes())
    }

    /// Sends bytes as they are and reads to the end.
    pub(crate) fn send(&self, bytes: &[u8]) -> (u16, String) {
        send(self.address, bytes)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// One figure of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.get("/metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most memory it ever had resident, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Asks it to stop as a service manager would.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Ends it at once, whatever it was doing.
    pub(crate) fn kill(&self) {
        self.signal("-KILL");
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill").success());
    }

    /// Asks it to stop and waits: it must not fail, crash or be killed.
    pub(crate) fn stop(&mut self) {
        self.terminate();
        let status = self.wait();
        assert!(status.success(), "{status}");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    stream
}

/// Sends bytes as they are and reads to the end; status and body.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> (u16, String) {
    let mut stream = connect(address);
    // A server that has answered already may have closed its side.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    split(&String::from_utf8_lossy(&answer))
}

/// A well-formed request.
pub(crate) fn post(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A greedy continuation that does not end early.
pub(crate) fn continuation(prompt: &str, tokens: usize, stream: bool) -> Value {
    json!({
        "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": true,
        "stream": stream,
    })
}

/// Status and body; chunks of a chunked body are put together.
pub(crate) fn split(answer: &str) -> (u16, String) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return (status, body.to_owned());
    }
    let mut whole = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|_| size > 0) else { break };
        whole.push_str(chunk);
        rest = after[size..].trim_start_matches("\r\n");
    }
    (status, whole)
}

/// Text of a stream of completions, and whether it came to its end.
pub(crate) fn streamed(body: &str) -> (String, bool) {
    let data = || body.lines().filter_map(|line| line.strip_prefix("data: "));
    let text = |data: &str| {
        let chunk: Value = serde_json::from_str(data).ok()?;
        Some(chunk["choices"][0]["text"].as_str()?.to_owned())
    };
    (data().filter_map(text).collect(), data().any(|data| data == "[DONE]"))
}

/// Waits until it is so.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A number from the environment: CI runs few, a long run as many as it likes.
pub(crate) fn count(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
