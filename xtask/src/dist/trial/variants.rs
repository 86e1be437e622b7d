//! Every CPU level's kernels by themselves: what this processor can run of them must say the same.

use super::super::build::Facts;
use super::super::stage::LIBRARIES;
use super::super::tools::output;
use super::asked::{ASKED, at_home};
use super::report::{Variant, tokens_of};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// How the names of libraries with a level's kernels begin.
const PREFIX: &str = "libggml-cpu-";

/// Runs `model` with each.
pub(super) fn try_all(facts: &Facts, tree: &Path, model: &Path) -> Result<Vec<Variant>> {
    let mut variants = Vec::new();
    for entry in fs::read_dir(tree.join(LIBRARIES))? {
        let path = entry?.path();
        let name = path.file_name().context("a file without a name")?.to_string_lossy();
        let level = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(".so"));
        if let Some(level) = level {
            variants.push(try_one(facts, tree, &path, level, model)?);
        }
    }
    variants.sort_by(|a, b| a.level.cmp(&b.level));
    Ok(variants)
}

/// In a folder where it is the only one; ggml's other libraries are loaded with the program.
fn try_one(
    facts: &Facts,
    tree: &Path,
    library: &Path,
    level: &str,
    model: &Path,
) -> Result<Variant> {
    let folder = facts.scratch("variant")?;
    fs::copy(library, folder.join(library.file_name().context("a file without a name")?))?;
    let mut command = at_home(Command::new(tree.join("bin/motley")), &folder);
    command.env("MOTLEY_BACKENDS", &folder);
    command.arg("run").arg(model).args(["--json", "--no-record"]).args(ASKED);
    let ran = output(&mut command);
    let (tokens, error) = match ran {
        Ok(text) => (tokens_of(&serde_json::from_str::<Value>(&text)?), None),
        Err(error) => (Vec::new(), Some(last_line(&error.to_string()))),
    };
    Ok(Variant { level: level.to_owned(), tokens, error })
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().to_owned()
}
