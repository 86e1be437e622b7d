//! A root folder to install into and run in: a Debian's base system, unpacked anew each time, or an
//! image. What is mounted into it while a command runs is gone with the command.

use super::super::build::Facts;
use super::super::tools::{output, run};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Beside the base: what `pip install` needs.
const PACKAGES: &str = "--include=python3-venv";
/// Gives a command its own mounts.
pub(super) const UNSHARE: &str = "unshare";
/// Run in a mount namespace of its own: `$0` is the root, then pairs of folders to show up to `--`,
/// then the command. `/dev` and `/sys` are the machine's.
const ENTER: &str = r#"
set -e
root=$0
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --bind "$2" "$root$1"
    shift 2
done
shift
exec chroot "$root" "$@"
"#;
/// Environment inside: nothing of the machine's.
const INSIDE: [&str; 4] =
    ["/usr/bin/env", "-i", "HOME=/srv", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"];

/// One root.
pub struct Root {
    folder: PathBuf,
    /// Folder inside, and the one of the machine shown there.
    shown: Vec<(String, PathBuf)>,
    /// Whether there are programs beside ours: an image has none.
    has_programs: bool,
}

impl Root {
    /// A base system of `suite`, as its packages install it and nothing after.
    pub(super) fn of_debian(facts: &Facts, suite: &str) -> Result<Self> {
        let kept = facts.target_folder.join("dist-roots");
        fs::create_dir_all(&kept)?;
        let archive = kept.join(format!("{suite}.tar"));
        if !archive.exists() {
            let part = kept.join(format!("{suite}.part.tar"));
            let what = ["--quiet", "--variant=minbase", PACKAGES, suite];
            run(Command::new("mmdebstrap").args(what).arg(&part))?;
            fs::rename(part, &archive)?;
        }
        let folder = facts.scratch("root")?;
        let what = ["--extract", "--numeric-owner", "--exclude=./dev/*", "--file"];
        run(Command::new("tar").args(what).arg(archive).arg("--directory").arg(&folder))?;
        Ok(Self { folder, shown: Vec::new(), has_programs: true })
    }

    /// An image's, in OCI's layout in one file.
    pub(super) fn of_image(facts: &Facts, archive: &Path) -> Result<Self> {
        let work = facts.scratch("root")?;
        let layout = work.join("layout");
        fs::create_dir(&layout)?;
        let mut unpack = Command::new("tar");
        run(unpack.args(["--extract", "--file"]).arg(archive).arg("--directory").arg(&layout))?;
        let image = format!("{}:{}", layout.display(), facts.version);
        let bundle = work.join("bundle");
        run(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle))?;
        for name in ["proc", "sys", "dev", "srv"] {
            fs::create_dir_all(bundle.join("rootfs").join(name))?;
        }
        Ok(Self { folder: bundle.join("rootfs"), shown: Vec::new(), has_programs: false })
    }

    /// Shows `folder` of the machine as `inside`.
    pub(super) fn with_folder(mut self, inside: &str, folder: &Path) -> Result<Self> {
        self.shown.push((inside.to_owned(), folder.canonicalize()?));
        Ok(self)
    }

    /// Copies a file into the root, to `inside`.
    pub(super) fn copy(&self, from: &Path, inside: &str) -> Result<()> {
        let to = self.folder.join(inside.trim_start_matches('/'));
        fs::create_dir_all(to.parent().context("a path without a folder")?)?;
        fs::copy(from, to).with_context(|| from.display().to_string())?;
        Ok(())
    }

    /// What `words` print when run inside.
    pub(super) fn output(&self, words: &[&str]) -> Result<String> {
        output(&mut self.enter(Command::new(UNSHARE), words))
    }

    /// `words` inside, for `command`, which calls [`UNSHARE`] in the end.
    pub(super) fn enter(&self, mut command: Command, words: &[&str]) -> Command {
        command.args(["--mount", "--propagation", "private", "sh", "-c", ENTER]).arg(&self.folder);
        for (inside, folder) in &self.shown {
            command.arg(inside).arg(folder);
        }
        command.arg("--");
        if self.has_programs {
            command.args(INSIDE);
        } else {
            command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/srv");
        }
        command.args(words);
        command
    }
}
