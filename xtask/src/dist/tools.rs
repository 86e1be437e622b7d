//! Every program that packing calls, at the version that is used, and how it is installed when it
//! is missing. Subcommands of cargo go into a folder below the target's; programs of the system
//! come with its packages.

use super::processor::Processor;
use crate::workspace_root;
use anyhow::{Context, Result, ensure};
use std::env;
use std::path::Path;
use std::process::Command;

/// A subcommand of cargo at the one version that is used.
pub(super) struct Tool {
    name: &'static str,
    version: &'static str,
}

/// Puts the list of crates into a binary.
pub(super) const AUDITABLE: Tool = Tool { name: "auditable", version: "0.7.7" };
/// Writes a bill of materials.
pub(super) const CYCLONEDX: Tool = Tool { name: "cyclonedx", version: "0.5.9" };

/// The compilers; from 16 on clang has AMX.
pub(super) const CC: &str = "clang-16";
/// As [`CC`].
pub(super) const CXX: &str = "clang++-16";

/// Programs of the system, each with Debian's package of it.
const PROGRAMS: [(&str, &str); 6] = [
    (CC, "clang-16"),
    ("cmake", "cmake"),
    ("dpkg-deb", "dpkg"),
    ("glslc", "glslc"),
    ("mmdebstrap", "mmdebstrap"),
    ("umoci", "umoci"),
];
/// Headers of the system that Vulkan's backend is built with.
pub(super) const SPIRV_HEADERS: &str = "/usr/include/spirv";

/// Links for other processors: the program clang looks for, and Debian's package of it.
const LINKER: (&str, &str) = ("ld.lld-16", "lld-16");

/// Installs the packages of programs that are missing to build for `processor`, and to run what was
/// built.
pub(super) fn install_programs(processor: &Processor) -> Result<()> {
    let objdump = format!("{}-objdump", processor.gnu);
    let mut programs = PROGRAMS.to_vec();
    programs.push((&objdump, processor.binutils));
    if !processor.is_own() {
        programs.extend([LINKER, processor.emulator]);
        run(Command::new("rustup").args(["target", "add", processor.triple]))?;
    }
    let headers = match Path::new(SPIRV_HEADERS).exists() {
        true => None,
        false => Some("spirv-headers"),
    };
    install_missing(&programs, headers)
}

/// Installs the packages of those programs, or files named by their whole paths, that are missing,
/// and one more that is known to be.
pub(crate) fn install_missing(programs: &[(&str, &str)], also: Option<&str>) -> Result<()> {
    let missing = programs.iter().filter(|(program, _)| !is_on_path(program));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).chain(also).collect();
    if packages.is_empty() {
        return Ok(());
    }
    let mut install = if rustix::process::geteuid().is_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    };
    run(install.args(["install", "--yes", "--quiet"]).args(packages))
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

impl Tool {
    /// Whether `root` holds it: not every subcommand tells its own version.
    fn is_there(&self, root: &Path) -> bool {
        let listed = output(Command::new("cargo").args(["install", "--list", "--root"]).arg(root));
        let line = format!("cargo-{} v{}:", self.name, self.version);
        listed.is_ok_and(|listed| listed.lines().any(|found| found == line))
    }

    /// Installs it below `root` unless it is there. For the machine that builds: none of the
    /// flags of what is built.
    pub(super) fn install(&self, root: &Path) -> Result<()> {
        if self.is_there(root) {
            return Ok(());
        }
        let version = format!("={}", self.version);
        let package = format!("cargo-{}", self.name);
        let args = ["install", "--locked", "--force", "--version", &version, &package, "--root"];
        run(Command::new("cargo").args(args).arg(root))
    }

    /// `cargo NAME`, of `root` before any other.
    pub(super) fn command(&self, root: &Path) -> Command {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(root.join("bin")).chain(env::split_paths(&path));
        let mut command = Command::new("cargo");
        command.arg(self.name).current_dir(workspace_root());
        if let Ok(path) = env::join_paths(folders) {
            command.env("PATH", path);
        }
        command
    }
}

/// Runs to its end, which must be a good one.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

/// What it prints; the error carries its last words.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", words.trim());
    Ok(String::from_utf8(output.stdout)?)
}
