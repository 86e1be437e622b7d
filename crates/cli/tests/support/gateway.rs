//! The gateway `smg` (PyPI) before real servers, in a process of its own.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

use super::server::{post, send, until};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Which version is tried.
const PACKAGES: &[&str] = &["smg==1.13.0"];

/// What a fleet of Motley wants of it: `/ready` says when a server takes no more requests, and
/// one that was restarted is used again within a second.
const FLAGS: [&str; 11] = [
    "--health-check-endpoint",
    "/ready",
    "--health-check-interval-secs",
    "1",
    "--health-failure-threshold",
    "1",
    "--health-success-threshold",
    "1",
    "--load-monitor-interval",
    "1",
    "--disable-tokenizer-autoload",
];

/// How often it is started before a test gives up.
const STARTS: usize = 3;

/// A running gateway; killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Gateway {
    /// The program; `None` where it cannot be installed.
    pub(crate) fn program() -> Option<PathBuf> {
        let python = super::python("smg-venv", PACKAGES, "smg")?;
        Some(python.with_file_name("smg"))
    }

    /// Routes by `policy` to servers that are told with [`Gateway::add`].
    pub(crate) fn start(program: &PathBuf, policy: &str) -> Self {
        let mut starts = (0..STARTS).filter_map(|_| Self::try_start(program, policy));
        starts.next().expect("the gateway listens")
    }

    /// `None` where it ends at once: a port that was free may be taken before it is there.
    fn try_start(program: &PathBuf, policy: &str) -> Option<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let child = Command::new(program)
            .args(["launch", "--host", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--prometheus-host", "127.0.0.1"])
            .args(["--prometheus-port", &free_port().to_string()])
            .args(["--policy", policy, "--log-level", "warn"])
            .args(FLAGS)
            .stdout(Stdio::null())
            .spawn()
            .expect("smg starts");
        let mut gateway = Self { child, address };
        let mut listens = false;
        until("the gateway listens or ends", || {
            listens = std::net::TcpStream::connect(address).is_ok();
            listens || matches!(gateway.child.try_wait(), Ok(Some(_)))
        });
        listens.then_some(gateway)
    }

    /// Adds a server whose load is read from vLLM's names in its `/metrics`.
    pub(crate) fn add(&self, url: &str) {
        let worker = json!({ "url": url, "runtime_type": "vllm" });
        let (status, said) = send(self.address, &post("/workers", &worker));
        assert_eq!(status, 202, "{said}");
    }

    /// Servers it sends requests to.
    pub(crate) fn healthy(&self) -> u64 {
        self.get("/readiness")["healthy_workers"].as_u64().unwrap_or(0)
    }

    /// What it knows of the load of each server.
    pub(crate) fn loads(&self) -> Vec<Value> {
        self.get("/get_loads")["loads"].as_array().cloned().unwrap_or_default()
    }

    fn get(&self, path: &str) -> Value {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        serde_json::from_str(&send(self.address, head.as_bytes()).1).unwrap_or_default()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody uses and that the system gives to nobody who asks for any: a server that
/// restarts finds it free again.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = std::process::id().wrapping_mul(16) % 10_000;
    let ports = std::iter::repeat_with(|| {
        20_000 + ((first + u32::from(NEXT.fetch_add(1, Relaxed))) % 10_000) as u16
    });
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.take(1000).find(free).expect("one of a thousand ports is free")
}
