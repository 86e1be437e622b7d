//! `cargo xtask dropin-host`: what a stock `llama-server` says without and with the library, what it
//! holds after loading and what it read for that; models it keeps in memory, and experts on a GPU
//! it lends.

use crate::capped::drop_page_cache;
use crate::servers::{Listens, Running, Start, free_port, post};
use anyhow::{Context, Result, ensure};
use clap::Args;
use motley_testkit::fixtures;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is asked.
const PROMPT: &str = "The history of the city begins with";
const ANSWER_TOKENS: u32 = 24;

/// Options of the trial.
#[derive(Debug, Args)]
pub struct Trial {
    /// A `llama-server` [default: one built from a source package, with Vulkan]
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Where the rows are written
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A way to run it, with and without the library.
struct Case {
    name: &'static str,
    model: Option<PathBuf>,
    flags: &'static [&'static str],
    /// Whether it lends a GPU, which must then compute some experts.
    lends: bool,
    /// For the library alone.
    variables: &'static [(&'static str, &'static str)],
}

/// What one server did.
#[derive(Debug, Clone, Serialize)]
struct Turn {
    text: String,
    resident_mib: u64,
    /// The server computes a few tokens while it starts, for which the library has measured the
    /// disk and read their experts.
    read_mib: u64,
    /// Figures of the library.
    stats: Value,
}

/// One case, both ways.
#[derive(Debug, Serialize)]
struct Row {
    case: &'static str,
    equal: bool,
    experts_ours: bool,
    /// Rows of experts, all and those a device computed.
    pairs: [u64; 2],
    stock: Turn,
    ours: Turn,
}

fn cases() -> Vec<Case> {
    let streams: &[_] = &[("MOTLEY_MEMORY", "400M"), ("MOTLEY_DEVICES", "cpu")];
    let trained = || fixtures::trained("q8_0");
    let on_gpu = &["--gpu-layers", "99", "--cpu-moe", "--device", "Vulkan0"];
    let lent = &[("MOTLEY_DEVICES", "vulkan0"), ("MOTLEY_LOADING", "on-demand")];
    vec![
        Case {
            name: "SmolLM2, 8 experts",
            model: fixtures::upcycled(8, 2),
            flags: &["--device", "none"],
            lends: false,
            variables: streams,
        },
        Case {
            name: "trained model",
            model: trained(),
            flags: &["--device", "none"],
            lends: false,
            variables: &[("MOTLEY_LOADING", "on-demand"), ("MOTLEY_DEVICES", "cpu")],
        },
        Case {
            name: "trained model, dense weights on Vulkan, experts shared with it",
            model: trained(),
            flags: on_gpu,
            lends: true,
            variables: lent,
        },
    ]
}

/// Runs every case; fails when a text differs or the library was not in it.
pub fn run(asked: &Trial, library: &Path, on_line: &mut dyn FnMut(&str)) -> Result<()> {
    let (name, server) = match &asked.server {
        Some(server) => (server.display().to_string(), server.clone()),
        None => (super::host::name(), super::host::programs()?.join("llama-server")),
    };
    on_line(&name);
    let mut rows = Vec::new();
    for case in cases() {
        let model = case.model.as_deref().with_context(|| format!("{}: no model", case.name))?;
        let stock = turn(&server, model, &case, None)?;
        let ours = turn(&server, model, &case, Some(library))?;
        let row = row(&case, stock, ours);
        on_line(&line(&row));
        rows.push(row);
    }
    if let Some(path) = &asked.json {
        let all = json!({ "host": name, "rows": rows });
        std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?;
    }
    ensure!(rows.iter().all(|row| row.equal && row.experts_ours), "not as without the library");
    Ok(())
}

fn row(case: &Case, stock: Turn, ours: Turn) -> Row {
    let shared = &ours.stats["shared"];
    let pairs = ["routed_pairs", "device_pairs"].map(|name| shared[name].as_u64().unwrap_or(0));
    let streams = ours.stats["streaming"].is_object();
    Row {
        case: case.name,
        equal: stock.text == ours.text && !stock.text.is_empty(),
        experts_ours: streams && (!case.lends || pairs[1] > 0),
        pairs,
        stock,
        ours,
    }
}

fn line(row: &Row) -> String {
    let Row { case, equal, experts_ours, pairs, stock, ours } = row;
    format!(
        "{case}: experts ours {experts_ours}, text equal {equal}; resident at the start {} → {} MiB, \
         read until then {} → {} MiB; on a device {} of {} pairs",
        stock.resident_mib, ours.resident_mib, stock.read_mib, ours.read_mib, pairs[1], pairs[0]
    )
}

fn turn(server: &Path, model: &Path, case: &Case, library: Option<&Path>) -> Result<Turn> {
    drop_page_cache()?;
    let folder = tempfile::tempdir()?;
    let stats = folder.path().join("run.json");
    let address = format!("127.0.0.1:{}", free_port()?);
    let port = address.rsplit(':').next().unwrap_or_default();
    let mut command = Command::new(server);
    command.arg("--model").arg(model).args(["--port", port, "--parallel", "1", "--no-warmup"]);
    command.args(["--no-repack", "--ctx-size", "512", "--threads", "2"]).args(case.flags);
    // ggml hides Vulkan devices that are CPUs unless they are named.
    command.env("GGML_VK_VISIBLE_DEVICES", "0").env_remove("GGML_BACKEND_PATH");
    if let Some(library) = library {
        command.env("GGML_BACKEND_PATH", library).env("MOTLEY_STATS", &stats);
        command.envs(case.variables.iter().copied());
    }
    let server = Running::start(Start { command, listens: Listens::At(address) })?;
    let (resident_mib, read_mib) = (resident_mib(server.id())?, read_mib(server.id())?);
    let question = json!({
        "prompt": PROMPT, "n_predict": ANSWER_TOKENS, "temperature": 0, "ignore_eos": true,
        "cache_prompt": false,
    });
    let answer = post(&server.address, "/completion", &question)?;
    server.end()?;
    let stats = std::fs::read(&stats).unwrap_or_default();
    Ok(Turn {
        text: answer["content"].as_str().unwrap_or_default().to_owned(),
        resident_mib,
        read_mib,
        stats: serde_json::from_slice(&stats).unwrap_or_default(),
    })
}

fn resident_mib(process: u32) -> Result<u64> {
    Ok(number(&format!("/proc/{process}/status"), "VmRSS:")? >> 10)
}

fn read_mib(process: u32) -> Result<u64> {
    Ok(number(&format!("/proc/{process}/io"), "read_bytes:")? >> 20)
}

fn number(path: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(path)?;
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    let word = found.and_then(|rest| rest.split_whitespace().next());
    Ok(word.with_context(|| format!("no {name} in {path}"))?.parse()?)
}
