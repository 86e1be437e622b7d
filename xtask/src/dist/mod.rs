//! `cargo xtask dist`: packages for Linux on x86-64 that run wherever glibc is not older than
//! `sysroot::GLIBC`, with kernels for every x86 level. Publishes nothing.
//!
//! In reading order:
//! - [`build`]: one build against an old Debian's libraries; `sysroot`: those libraries;
//!   `vulkan`: what Vulkan's backend needs beside them.
//! - [`stage`]: the installed tree, once; `libraries`: what of ggml belongs into it; [`floor`]: how
//!   old a system may be.
//! - `archive`, `deb`, `wheel`, `image`: that tree wrapped up; `bill`: its bill of materials.
//! - [`trial`]: each of them installed and run in clean roots.
//! - `tools`: what is called for all this, and at which version.
//!
//! ```text
//! dist/motley-<version>-x86_64-linux.tar.gz
//!      motley_<version>_amd64.deb
//!      motley_moe-<version>-py3-none-manylinux_2_31_x86_64.whl
//!      motley-<version>-x86_64-oci.tar
//!      motley-<version>.cdx.json
//!      SHA256SUMS
//! ```

mod archive;
mod bill;
pub mod build;
mod deb;
pub mod floor;
mod image;
mod libraries;
pub mod stage;
mod sysroot;
pub(crate) mod tools;
pub mod trial;
pub(crate) mod vulkan;
mod wheel;

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
    /// Features of the binary beside `dynamic-backends`, with commas between; empty for none.
    #[arg(long, value_name = "NAMES", default_value = "vulkan")]
    pub features: String,
    /// Folder the artefacts are written to.
    #[arg(long, value_name = "FOLDER", default_value = "dist")]
    pub out: PathBuf,
}

/// Builds and packs; the artefacts.
pub fn dist(asked: &Dist, say: &mut dyn FnMut(&str)) -> Result<Vec<PathBuf>> {
    let facts = build::Facts::read()?;
    fs::create_dir_all(&asked.out).with_context(|| asked.out.display().to_string())?;
    let out = asked.out.canonicalize()?;
    say("building");
    let built = build::build(&facts, &asked.features)?;
    say("bill of materials");
    let bill = bill::write(&facts, &built.features, &out)?;
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
    write_sums(&artefacts, &out)?;
    Ok(artefacts)
}

/// Wraps the installed tree up; where that was written to.
type Pack = fn(&build::Facts, &Path, &Path) -> Result<PathBuf>;

fn write_sums(artefacts: &[PathBuf], out: &Path) -> Result<()> {
    let mut sums = String::new();
    for path in artefacts {
        let name = path.file_name().context("an artefact without a name")?.to_string_lossy();
        sums += &checksum(&name, &fs::read(path)?);
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
    fn a_checksum_reads_as_that_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum("motley", b""), format!("{empty}  motley\n"));
    }
}
