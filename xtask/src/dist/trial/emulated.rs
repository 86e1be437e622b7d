//! Packages for another processor than this machine's, run by an emulator that is asked to be one
//! model of it after the other: is every way of loading a model exactly what the bare engine
//! computes, and does a server answer? How fast anything is, an emulator does not tell.

use super::asked::at_home;
use super::report::File;
use super::unpacked::{files_of, small_model, unpack_archive};
use crate::capped::worker::worker;
use crate::dist::build::Facts;
use crate::dist::sysroot;
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

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Emulated {
    pub version: String,
    pub target: &'static str,
    pub emulator: &'static str,
    /// Packages and their bytes.
    pub packages: Vec<(String, u64)>,
    pub files: Vec<File>,
    pub processors: Vec<Model>,
}

/// One model of the processor.
#[derive(Debug, Serialize)]
pub struct Model {
    pub name: &'static str,
    /// Level of the kernels that were chosen, by `doctor`.
    pub kernels: String,
    pub instructions: Vec<String>,
    /// By architecture: are the logits the bare engine's, bit for bit?
    pub equal: Vec<Equal>,
    /// What the server said to one question, all in RAM and on demand.
    pub served: [String; 2],
}

/// One architecture.
#[derive(Debug, Serialize)]
pub struct Equal {
    pub architecture: String,
    pub logits_bytes: usize,
    pub mapped: bool,
    pub on_demand: bool,
}

/// The program as it was unpacked, and who runs it.
struct Unpacked<'a> {
    facts: &'a Facts,
    program: PathBuf,
    sysroot: PathBuf,
    home: PathBuf,
}

/// Tries what the archive in `out` holds.
pub fn trial(out: &Path, facts: &Facts, say: &mut dyn FnMut(&str)) -> Result<Emulated> {
    let tree = unpack_archive(facts, out)?;
    let unpacked = Unpacked {
        facts,
        program: tree.join("bin/motley"),
        sysroot: sysroot::make(&facts.target_folder, facts.processor)?,
        home: facts.scratch("home-emulated")?,
    };
    let mut processors = Vec::new();
    for &name in facts.processor.models {
        say(name);
        processors.push(unpacked.try_as(name)?);
    }
    let packages = super::install::artefacts(out, facts)?;
    let packages = packages.iter().map(|found| Ok((found.name(), found.path.metadata()?.len())));
    Ok(Emulated {
        version: facts.version.clone(),
        target: facts.processor.triple,
        emulator: facts.processor.emulator.0,
        packages: packages.collect::<Result<_>>()?,
        files: files_of(facts.processor, &tree)?,
        processors,
    })
}

impl Unpacked<'_> {
    /// The program, on `model` of the processor.
    fn command(&self, model: &str) -> Command {
        let mut command =
            at_home(self.facts.processor.command(&self.program, &self.sysroot), &self.home);
        command.env("QEMU_CPU", model).env("CI", "true");
        command
    }

    fn try_as(&self, name: &'static str) -> Result<Model> {
        let doctor = output(self.command(name).args(["doctor", "--json"]))?;
        let build = &serde_json::from_str::<Value>(&doctor)?["build"];
        let used = build["used_instructions"].as_array().into_iter().flatten();
        let mut equal = Vec::new();
        for architecture in ARCHITECTURES {
            equal.push(self.compare(name, architecture)?);
        }
        let model = small_model(ARCHITECTURES[0])?;
        let memory = memory_of(&model)?;
        Ok(Model {
            name,
            kernels: build["kernels"].as_str().context("doctor names no kernels")?.to_owned(),
            instructions: used.filter_map(|word| word.as_str().map(str::to_owned)).collect(),
            equal,
            served: [self.served(name, &model, None)?, self.served(name, &model, Some(memory))?],
        })
    }

    fn compare(&self, name: &str, architecture: Arch) -> Result<Equal> {
        let model = small_model(architecture)?;
        let memory = memory_of(&model)?;
        let bare = self.logits(name, &model, &json!({ "bare": true }))?;
        let mapped = self.logits(name, &model, &json!({}))?;
        let on_demand =
            self.logits(name, &model, &json!({ "on_demand": true, "memory": memory }))?;
        ensure!(!bare.is_empty(), "the bare engine wrote no logits");
        Ok(Equal {
            architecture: architecture.to_string(),
            logits_bytes: bare.len(),
            mapped: mapped == bare,
            on_demand: on_demand == bare,
        })
    }

    fn logits(&self, name: &str, model: &Path, way: &Value) -> Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new()?;
        let mut job = json!({
            "model": model, "threads": 1, "context": SHAPE.context_tokens,
            "chunk": SHAPE.chunk_tokens, "prefill": TOKENS.0, "decode": TOKENS.1, "repeat": 1,
            "logits": file.path(),
        });
        for (key, value) in way.as_object().into_iter().flatten() {
            job[key] = value.clone();
        }
        let ended = worker(self.command(name), &job)?;
        ensure!(ended.status.success(), "{}: {way} failed", model.display());
        Ok(std::fs::read(file.path())?)
    }

    fn served(&self, name: &str, model: &Path, memory_bytes: Option<u64>) -> Result<String> {
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
        let server = Running::start(serve.start_by(self.command(name)))?;
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

impl Emulated {
    /// What went wrong, in words; nothing when all is well.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for model in &self.processors {
            for equal in model.equal.iter().filter(|equal| !(equal.mapped && equal.on_demand)) {
                faults.push(format!("{} on {}: other logits", equal.architecture, model.name));
            }
            if model.served[0] != model.served[1] {
                faults.push(format!("{}: two answers to one question", model.name));
            }
        }
        faults
    }

    /// Lines of at most 80 columns.
    pub fn table(&self) -> String {
        let mut text = String::from("processor    kernels     model      mapped  on demand\n");
        for model in &self.processors {
            for equal in &model.equal {
                let [mapped, on_demand] = [equal.mapped, equal.on_demand].map(super::report::yes);
                let _ = writeln!(
                    text,
                    "{:<12} {:<11} {:<10} {mapped:<7} {on_demand}",
                    model.name, model.kernels, equal.architecture
                );
            }
            let _ = writeln!(text, "{:<12} a server says {:?}", model.name, model.served[0]);
        }
        for (name, bytes) in &self.packages {
            let _ = writeln!(text, "{:>5.1} MB  {name}", *bytes as f64 / 1e6);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(mapped: bool, second_answer: &str) -> Emulated {
        let equal =
            Equal { architecture: "qwen3moe".into(), logits_bytes: 4, mapped, on_demand: true };
        let served = ["Paris".to_owned(), second_answer.to_owned()];
        let (kernels, instructions) = ("armv8.0_1".into(), Vec::new());
        let model = Model { name: "max", kernels, instructions, equal: vec![equal], served };
        Emulated {
            version: "1".into(),
            target: "aarch64-unknown-linux-gnu",
            emulator: "qemu-aarch64-static",
            packages: vec![("motley_1_arm64.deb".into(), 12_300_000)],
            files: Vec::new(),
            processors: vec![model],
        }
    }

    #[test]
    fn other_logits_and_other_answers_are_faults() {
        assert!(found(true, "Paris").faults().is_empty());
        assert_eq!(found(false, "Paris").faults(), ["qwen3moe on max: other logits"]);
        assert_eq!(found(true, "Rome").faults(), ["max: two answers to one question"]);
        let table = found(false, "Paris").table();
        assert!(table.contains("max          armv8.0_1   qwen3moe   no      yes\n"), "{table}");
        assert!(table.contains(" 12.3 MB  motley_1_arm64.deb"), "{table}");
    }
}
