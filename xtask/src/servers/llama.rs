//! llama.cpp's own server: the one in the `xllamacpp` wheel, which PyPI has ready-made, or any
//! `llama-server` program.

use super::{Listens, Start, free_port};
use anyhow::Result;
use motley_testkit::venv;
use serde_json::json;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// Starts the wheel's server.
const SCRIPT: &str = include_str!("llama.py");

/// A server to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rival {
    /// `xllamacpp` from PyPI.
    Wheel,
    /// A `llama-server` program.
    Program(PathBuf),
}

/// Settings that every rival gets.
#[derive(Debug, Clone)]
pub struct RivalServe<'a> {
    /// The model.
    pub model: &'a Path,
    /// Threads.
    pub threads: u32,
    /// Answers at once.
    pub streams: usize,
    /// KV cells, all streams together.
    pub context: u32,
    /// One cache for all streams instead of one part each.
    pub unified: bool,
}

impl FromStr for Rival {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "xllamacpp" { Self::Wheel } else { Self::Program(text.into()) })
    }
}

impl Rival {
    /// As it is called in tables.
    pub fn name(&self) -> String {
        match self {
            Self::Wheel => "xllamacpp".into(),
            Self::Program(path) => {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }
        }
    }

    /// As a process of its own.
    pub fn start(&self, serve: &RivalServe<'_>) -> Result<Start> {
        match self {
            Self::Wheel => wheel(serve),
            Self::Program(path) => program(path, serve),
        }
    }
}

fn wheel(serve: &RivalServe<'_>) -> Result<Start> {
    let python = venv::python("xllamacpp-venv", &["xllamacpp"], "xllamacpp")?;
    let asked = json!({
        "model": serve.model, "port": free_port()?, "streams": serve.streams,
        "context": serve.context, "threads": serve.threads, "unified": serve.unified,
    });
    let mut command = Command::new(python);
    command.args(["-c", SCRIPT]).arg(asked.to_string());
    Ok(Start { command, listens: Listens::Says })
}

fn program(path: &Path, serve: &RivalServe<'_>) -> Result<Start> {
    let port = free_port()?;
    let mut command = Command::new(path);
    command.arg("--model").arg(serve.model).args(["--host", "127.0.0.1"]);
    command.args(["--port", &port.to_string(), "--parallel", &serve.streams.to_string()]);
    command.args(["--ctx-size", &serve.context.to_string(), "--gpu-layers", "0"]);
    let threads = serve.threads.to_string();
    command.args(["--threads", &threads, "--threads-batch", &threads]);
    command.arg(if serve.unified { "--kv-unified" } else { "--no-kv-unified" });
    Ok(Start { command, listens: Listens::At(format!("127.0.0.1:{port}")) })
}
