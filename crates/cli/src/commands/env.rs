//! `motley env`: the variables to put before a command, so that the llama.cpp it runs loads the
//! drop-in library. Says so only after a child process has tried it with that host's own ggml.

use crate::args::{Env, Global};
use crate::terminal::{note, print};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable ggml reads.
const VARIABLE: &str = "GGML_BACKEND_PATH";
/// Where the library finds the backend that was named there before.
const OTHER: &str = "MOTLEY_BACKEND_PATH";
/// The library.
const LIBRARY: &str = "libggml_motley.so";
/// How the library says that it knows a host, and that it does not.
const YES: &str = "motley: recognised ";
const NO: &str = "motley: not taking part: ";
/// How deep a folder is searched for a ggml.
const MAX_DEPTH: usize = 6;

/// Runs the command.
pub(crate) fn run(global: &Global, asked: &Env) -> Result<()> {
    let library = library(asked)?;
    let ggml = ggml_of(&asked.host)?;
    let known = tried(&ggml, &library)?;
    let mut variables = vec![(VARIABLE, library.display().to_string())];
    let before = std::env::var_os(VARIABLE).filter(|before| Path::new(before) != library);
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        variables.insert(0, (OTHER, before.to_string_lossy().into_owned()));
    }
    if global.json {
        let variables: serde_json::Map<String, serde_json::Value> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let said = serde_json::json!({ "variables": variables, "ggml": ggml, "recognised": known });
        return print(true, &said.to_string());
    }
    note(&format!("{}: {known}; put this before the command:", ggml.display()));
    let line = variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    print(false, &line.collect::<Vec<_>>().join(" "))
}

/// The hidden command: loads a host's ggml with everything it loads.
pub(crate) fn check(ggml: &Path) -> Result<()> {
    motley_engine::load_host_backends(ggml).map_err(anyhow::Error::msg)
}

fn library(asked: &Env) -> Result<PathBuf> {
    if let Some(library) = &asked.library {
        return library.canonicalize().with_context(|| library.display().to_string());
    }
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(LIBRARY), folder.join("../lib/motley").join(LIBRARY)];
    places.iter().find_map(|place| place.canonicalize().ok()).with_context(|| {
        format!("{LIBRARY} is not beside {}; name it with --library", program.display())
    })
}

/// The ggml that a program loads, or that lies in a folder.
fn ggml_of(host: &Path) -> Result<PathBuf> {
    if host.is_dir() {
        return find(host, MAX_DEPTH).with_context(|| {
            format!("{}: no libggml.so below; name the folder of its libraries", host.display())
        });
    }
    if is_ggml(host) {
        return host.canonicalize().with_context(|| host.display().to_string());
    }
    let program = on_path(host).with_context(|| format!("{}: no such program", host.display()))?;
    // What `ldd` does: the system's loader names the libraries and runs nothing of the program.
    let output = Command::new(&program).env("LD_TRACE_LOADED_OBJECTS", "1").output();
    let output = output.with_context(|| program.display().to_string())?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let paths = listed.lines().filter_map(|line| line.split("=> ").nth(1)?.split(" (").next());
    paths.map(PathBuf::from).find(|path| is_ggml(path)).with_context(|| {
        format!(
            "{}: loads no libggml.so. A llama.cpp with its ggml inside cannot load backends; take \
             a build with shared libraries (the releases are), or name the folder that has them",
            program.display()
        )
    })
}

/// `libggml.so`, `libggml.so.0`, `libggml.b8390.so`; not its parts.
fn is_ggml(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libggml.") && name.contains(".so") && path.is_file()
}

fn find(folder: &Path, depth: usize) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let here = entries.iter().find(|path| is_ggml(path)).and_then(|path| path.canonicalize().ok());
    let below = || entries.iter().filter(|path| path.is_dir() && !path.is_symlink());
    here.or_else(|| depth.checked_sub(1).and_then(|left| below().find_map(|path| find(path, left))))
}

fn on_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What the library says of this ggml, in a process of its own.
fn tried(ggml: &Path, library: &Path) -> Result<String> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let mut child = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MOTLEY_") {
            child.env_remove(name);
        }
    }
    child.arg("check-host").arg(ggml).env(VARIABLE, library).env("MOTLEY_EXPLAIN", "1");
    let output = child.output().context("no process for a trial")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let after = |mark: &str| {
        said.lines().find_map(|line| line.strip_prefix(mark)).map(|rest| rest.trim().to_owned())
    };
    if let Some(why) = after(NO) {
        bail!("{}: the library would leave this host alone: {why}", ggml.display());
    }
    if let Some(known) = after(YES) {
        return Ok(known);
    }
    ensure!(output.status.success(), "{}: {}", ggml.display(), said.trim());
    bail!("{}: did not load the library; is {} set there?", ggml.display(), VARIABLE)
}

/// As a shell takes it.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:".contains(c);
    match value.chars().all(plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ggml_is_known_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("bins/linux-x64");
        std::fs::create_dir_all(&below).unwrap();
        for name in ["libggml-base.so", "libggml-cpu.so.0", "libggml.txt"] {
            std::fs::write(below.join(name), "").unwrap();
        }
        assert_eq!(find(folder.path(), MAX_DEPTH), None);
        std::fs::write(below.join("libggml.b8390.so"), "").unwrap();
        let found = find(folder.path(), MAX_DEPTH).unwrap();
        assert_eq!(found.file_name().unwrap(), "libggml.b8390.so");
        assert_eq!(find(folder.path(), 1), None, "deeper than asked");
    }

    #[test]
    fn values_are_quoted_for_a_shell() {
        assert_eq!(quoted("/usr/lib/motley/a.so"), "/usr/lib/motley/a.so");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
