//! Wine, which runs programs for Windows here, in a folder of its own that stands for the disk. The
//! release that Debian 12 has lacks one library that every program of Rust asks for.

use super::compilers::LINKER;
use crate::dist::tools::{install_missing, run};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
pub(crate) const WINE: &str = "wine";
/// Programs of the system, each with Debian's package of it.
const PROGRAMS: [(&str, &str); 2] = [(WINE, "wine"), (LINKER, "g++-mingw-w64-x86-64-posix")];
/// Below the disk: libraries of the system.
const SYSTEM_FOLDER: &str = "drive_c/windows/system32";
/// The missing library.
const RANDOM_LIBRARY: &str = "bcryptprimitives.dll";
/// Its one function, by the older one that it stands for.
const RANDOM_SOURCE: &str = "#include <windows.h>\n\
    BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);\n\
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {\n\
        return SystemFunction036(data, (ULONG) size);\n\
    }\n";

/// A disk of Windows.
#[derive(Debug)]
pub(crate) struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// Makes the disk in `prefix` if it is not there.
    pub(crate) fn make(prefix: PathBuf) -> Result<Self> {
        install_missing(&PROGRAMS, None)?;
        let wine = Self { prefix };
        fs::create_dir_all(&wine.prefix).with_context(|| wine.prefix.display().to_string())?;
        let library = wine.prefix.join(SYSTEM_FOLDER).join(RANDOM_LIBRARY);
        if !library.exists() {
            run(wine.command(Path::new("wineboot")).arg("--init"))?;
            compile(&library)?;
        }
        Ok(wine)
    }

    /// `program` on this disk; other disks are this machine's folders.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(WINE);
        self.set(&mut command);
        command.arg(program);
        command
    }

    /// The same for a command that calls Wine itself.
    pub(crate) fn set(&self, command: &mut Command) {
        // It complains of what it does not have whether or not anybody asks for it.
        command.env("WINEPREFIX", &self.prefix).env("WINEDEBUG", "-all");
    }

    /// Where its disk `C:` is.
    pub(super) fn disk(&self) -> PathBuf {
        self.prefix.join("drive_c")
    }
}

fn compile(library: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("random.c");
    fs::write(&source, RANDOM_SOURCE)?;
    run(Command::new(LINKER).args(["-shared", "-o"]).args([library, &source]).arg("-ladvapi32"))
}
