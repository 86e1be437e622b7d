//! The tree as a Debian package, with a unit for `motley serve` that is not started by itself:
//! it needs a model first. Packed by `dpkg-deb` from the tree all packages share.

use super::build::{BINARY, Facts};
use super::sysroot::GLIBC;
use super::tools::run;
use crate::workspace_root;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of `packaging/` and where they are installed.
const FILES: [(&str, &str); 2] = [
    ("systemd/motley.service", "usr/lib/systemd/system/motley.service"),
    ("systemd/serve.env", "etc/motley/serve.env"),
];
/// Scripts of `packaging/deb/` that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
/// Files an administrator changes; dpkg keeps what was changed.
const KEPT: &str = "/etc/motley/serve.env\n";
/// Debian's zsh looks elsewhere than zsh's own.
const ZSH: [&str; 2] = ["usr/share/zsh/site-functions", "usr/share/zsh/vendor-completions"];

/// Writes it into `out`.
pub(super) fn pack(facts: &Facts, tree: &Path, out: &Path) -> Result<PathBuf> {
    let root = facts.scratch("deb")?;
    run(Command::new("cp").arg("--archive").arg(tree).arg(root.join("usr")))?;
    fs::rename(root.join(ZSH[0]), root.join(ZSH[1]))?;
    let packaging = workspace_root().join("packaging");
    for (from, to) in FILES {
        copy(&packaging.join(from), &root.join(to), 0o644)?;
    }
    for script in SCRIPTS {
        copy(&packaging.join("deb").join(script), &root.join("DEBIAN").join(script), 0o755)?;
    }
    fs::write(root.join("DEBIAN/conffiles"), KEPT)?;
    fs::write(root.join("DEBIAN/control"), control(facts, kibibytes(&root)?))?;
    let path = out.join(format!("{BINARY}_{}_{}.deb", facts.version, facts.processor.debian));
    run(Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group", "-Zxz"])
        .arg(&root)
        .arg(&path))?;
    Ok(path)
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a path without a folder")?)?;
    fs::copy(from, to).with_context(|| from.display().to_string())?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// What is below `folder`.
fn kibibytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { kibibytes(&entry.path())? << 10 } else { found.len() };
    }
    Ok(bytes >> 10)
}

fn control(facts: &Facts, kibibytes: u64) -> String {
    let (version, processor) = (&facts.version, facts.processor.debian);
    format!(
        "Package: {BINARY}\n\
         Version: {version}\n\
         Architecture: {processor}\n\
         Maintainer: The Motley contributors <contributors@motley.invalid>\n\
         Installed-Size: {kibibytes}\n\
         Depends: libc6 (>= {GLIBC}), libgcc-s1, libstdc++6 (>= 10)\n\
         Suggests: libvulkan1\n\
         Section: science\n\
         Priority: optional\n\
         Description: runs mixture-of-experts models larger than your GPU\n \
         Runs language models with routed experts that are larger than the memory of\n \
         the GPU or of the machine, and serves them through an OpenAI-compatible API.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::processor::PROCESSORS;
    use super::*;

    #[test]
    fn the_description_is_folded_as_debian_folds_it() {
        let control = control(&Facts::read(&PROCESSORS[1]).unwrap(), 4);
        assert!(control.contains("\nArchitecture: arm64\n"), "{control}");
        let (_, description) = control.split_once("Description: ").unwrap();
        let more: Vec<&str> = description.lines().skip(1).collect();
        assert_eq!(more.len(), 2, "{control}");
        assert!(more.iter().all(|line| line.starts_with(" R") || line.starts_with(" t")));
        assert!(control.contains("\nDepends: libc6 (>= 2.31),"), "{control}");
    }

    #[test]
    fn every_file_that_is_packed_is_there() {
        let packaging = workspace_root().join("packaging");
        let scripts = SCRIPTS.iter().map(|script| packaging.join("deb").join(script));
        for path in FILES.iter().map(|(from, _)| packaging.join(from)).chain(scripts) {
            assert!(path.is_file(), "{}", path.display());
        }
    }
}
