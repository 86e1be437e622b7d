//! The installed tree, made once; every package wraps the same files.
//!
//! ```text
//! bin/motley
//! lib/motley/libllama.so.0 …            llama.cpp, looked for from where the program lies
//!           /libggml-cpu-haswell.so …   one of these is loaded at start
//!           /libggml-vulkan.so          loaded where there is a driver
//!           /libggml_motley.so          for a llama.cpp that is there already (`motley env`)
//! share/man/man1/motley*.1.gz
//!      /bash-completion, /zsh, /fish
//!      /doc/motley                      licences, bill of materials
//! ```

use super::build::{BINARY, Built, Facts};
use super::floor::Floor;
use super::libraries;
use super::processor::Processor;
use super::tools::{output, run};
use crate::dropin::LIBRARY;
use crate::workspace_root;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of our libraries in the tree.
pub const LIBRARIES: &str = "lib/motley";
/// Where each shell looks for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/motley"),
    ("zsh", "share/zsh/site-functions/_motley"),
    ("fish", "share/fish/vendor_completions.d/motley.fish"),
];
/// Where documents go.
const DOCUMENTS: &str = "share/doc/motley";
/// Licences of this repository.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Makes the tree; its root. Fails when a file asks for more than the oldest system has.
pub fn stage(facts: &Facts, built: &Built, bill: &Path) -> Result<PathBuf> {
    let root = facts.scratch("tree")?;
    let folder = |name: &str| -> Result<PathBuf> {
        let path = root.join(name);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(path)
    };
    let libraries = folder(LIBRARIES)?;
    for (name, path) in libraries::collect(facts, built)? {
        copy_stripped(facts.processor, &path, &libraries.join(name))?;
    }
    copy_stripped(facts.processor, &built.dropin, &libraries.join(LIBRARY))?;
    let program = folder("bin")?.join(BINARY);
    copy_stripped(facts.processor, &built.binary, &program)?;
    let asked = || facts.processor.command(&program, &built.sysroot);
    for (shell, path) in COMPLETIONS {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a path without a folder")?)?;
        fs::write(path, output(asked().args(["completions", shell]))?)?;
    }
    write_manual(asked(), &folder("share/man/man1")?)?;
    write_documents(facts, bill, &folder(DOCUMENTS)?)?;
    Ok(root)
}

/// Without symbols nobody looks up. The list of crates stays.
fn copy_stripped(processor: &Processor, from: &Path, to: &Path) -> Result<()> {
    run(processor.gnu_program("strip").args(["--strip-unneeded", "-o"]).arg(to).arg(from))?;
    let name = to.file_name().context("a file without a name")?.to_string_lossy();
    Floor::of(to, processor)?.check(&name)
}

fn write_manual(mut program: Command, folder: &Path) -> Result<()> {
    run(program.arg("man").arg(folder))?;
    let pages: Result<Vec<_>, _> = fs::read_dir(folder)?.map(|page| Ok(page?.path())).collect();
    let pages = pages.map_err(|error: std::io::Error| error)?;
    run(Command::new("gzip").args(["-9", "--no-name"]).args(pages))
}

fn write_documents(facts: &Facts, bill: &Path, folder: &Path) -> Result<()> {
    for name in LICENCES {
        fs::copy(workspace_root().join(name), folder.join(name))?;
    }
    let licence = facts.llama_folder.join("llama.cpp/LICENSE");
    fs::copy(licence, folder.join("LICENSE-llama.cpp"))?;
    fs::copy(bill, folder.join("motley.cdx.json"))?;
    Ok(())
}
