//! `cargo xtask dist`: packages for Linux, on x86-64 or another processor, that run wherever glibc is
//! not older than `sysroot::GLIBC`, with kernels for every level of that processor; and for Windows.
//! Publishes nothing.
//!
//! In reading order:
//! - [`processor`]: what differs between processors.
//! - [`build`]: one build against an old Debian's libraries; `sysroot`: those libraries;
//!   `vulkan`: what Vulkan's backend needs beside them.
//! - [`stage`]: the installed tree, once; `libraries`: what of ggml belongs into it; [`floor`]: how
//!   old a system may be.
//! - `archive`, `deb`, `wheel`, `image`: that tree wrapped up; `bill`: its bill of materials.
//! - [`trial`]: each of them installed and run in clean roots.
//! - [`windows`]: another system, whose packages have another shape.
//! - `tools`: what is called for all this, and at which version.
//!
//! ```text
//! dist/motley-<version>-x86_64-linux.tar.gz
//!      motley_<version>_amd64.deb
//!      motley_moe-<version>-py3-none-manylinux_2_31_x86_64.whl
//!      motley-<version>-x86_64-oci.tar
//!      motley-<version>-x86_64-linux.cdx.json
//!      SHA256SUMS
//! ```

mod archive;
mod bill;
pub mod build;
mod deb;
pub mod floor;
mod image;
mod libraries;
pub mod processor;
pub mod stage;
mod sysroot;
pub(crate) mod tools;
pub mod trial;
pub(crate) mod vulkan;
mod wheel;
pub mod windows;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Checksums of the artefacts, as `sha256sum` writes them.
const SUMS: &str = "SHA256SUMS";

/// What is packed.
#[derive(Debug, Clone, clap::Args)]
pub struct Dist {
    /// Processor and system it is for.
    #[arg(long, value_name = "TRIPLE", default_value = processor::PROCESSORS[0].triple)]
    pub target: String,
    /// Features of the binary beside `dynamic-backends`, with commas between; empty for none.
    #[arg(long, value_name = "NAMES", default_value = "vulkan")]
    pub features: String,
    /// Folder the artefacts are written to.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub out: PathBuf,
}

/// Builds and packs; the artefacts.
pub fn dist(asked: &Dist, say: &mut dyn FnMut(&str)) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(&asked.out).with_context(|| asked.out.display().to_string())?;
    let out = asked.out.canonicalize()?;
    if asked.target == windows::TRIPLE {
        let (version, artefacts) = windows::dist(&asked.features, &out, say)?;
        write_sums(&version, &out)?;
        return Ok(artefacts);
    }
    let facts = build::Facts::read(processor::Processor::of_triple(&asked.target)?)?;
    say("building");
    let built = build::build(&facts, &asked.features)?;
    say("bill of materials");
    let target = (facts.processor.triple, "linux");
    let bill = bill::write(&facts, target, &built.features, &out)?;
    say("installed tree");
    let tree = stage::stage(&facts, &built, &bill)?;
    let mut artefacts = vec![bill];
    for (what, pack) in [
        ("tar.gz", archive::pack as Pack),
        ("deb", deb::pack),
        ("wheel", wheel::pack),
        ("image", image::pack),
    ] {
        say(what);
        artefacts.push(pack(&facts, &tree, &out)?);
    }
    write_sums(&facts.version, &out)?;
    Ok(artefacts)
}

/// Wraps the installed tree up; where that was written to.
type Pack = fn(&build::Facts, &Path, &Path) -> Result<PathBuf>;

/// Of all packages of this version in the folder: those for another processor stay listed.
fn write_sums(version: &str, out: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(build::BINARY) && name.contains(version) {
            names.push(name);
        }
    }
    names.sort();
    let mut sums = String::new();
    for name in names {
        sums += &checksum(&name, &fs::read(out.join(&name))?);
    }
    Ok(fs::write(out.join(SUMS), sums)?)
}

/// A line as `sha256sum` writes it.
fn checksum(name: &str, bytes: &[u8]) -> String {
    let mut line = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(line, "{byte:02x}");
    }
    line + "  " + name + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_every_processor_are_summed_and_nothing_else() {
        let out = tempfile::tempdir().unwrap();
        for name in ["motley_1.0_arm64.deb", "motley_1.0_amd64.deb", "motley_0.9_amd64.deb", "x"] {
            fs::write(out.path().join(name), "").unwrap();
        }
        write_sums("1.0", out.path()).unwrap();
        let sums = fs::read_to_string(out.path().join(SUMS)).unwrap();
        let names: Vec<_> = sums.lines().filter_map(|line| line.split("  ").nth(1)).collect();
        assert_eq!(names, ["motley_1.0_amd64.deb", "motley_1.0_arm64.deb"]);
    }

    #[test]
    fn a_checksum_reads_as_that_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum("motley", b""), format!("{empty}  motley\n"));
    }
}
