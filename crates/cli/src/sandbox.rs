//! The sandbox of one command: what it may still touch, given up in two steps around loading. What
//! each step refuses is `motley_engine::sandbox`'s; this says which paths the command needs.

use crate::args::SandboxArg;
use crate::terminal::note;
use anyhow::{Context, Result};
use motley_engine::sandbox::{
    Allowed, FilesHeld, Outgoing, SandboxError, restrict_calls, restrict_files,
};
use std::path::{Path, PathBuf};

/// A command that has given up files, and will give up calls. Kept to the end of the command: rules
/// for files of `/proc` hold as long as it is there.
pub(crate) struct Sandbox {
    wish: SandboxArg,
    files: Option<FilesHeld>,
    outgoing: Outgoing,
}

/// What the rest of a command needs.
pub(crate) struct Needs<'a> {
    pub(crate) model_files: Vec<PathBuf>,
    /// Whether a GPU or NPU computes.
    pub(crate) devices: bool,
    pub(crate) written: &'a [PathBuf],
    /// Folder of a library that loads more when it is first used.
    pub(crate) library: Option<PathBuf>,
    /// Ports that connections are made to.
    pub(crate) outgoing_ports: Vec<u16>,
}

impl Sandbox {
    /// Before the model is loaded and any thread started that stays, and after the last child
    /// process: from here on only what the command `needs` and what describes the machine can be
    /// opened.
    pub(crate) fn restrict_files(wish: SandboxArg, needs: Needs<'_>) -> Result<Self> {
        let Needs { model_files, devices, written, library, outgoing_ports } = needs;
        let outgoing =
            if outgoing_ports.is_empty() { Outgoing::None } else { Outgoing::ToConfigured };
        let allowed = Allowed {
            model_files,
            own_paths: written.iter().filter_map(|path| place_of(path)).collect(),
            devices: devices || library.is_some(),
            libraries: library,
            outgoing_ports,
        };
        let files = match wish {
            SandboxArg::Off => None,
            _ => given_up(wish, "files", restrict_files(&allowed))?,
        };
        Ok(Self { wish, files, outgoing })
    }

    /// Once the model is loaded, its contexts are made and the socket is bound: programs, new
    /// sockets (unless there is somebody to be told of requests) and the rest of what is not needed
    /// are refused to every thread.
    pub(crate) fn restrict_calls(&self) -> Result<()> {
        if self.wish == SandboxArg::Off {
            tracing::info!("sandbox: off");
            return Ok(());
        }
        let calls = given_up(self.wish, "system calls", restrict_calls(self.outgoing))?;
        let files = self.files.as_ref().map_or("files are not".to_owned(), ToString::to_string);
        let calls = calls.map_or("system calls are not", |()| "system calls by seccomp");
        tracing::info!("sandbox: restricted: {files}; {calls}");
        Ok(())
    }
}

/// What was restricted. Without it `require` ends here, and `auto` says so where the system
/// could have.
fn given_up<T>(wish: SandboxArg, what: &str, result: Result<T, SandboxError>) -> Result<Option<T>> {
    match result {
        Ok(held) => Ok(Some(held)),
        Err(error) if wish == SandboxArg::Require => Err(error)
            .with_context(|| format!("{what} cannot be restricted, as --sandbox require asks")),
        Err(SandboxError::NotOffered { .. }) => Ok(None),
        Err(error) => {
            note(&format!(
                "warning: {what} are not restricted: {error} (--sandbox require would refuse to go on)"
            ));
            Ok(None)
        }
    }
}

/// Where a file that will be written is made: its folder, for it may be written beside its place
/// first; itself when it is no plain file. `None` where there is no such folder: writing says so.
fn place_of(path: &Path) -> Option<PathBuf> {
    let found = path.canonicalize();
    match &found {
        Ok(found) if found.is_dir() || !found.is_file() => return Some(path.to_owned()),
        _ => {}
    }
    let path = found.unwrap_or_else(|_| path.to_owned());
    let folder = path.parent()?;
    Some(if folder.as_os_str().is_empty() { ".".into() } else { folder.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_in_its_folder_and_a_device_is_its_own_place() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::write(real.join("old"), "").unwrap();
        assert_eq!(place_of(&real), Some(real.clone()));
        assert_eq!(place_of(&real.join("new")), Some(real.clone()));
        assert_eq!(place_of(&real.join("old")), Some(real));
        assert_eq!(place_of(Path::new("new.json")), Some(".".into()));
        assert_eq!(place_of(Path::new("/dev/null")), Some("/dev/null".into()));
    }

    #[test]
    fn what_is_required_and_not_there_ends_the_command() {
        let missing = || Err::<(), _>(SandboxError::NotOffered { what: "Landlock" });
        assert!(given_up(SandboxArg::Auto, "files", missing()).unwrap().is_none());
        let error = given_up(SandboxArg::Require, "files", missing()).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.contains("--sandbox require") && said.contains("Landlock"), "{said}");
    }
}
