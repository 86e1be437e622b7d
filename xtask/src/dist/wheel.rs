//! The tree as a Python wheel that holds no Python: `pipx install motley-moe` puts the program and
//! its libraries into an environment in the places they have everywhere. Not built by maturin,
//! which would link another program than the one that is packed here and tested.

use super::build::{BINARY, Facts};
use super::sysroot::GLIBC;
use super::tools::run;
use crate::workspace_root;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name on the Python Package Index, as file names spell it.
const NAME: &str = "motley_moe";
/// Folders of the tree that go into an environment's own.
const FOLDERS: [&str; 2] = ["lib", "share"];

/// Writes it into `out`.
pub(super) fn pack(facts: &Facts, tree: &Path, out: &Path) -> Result<PathBuf> {
    let root = facts.scratch("wheel")?;
    let data = root.join(format!("{NAME}-{}.data", facts.version));
    let info = root.join(format!("{NAME}-{}.dist-info", facts.version));
    let copy = |from: &Path, to: &Path| {
        run(Command::new("cp").args(["--archive", "--no-target-directory"]).arg(from).arg(to))
    };
    for folder in [&data.join("scripts"), &data.join("data"), &info] {
        fs::create_dir_all(folder)?;
    }
    copy(&tree.join("bin").join(BINARY), &data.join("scripts").join(BINARY))?;
    for folder in FOLDERS {
        copy(&tree.join(folder), &data.join("data").join(folder))?;
    }
    let tag = format!("py3-none-manylinux_{}_{}", GLIBC.replace('.', "_"), facts.processor.name);
    fs::write(info.join("WHEEL"), wheel(&tag))?;
    fs::write(info.join("METADATA"), metadata(&facts.version)?)?;
    let record = info.join("RECORD");
    let mut lines = String::new();
    record_of(&root, &root, &mut lines)?;
    lines += &format!("{NAME}-{}.dist-info/RECORD,,\n", facts.version);
    fs::write(record, lines)?;
    let path = out.join(format!("{NAME}-{}-{tag}.whl", facts.version));
    run(Command::new("python3")
        .args(["-m", "zipfile", "--create"])
        .arg(&path)
        .args([&data, &info].map(|folder| folder.strip_prefix(&root).unwrap_or(folder)))
        .current_dir(&root))?;
    Ok(path)
}

fn wheel(tag: &str) -> String {
    format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n")
}

/// With the repository's README as the page people see.
fn metadata(version: &str) -> Result<String> {
    let page = fs::read_to_string(workspace_root().join("README.md"))?;
    Ok(format!(
        "Metadata-Version: 2.1\n\
         Name: motley-moe\n\
         Version: {version}\n\
         Summary: Runs mixture-of-experts models larger than your GPU on the machine you have\n\
         License: MIT OR Apache-2.0\n\
         Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n{page}"
    ))
}

/// A line for every file below `folder`: its place, its digest and its size.
fn record_of(root: &Path, folder: &Path, lines: &mut String) -> Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            record_of(root, &path, lines)?;
            continue;
        }
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let place = path.strip_prefix(root)?.display().to_string();
        let digest = base64url(&Sha256::digest(&bytes));
        *lines += &format!("{place},sha256={digest},{}\n", bytes.len());
    }
    Ok(())
}

/// Base 64 with the alphabet of addresses and without padding, as RECORD has it.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(bits);
        for index in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * index)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_python_has_it() {
        for (bytes, text) in [(&b""[..], ""), (b"f", "Zg"), (b"fo", "Zm8"), (b"foo", "Zm9v")] {
            assert_eq!(base64url(bytes), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff, 0xbf]), "-_-_");
    }

    #[test]
    fn a_record_names_every_file_below() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("lib")).unwrap();
        fs::write(root.path().join("lib/a"), "").unwrap();
        let mut lines = String::new();
        record_of(root.path(), root.path(), &mut lines).unwrap();
        assert_eq!(lines, "lib/a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n");
    }
}
