//! A program for another processor or system, run by somebody else than this machine: is every way of
//! loading a model exactly what the bare engine computes, and does a server answer? Knows neither who
//! runs it nor on what.

use super::asked::ASKED;
use super::report::{tokens_of, yes};
use super::unpacked::small_model;
use crate::capped::worker::worker;
use crate::dist::tools::output;
use crate::servers::{Context as Cells, MotleyServe, Running, post};
use anyhow::{Context, Result, ensure};
use motley_model::{KvType, ModelSpec};
use motley_plan::budget::{Budget, SessionShape};
use motley_testkit::synth::Arch;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Architectures whose logits are compared.
const ARCHITECTURES: [Arch; 2] = [Arch::Qwen3moe, Arch::GptOss];
/// Tokens of the prompt, and after it.
const TOKENS: (u32, u32) = (32, 8);
/// What a session is.
const SHAPE: SessionShape = SessionShape {
    context_tokens: 256,
    kv: KvType::F16,
    windows: false,
    chunk_tokens: 32,
    output_tokens: 1,
    states: 1,
};
/// Slots beyond the least: most experts are read again and again.
const SPARE_SLOTS: u64 = 9;

/// One architecture.
#[derive(Debug, Serialize)]
pub struct Equal {
    pub architecture: String,
    pub logits_bytes: usize,
    pub mapped: bool,
    pub on_demand: bool,
}

/// What a program said.
#[derive(Debug, Serialize)]
pub struct Answers {
    /// Level of the kernels that were chosen, by `doctor`.
    pub kernels: String,
    pub instructions: Vec<String>,
    /// By architecture: are the logits the bare engine's, bit for bit?
    pub equal: Vec<Equal>,
    /// What the server said to one question, all in RAM and on demand.
    pub served: [String; 2],
}

/// Above [`Answers::rows`].
pub(in crate::dist) const HEAD: &str = "processor    kernels     model      mapped  on demand\n";

impl Answers {
    /// What went wrong, in words; nothing when all is well.
    pub(in crate::dist) fn faults(&self) -> impl Iterator<Item = String> {
        let other = self.equal.iter().filter(|equal| !(equal.mapped && equal.on_demand));
        let other = other.map(|equal| format!("other logits of {}", equal.architecture));
        let two = self.served[0] != self.served[1];
        other.chain(two.then(|| "two answers to one question".to_owned()))
    }

    /// Lines of at most 80 columns, each with `name` in front.
    pub(in crate::dist) fn rows(&self, name: &str) -> String {
        let mut text = String::new();
        for equal in &self.equal {
            let [mapped, on_demand] = [equal.mapped, equal.on_demand].map(yes);
            let (kernels, architecture) = (&self.kernels, &equal.architecture);
            let _ = writeln!(
                text,
                "{name:<12} {kernels:<11} {architecture:<10} {mapped:<7} {on_demand}"
            );
        }
        let _ = writeln!(text, "{name:<12} a server says {:?}", self.served[0]);
        text
    }
}

/// A program, and how it is run.
pub(in crate::dist) struct Exactness<'a> {
    pub(in crate::dist) program: PathBuf,
    pub(in crate::dist) command: &'a dyn Fn() -> Command,
}

impl Exactness<'_> {
    /// All of it.
    pub(in crate::dist) fn answers(&self) -> Result<Answers> {
        let doctor = output((self.command)().args(["doctor", "--json"]))?;
        let build = &serde_json::from_str::<Value>(&doctor)?["build"];
        let used = build["used_instructions"].as_array().into_iter().flatten();
        let equal = ARCHITECTURES.map(|architecture| self.compare(architecture));
        let model = small_model(ARCHITECTURES[0])?;
        let memory = memory_of(&model)?;
        Ok(Answers {
            kernels: build["kernels"].as_str().context("doctor names no kernels")?.to_owned(),
            instructions: used.filter_map(|word| word.as_str().map(str::to_owned)).collect(),
            equal: equal.into_iter().collect::<Result<_>>()?,
            served: [self.served(&model, None)?, self.served(&model, Some(memory))?],
        })
    }

    /// The most likely tokens after a prompt, by `run`: as it decides by itself, and on demand.
    pub(in crate::dist) fn continued(&self) -> Result<[Vec<i64>; 2]> {
        let model = small_model(ARCHITECTURES[0])?;
        let memory = memory_of(&model)?.to_string();
        let run = |more: &[&str]| -> Result<Vec<i64>> {
            let mut command = (self.command)();
            command.arg("run").arg(&model).arg("--json").args(ASKED).args(more);
            Ok(tokens_of(&serde_json::from_str(&output(&mut command)?)?))
        };
        let context = SHAPE.context_tokens.to_string();
        Ok([run(&[])?, run(&["--memory", &memory, "--context", &context])?])
    }

    fn compare(&self, architecture: Arch) -> Result<Equal> {
        let model = small_model(architecture)?;
        let memory = memory_of(&model)?;
        let bare = self.logits(&model, &json!({ "bare": true }))?;
        let mapped = self.logits(&model, &json!({}))?;
        let on_demand = self.logits(&model, &json!({ "on_demand": true, "memory": memory }))?;
        ensure!(!bare.is_empty(), "the bare engine wrote no logits");
        Ok(Equal {
            architecture: architecture.to_string(),
            logits_bytes: bare.len(),
            mapped: mapped == bare,
            on_demand: on_demand == bare,
        })
    }

    fn logits(&self, model: &Path, way: &Value) -> Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new()?;
        let mut job = json!({
            "model": model, "threads": 1, "context": SHAPE.context_tokens,
            "chunk": SHAPE.chunk_tokens, "prefill": TOKENS.0, "decode": TOKENS.1, "repeat": 1,
            "logits": file.path(),
        });
        for (key, value) in way.as_object().into_iter().flatten() {
            job[key] = value.clone();
        }
        let ended = worker((self.command)(), &job)?;
        ensure!(ended.status.success(), "{}: {way} failed", model.display());
        Ok(std::fs::read(file.path())?)
    }

    fn served(&self, model: &Path, memory_bytes: Option<u64>) -> Result<String> {
        let serve = MotleyServe {
            program: self.program.clone(),
            model: model.to_owned(),
            threads: 1,
            streams: 1,
            context: Cells::Shared(SHAPE.context_tokens),
            memory_bytes,
            exact: true,
            more: Vec::new(),
        };
        let server = Running::start(serve.start_by((self.command)()))?;
        let question = json!({
            "messages": [{ "role": "user", "content": "What is the capital of France?" }],
            "max_tokens": 8, "temperature": 0,
        });
        let answer = post(&server.address, "/v1/chat/completions", &question)?;
        let said = answer["choices"][0]["message"]["content"].as_str();
        Ok(said.context("an answer without a message")?.to_owned())
    }
}

/// A budget in which experts have to make room for each other.
fn memory_of(model: &Path) -> Result<u64> {
    let (spec, _) = ModelSpec::open(model)?;
    let budget = Budget::of(&spec, SHAPE);
    Ok(budget.smallest_bytes() + SPARE_SLOTS * budget.slot_bytes)
}
