//! Libraries and headers of an old Debian, which the program is linked with so that it runs on
//! everything newer. Taken from packages, none of them installed; compilers stay the machine's own.

use super::processor::Processor;
use super::tools::run;
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Oldest glibc the program runs with: Debian 11's.
pub(super) const GLIBC: &str = "2.31";
/// Newest versions of libstdc++'s symbols that Debian 11's has.
pub(super) const GLIBCXX: &str = "3.4.28";
/// Newest version of the C++ runtime's symbols there.
pub(super) const CXXABI: &str = "1.3.12";

/// Debian's archive. What `mmdebstrap` asks by itself has updates too, which not every processor
/// gets for a release this old.
const ARCHIVE: &str = "http://deb.debian.org/debian";
/// The release.
const SUITE: &str = "bullseye";
/// What is linked with. libvulkan is linked by the Vulkan backend alone.
const PACKAGES: &str =
    "--include=libc6-dev,libstdc++-10-dev,libgcc-10-dev,linux-libc-dev,libvulkan-dev";
/// Written last: the folder is whole.
const STAMP: &str = "motley-sysroot";

/// The folder for `processor`, made below `target_folder` if it is not there.
pub(super) fn make(target_folder: &Path, processor: &Processor) -> Result<PathBuf> {
    let folder = target_folder.join(format!("dist-sysroot-{}", processor.name));
    if folder.join(STAMP).exists() {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(&folder)?;
    extract(processor, SUITE, PACKAGES, &folder)?;
    make_links_relative(&folder, 0)?;
    fs::write(folder.join(STAMP), SUITE)?;
    Ok(folder)
}

/// Unpacks packages (`--include=…`) of `suite` for `processor` into `folder`; runs none of their scripts.
pub(super) fn extract(
    processor: &Processor,
    suite: &str,
    packages: &str,
    folder: &Path,
) -> Result<()> {
    let architecture = format!("--architectures={}", processor.debian);
    let what = ["--quiet", "--variant=extract", &architecture, packages, suite];
    run(Command::new("mmdebstrap").args(what).arg(folder).arg(ARCHIVE))
}

/// A link such as `libm.so -> /lib/x86_64-linux-gnu/libm.so.6` would lead to the machine's own,
/// newer library: it must stay inside. `depth` is the number of folders above `folder` inside.
fn make_links_relative(folder: &Path, depth: usize) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.symlink_metadata()?.file_type();
        if kind.is_dir() {
            make_links_relative(&path, depth + 1)?;
        } else if kind.is_symlink()
            && let Some(target) = relative(&fs::read_link(&path)?, depth)
        {
            fs::remove_file(&path)?;
            symlink(target, &path)?;
        }
    }
    Ok(())
}

/// An absolute target as seen from `depth` folders below the root; `None` for a relative one.
fn relative(target: &Path, depth: usize) -> Option<PathBuf> {
    let inside = target.strip_prefix("/").ok()?;
    Some(std::iter::repeat_n("..", depth).collect::<PathBuf>().join(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("usr/lib");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(root.path().join("lib")).unwrap();
        fs::write(root.path().join("lib/libm.so.6"), "old").unwrap();
        symlink("/lib/libm.so.6", folder.join("libm.so")).unwrap();
        symlink("libm.so", folder.join("libm-again.so")).unwrap();
        make_links_relative(root.path(), 0).unwrap();
        assert_eq!(
            fs::read_link(folder.join("libm.so")).unwrap(),
            Path::new("../../lib/libm.so.6")
        );
        assert_eq!(fs::read_to_string(folder.join("libm-again.so")).unwrap(), "old");
    }
}
