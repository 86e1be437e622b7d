//! The processors packages are made for, and everything in which these differ.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// One of them, with Linux and glibc.
#[derive(Debug, PartialEq, Eq)]
pub struct Processor {
    /// As Rust names it.
    pub triple: &'static str,
    /// As the names of packages say it.
    pub name: &'static str,
    /// As Debian and images say it.
    pub debian: &'static str,
    /// How GNU's programs for it begin, and Debian's folder of its libraries.
    pub gnu: &'static str,
    /// Debian's package of these programs.
    pub binutils: &'static str,
    /// What loads its programs, as libraries name it.
    pub loader: &'static str,
    /// How the names of ggml's levels for it begin, if they have that in common.
    pub levels: Option<&'static str>,
    /// Runs its programs on other processors: program and Debian's package of it.
    pub emulator: (&'static str, &'static str),
    /// Models of it that the emulator is asked to be, the oldest first.
    pub models: &'static [&'static str],
}

/// All of them, this machine's own or not.
pub const PROCESSORS: [Processor; 2] = [
    Processor {
        triple: "x86_64-unknown-linux-gnu",
        name: "x86_64",
        debian: "amd64",
        gnu: "x86_64-linux-gnu",
        binutils: "binutils-x86-64-linux-gnu",
        loader: "ld-linux-x86-64.so.2",
        levels: None,
        emulator: ("qemu-x86_64-static", "qemu-user-static"),
        models: &["Nehalem", "Haswell", "max"],
    },
    Processor {
        triple: "aarch64-unknown-linux-gnu",
        name: "aarch64",
        debian: "arm64",
        gnu: "aarch64-linux-gnu",
        binutils: "binutils-aarch64-linux-gnu",
        loader: "ld-linux-aarch64.so.1",
        levels: Some("armv"),
        // The first has NEON alone, the second the dot product too, the last SVE and i8mm.
        emulator: ("qemu-aarch64-static", "qemu-user-static"),
        models: &["cortex-a53", "cortex-a76", "max"],
    },
];

impl Processor {
    /// The one Rust calls `triple`.
    pub fn of_triple(triple: &str) -> Result<&'static Self> {
        let known = PROCESSORS.each_ref().map(|processor| processor.triple).join(", ");
        let found = PROCESSORS.iter().find(|processor| processor.triple == triple);
        found.with_context(|| format!("--target {triple}: packages are made for {known}"))
    }

    /// Whether this machine runs its programs by itself.
    pub fn is_own(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// One of GNU's programs for it: `objdump`, `strip`.
    pub(super) fn gnu_program(&self, name: &str) -> Command {
        Command::new(format!("{}-{name}", self.gnu))
    }

    /// `program`, which is for this processor, run on this machine; `root` holds the libraries of
    /// the system it asks for.
    pub(super) fn command(&self, program: &Path, root: &Path) -> Command {
        if self.is_own() {
            return Command::new(program);
        }
        let mut command = Command::new(self.emulator.0);
        command.arg("-L").arg(root).arg(program);
        command
    }

    /// The names of `levels` that are this processor's, in the order of ggml's list of all.
    pub(super) fn levels_of<'a>(&self, all: &[&'a str]) -> Vec<&'a str> {
        match self.levels {
            Some(prefix) => all.iter().copied().filter(|name| name.starts_with(prefix)).collect(),
            // Those before the first one of ARM: they have nothing else in common.
            None => all.iter().copied().take_while(|name| !name.starts_with("arm")).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_packages_is_refused_with_those_that_have_some() {
        let error = Processor::of_triple("riscv64gc-unknown-linux-gnu").unwrap_err().to_string();
        assert!(error.contains("riscv64gc") && error.contains("aarch64-unknown"), "{error}");
        for processor in &PROCESSORS {
            assert_eq!(Processor::of_triple(processor.triple).unwrap(), processor);
        }
    }

    #[test]
    fn what_is_of_another_processor_is_run_by_an_emulator() {
        let other = PROCESSORS.iter().find(|processor| !processor.is_own()).unwrap();
        let command = other.command(Path::new("motley"), Path::new("/old"));
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(
            (command.get_program().to_str(), &words[..]),
            (Some(other.emulator.0), &["-L".as_ref(), "/old".as_ref(), "motley".as_ref()][..])
        );
    }
}
