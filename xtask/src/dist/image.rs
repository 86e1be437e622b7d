//! The tree as an image for containers, in OCI's layout and in one file, made by `umoci` without a
//! daemon: the few Debian libraries the program asks for, and the program. There is no shell in it.

use super::archive::REPRODUCIBLE;
use super::build::{BINARY, Facts};
use super::sysroot;
use super::tools::run;
use anyhow::Result;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's release below the program.
const SUITE: &str = "trixie";
/// What the program is linked with; Vulkan's loader for when a driver is mounted into the container.
const PACKAGES: &str = "--include=libc6,libgcc-s1,libstdc++6,libvulkan1,base-files";
/// Who the program runs as: nobody in particular.
const USER: &str = "65532:65532";
/// Folder of that user, for settings and what was measured.
const HOME: &str = "data";

/// Writes it into `out`: `podman load` and `skopeo copy oci-archive:…` take it.
pub(super) fn pack(facts: &Facts, tree: &Path, out: &Path) -> Result<PathBuf> {
    let work = facts.scratch("image")?;
    let base = work.join("base");
    fs::create_dir(&base)?;
    sysroot::extract(facts.processor, SUITE, PACKAGES, &base)?;
    trim(&base)?;
    let layout = work.join("layout");
    let image = format!("{}:{}", layout.display(), facts.version);
    umoci(&["init", "--layout"], &[&layout])?;
    umoci(&["new", "--image", &image], &[])?;
    umoci(&["insert", "--image", &image], &[&base, Path::new("/")])?;
    umoci(&["insert", "--image", &image], &[tree, Path::new("/usr/local")])?;
    umoci(&config(&image, facts), &[])?;
    let path = out.join(format!("{BINARY}-{}-{}-oci.tar", facts.version, facts.processor.name));
    run(Command::new("tar")
        .args(REPRODUCIBLE)
        .arg("--create")
        .arg("--file")
        .arg(&path)
        .arg("--directory")
        .arg(&layout)
        .arg("."))?;
    Ok(path)
}

/// Leaves out what nobody reads in a container, and makes the user's folder.
fn trim(base: &Path) -> Result<()> {
    for folder in ["usr/share/doc", "usr/share/locale", "usr/share/man", "var/cache", "var/lib/apt"]
    {
        let folder = base.join(folder);
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    let home = base.join(HOME);
    fs::create_dir(&home)?;
    Ok(fs::set_permissions(&home, fs::Permissions::from_mode(0o1777))?)
}

fn config<'a>(image: &'a str, facts: &'a Facts) -> Vec<&'a str> {
    vec![
        "config",
        "--image",
        image,
        "--architecture",
        facts.processor.debian,
        "--os=linux",
        "--config.entrypoint=/usr/local/bin/motley",
        "--config.cmd=doctor",
        "--config.env=PATH=/usr/local/bin:/usr/bin:/bin",
        "--config.env=HOME=/data",
        "--config.workingdir=/data",
        "--config.volume=/models",
        "--config.exposedports=8080",
        "--config.user",
        USER,
        "--config.label=org.opencontainers.image.title=motley",
        "--config.label=org.opencontainers.image.licenses=MIT OR Apache-2.0",
        "--history.created_by",
        &facts.version,
    ]
}

fn umoci(words: &[&str], paths: &[&Path]) -> Result<()> {
    run(Command::new("umoci").args(words).args(paths))
}
