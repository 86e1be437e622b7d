//! Logits with workers beside those of one process, bit for bit: every architecture, one to three
//! workers, divided by layers, by experts, and with experts that several have.

use super::party::{Head, Worker, addresses, named};
use crate::capped::worker;
use anyhow::{Context, Result, ensure};
use motley_testkit::fixtures;
use motley_testkit::synth::Arch;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;

/// Prompt tokens, and tokens decoded after them.
const PREFILL: usize = 48;
const DECODE: usize = 8;

/// One division of one model.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    model: String,
    division: &'static str,
    workers: usize,
    equal: bool,
    rows: u64,
    /// Rows that did not come back.
    recomputed: u64,
}

/// Every division of every architecture; fails if one differs.
pub(super) fn run(program: &Path, on_line: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for arch in Arch::DISTINCT {
        let model = fixtures::synthetic(arch).context("the models: run `cargo xtask smollm2`")?;
        let alone = logits(&Head::new(program)?, &model, &[])?.0;
        let (layers, experts) = shape(program, &model)?;
        for (division, shards) in divisions(&layers, experts) {
            // Knows nobody yet: every division has other workers at the same addresses.
            let head = Head::new(program)?;
            let mut workers = Vec::new();
            for (number, shard) in (1..).zip(&shards) {
                let flags: Vec<&str> = shard.iter().map(String::as_str).collect();
                let own = ["--threads", "1"];
                let all = [&own[..], &flags].concat();
                workers.push(Worker::start((program, &model), number, &all, None)?);
            }
            head.pair(&model, &workers)?;
            let (with, record) = logits(&head, &model, &addresses(&workers))?;
            let sum = |name: &str| {
                record.iter().map(|worker| worker[name].as_u64().unwrap_or(0)).sum::<u64>()
            };
            let row = Row {
                model: named(&model),
                division,
                workers: shards.len(),
                equal: with == alone && !alone.is_empty(),
                rows: sum("rows"),
                recomputed: sum("recomputed"),
            };
            on_line(&format!(
                "{arch:?}, {} × {division}: {}, {} rows",
                row.workers,
                if row.equal { "equal" } else { "DIFFERS" },
                row.rows
            ));
            ensure!(row.equal && row.rows > 0 && row.recomputed == 0, "{row:?}");
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Flags of each worker, by the name of the division.
fn divisions(layers: &[u32], experts: u32) -> Vec<(&'static str, Vec<Vec<String>>)> {
    let parts = |flag: &str, all: &[u32], of: usize| {
        let part = |number: usize| &all[all.len() * number / of..all.len() * (number + 1) / of];
        let range = |part: &[u32]| format!("{}-{}", part[0], part[part.len() - 1]);
        (0..of).map(|number| vec![flag.to_owned(), range(part(number))]).collect::<Vec<_>>()
    };
    let experts: Vec<u32> = (0..experts).collect();
    let mut replicas = parts("--experts", &experts, 2);
    replicas.push(Vec::new());
    vec![
        ("everything", vec![Vec::new()]),
        ("layers", parts("--layers", layers, 2)),
        ("experts", parts("--experts", &experts, 2)),
        ("experts", parts("--experts", &experts, 3)),
        ("experts, each twice", replicas),
    ]
}

/// Layers with experts, and experts of each, as `motley inspect` says.
fn shape(program: &Path, model: &Path) -> Result<(Vec<u32>, u32)> {
    let output =
        std::process::Command::new(program).args(["inspect", "--json"]).arg(model).output()?;
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let number = |value: &Value| value.as_u64().map(|value| value as u32);
    let layers = said["expert_layers"].as_array().into_iter().flatten();
    let layers: Vec<u32> = layers.filter_map(|layer| number(&layer["layer"])).collect();
    let experts = number(&said["experts"]).filter(|_| layers.len() > 1);
    let experts = experts.with_context(|| format!("{}: too few layers", model.display()))?;
    Ok((layers, experts))
}

/// Bytes of all logits, and what workers did.
fn logits(head: &Head, model: &Path, workers: &[String]) -> Result<(Vec<u8>, Vec<Value>)> {
    let kept = tempfile::NamedTempFile::new()?;
    let job = json!({
        "model": model, "context": 512, "chunk": 32, "prefill": PREFILL, "decode": DECODE,
        "repeat": 1, "threads": 1, "logits": kept.path(), "workers": workers,
    });
    let output = worker::worker(head.command(), &job)?;
    ensure!(output.status.success(), "a run failed; see its message above");
    let outcome: Value = serde_json::from_slice(&output.stdout)?;
    let record = outcome["record"]["workers"].as_array().cloned().unwrap_or_default();
    Ok((std::fs::read(kept.path())?, record))
}
