//! Packages for another processor than this machine's, run by an emulator that is asked to be one
//! model of it after the other: is every way of loading a model exactly what the bare engine
//! computes, and does a server answer? How fast anything is, an emulator does not tell.

use super::asked::at_home;
use super::exact::{Answers, Exactness, HEAD};
use super::report::File;
use super::unpacked::{files_of, unpack_archive};
use crate::dist::build::Facts;
use crate::dist::sysroot;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    #[serde(flatten)]
    pub answers: Answers,
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
        // The process that tries a new file would be a program of the other processor, started by
        // this machine's system, which cannot.
        command.env("MOTLEY_TRUST_FILE", "true");
        command
    }

    fn try_as(&self, name: &'static str) -> Result<Model> {
        let program = self.program.clone();
        let tried = Exactness { program, command: &|| self.command(name) };
        Ok(Model { name, answers: tried.answers()? })
    }
}

impl Emulated {
    /// What went wrong, in words; nothing when all is well.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for model in &self.processors {
            let of_model = model.answers.faults();
            faults.extend(of_model.map(|fault| format!("{}: {fault}", model.name)));
        }
        faults
    }

    /// Lines of at most 80 columns.
    pub fn table(&self) -> String {
        let mut text = HEAD.to_owned();
        for model in &self.processors {
            text += &model.answers.rows(model.name);
        }
        for (name, bytes) in &self.packages {
            let _ = writeln!(text, "{:>5.1} MB  {name}", *bytes as f64 / 1e6);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::Equal;
    use super::*;

    fn found(mapped: bool, second_answer: &str) -> Emulated {
        let equal =
            Equal { architecture: "qwen3moe".into(), logits_bytes: 4, mapped, on_demand: true };
        let served = ["Paris".to_owned(), second_answer.to_owned()];
        let (kernels, instructions) = ("armv8.0_1".into(), Vec::new());
        let answers = Answers { kernels, instructions, equal: vec![equal], served };
        let model = Model { name: "max", answers };
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
        assert_eq!(found(false, "Paris").faults(), ["max: other logits of qwen3moe"]);
        assert_eq!(found(true, "Rome").faults(), ["max: two answers to one question"]);
        let table = found(false, "Paris").table();
        assert!(table.contains("max          armv8.0_1   qwen3moe   no      yes\n"), "{table}");
        assert!(table.contains(" 12.3 MB  motley_1_arm64.deb"), "{table}");
    }
}
