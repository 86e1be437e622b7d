//! The packages for Windows, run by Wine: the program from the zip, and installed and taken off again.
//! Wine is not Windows: what it runs may fail there, and it says nothing of speed.

use super::wine::{WINE, Wine};
use super::{TRIPLE, pack};
use crate::dist::build::{BINARY, Facts};
use crate::dist::tools::output;
use crate::dist::trial::exact::{Answers, Exactness, HEAD};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// How often it is looked whether everything is gone, and how long apart: the program that takes it
/// off ends before it is done.
const LOOKS: (u32, Duration) = (50, Duration::from_millis(200));

/// What a trial found.
#[derive(Debug, Serialize)]
pub struct Tried {
    pub version: String,
    pub target: &'static str,
    pub runner: String,
    /// Packages and their bytes.
    pub packages: Vec<(String, u64)>,
    pub program_bytes: u64,
    /// Libraries of the system that the program asks for.
    pub libraries: Vec<String>,
    pub said_version: String,
    /// What the installed program said.
    pub installed_version: String,
    pub is_gone_afterwards: bool,
    #[serde(flatten)]
    pub answers: Answers,
    /// What `run` goes on with: as it decides by itself, and on demand.
    pub tokens: [Vec<i64>; 2],
    /// The same by a program for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_tokens: Option<[Vec<i64>; 2]>,
}

/// Tries what is in `out`, beside a program for this machine if there is one.
pub(in crate::dist) fn trial(
    out: &Path,
    native: Option<&Path>,
    say: &mut dyn FnMut(&str),
) -> Result<Tried> {
    let facts = super::facts()?;
    let wine = Wine::make(facts.scratch("wine")?)?;
    let out = out.canonicalize().with_context(|| out.display().to_string())?;
    say("unpacked");
    let program = unpack(&facts, &out)?;
    let command = || {
        let mut command = wine.command(&program);
        command.env("CI", "true");
        command
    };
    let said_version = output(command().arg("--version"))?;
    let tried = Exactness { program: program.clone(), command: &command };
    let answers = tried.answers()?;
    say("run");
    let tokens = tried.continued()?;
    let native_tokens = match native {
        Some(native) => {
            let command = || Command::new(native);
            Some(Exactness { program: native.to_owned(), command: &command }.continued()?)
        }
        None => None,
    };
    say("installed");
    let installer = pack::installer_path(&facts, &out);
    let (installed_version, is_gone_afterwards) = install(&wine, &installer)?;
    let packages = [pack::zip_path(&facts, &out), installer];
    let packages = packages.iter().map(|path| Ok((name_of(path), path.metadata()?.len())));
    Ok(Tried {
        packages: packages.collect::<Result<_>>()?,
        version: facts.version,
        target: TRIPLE,
        runner: output(Command::new(WINE).arg("--version"))?.trim().to_owned(),
        program_bytes: program.metadata()?.len(),
        libraries: libraries(&program)?,
        said_version: said_version.trim().to_owned(),
        installed_version,
        is_gone_afterwards,
        answers,
        tokens,
        native_tokens,
    })
}

/// The program from the zip.
fn unpack(facts: &Facts, out: &Path) -> Result<PathBuf> {
    let folder = facts.scratch("windows-unpacked")?;
    let zip = pack::zip_path(facts, out);
    ensure!(zip.exists(), "{}: nothing to try; cargo xtask dist", zip.display());
    output(Command::new("python3").args(["-m", "zipfile", "--extract"]).args([&zip, &folder]))?;
    Ok(folder.join(pack::folder_name(facts)).join(format!("{BINARY}.exe")))
}

/// What the installed program says of itself, and whether nothing is left of it in the end.
#[allow(clippy::disallowed_methods, reason = "a driver waits")]
fn install(wine: &Wine, installer: &Path) -> Result<(String, bool)> {
    let quietly = "/S";
    output(wine.command(installer).arg(quietly))?;
    let users = wine.disk().join("users").read_dir()?.flatten();
    let mut folders = users.map(|user| user.path().join("AppData/Local/Programs/Motley"));
    let folder = folders.find(|folder| folder.exists());
    let folder = folder.context("the installer left nothing")?;
    let program = folder.join(format!("{BINARY}.exe"));
    let version = output(wine.command(&program).arg("--version"))?;
    output(wine.command(&folder.join("uninstall.exe")).arg(quietly))?;
    for _ in 0..LOOKS.0 {
        if folder.exists() {
            sleep(LOOKS.1);
        }
    }
    Ok((version.trim().to_owned(), !folder.exists()))
}

fn libraries(program: &Path) -> Result<Vec<String>> {
    let headers = output(Command::new("x86_64-w64-mingw32-objdump").arg("-p").arg(program))?;
    let names = headers.lines().filter_map(|line| line.trim().strip_prefix("DLL Name:"));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Tried {
    /// What went wrong, in words; nothing when all is well.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.answers.faults().collect();
        let native = self.native_tokens.iter().flatten();
        if self.tokens.iter().chain(native).any(|tokens| *tokens != self.tokens[0]) {
            faults.push("different answers to one prompt".into());
        }
        if self.installed_version != self.said_version || !self.is_gone_afterwards {
            faults.push("the installer does not leave what it should".into());
        }
        faults
    }

    /// Lines of at most 80 columns.
    pub fn table(&self) -> String {
        let mut text = HEAD.to_owned() + &self.answers.rows("wine");
        for (name, bytes) in &self.packages {
            let _ = writeln!(text, "{:>5.1} MB  {name}", *bytes as f64 / 1e6);
        }
        text
    }
}
