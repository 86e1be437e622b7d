//! Who runs programs of other systems and processors on this machine, and which compilers are theirs.

use super::tools::Tools;
use crate::dist::tools::install_missing;
use crate::dist::windows::{self, compilers, wine};
use crate::workspace_root;
use anyhow::Result;
use std::process::Command;

/// Debian's libraries for AArch64, beside this machine's own.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Emulator {
    /// Linux on AArch64.
    Qemu,
    /// Windows on this machine's processor.
    Wine,
}

impl Emulator {
    /// The program.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-aarch64-static",
            Self::Wine => wine::WINE,
        }
    }

    /// `cargo test` that builds for the target `triple` and has the emulator run what was built; both are
    /// installed where they are missing.
    pub(super) fn cargo_test(self, tools: &Tools, triple: &str) -> Result<Command> {
        let mut command = match self {
            Self::Qemu => for_aarch64(tools, triple)?,
            Self::Wine => for_windows(tools)?,
        };
        let name = triple.to_uppercase().replace('-', "_");
        command.env(format!("CARGO_TARGET_{name}_RUNNER"), self.program());
        Ok(command)
    }
}

/// By zig, as crates are checked; the C library is Debian's.
fn for_aarch64(tools: &Tools, triple: &str) -> Result<Command> {
    let program = (Emulator::Qemu.program(), "qemu-user-static");
    let loader = format!("{LIBRARIES}/lib/ld-linux-aarch64.so.1");
    install_missing(&[program, (&loader, "libc6-arm64-cross")], None)?;
    let mut command = tools.cargo("test", triple)?;
    command.env("QEMU_LD_PREFIX", LIBRARIES);
    Ok(command)
}

/// By the compilers of packages, which need no other linker, and on a disk of its own.
fn for_windows(tools: &Tools) -> Result<Command> {
    let mut command = Command::new("cargo");
    command.args(["test", "--release", "--locked", "--target", windows::TRIPLE]);
    command.current_dir(workspace_root());
    compilers::install()?;
    compilers::set(&mut command, &windows::facts()?)?;
    wine::Wine::make(tools.folder("wine"))?.set(&mut command);
    Ok(command)
}
