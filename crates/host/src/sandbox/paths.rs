//! Rules of paths as a Landlock domain: of everything Landlock can forbid, only they stay
//! allowed. Chooses no path.
//!
//! Older kernels know fewer rights and restrict less; what a kernel has is used in full
//! (`FilesHeld` says which version held).

use std::fmt;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    RestrictSelfAttr, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    Scope,
};

use crate::sandbox::SandboxError;
use crate::sandbox::rules::{Access, Allowed, Rule};

/// The newest version whose rights are known here; a kernel with an older one takes fewer.
const KNOWN: ABI = ABI::V9;
/// What errors call it.
const LANDLOCK: &str = "Landlock";

/// A process whose files are restricted.
#[derive(Debug)]
pub struct FilesHeld {
    abi: u32,
    /// Threads that were there before and stay as they were.
    free_threads: usize,
    /// Open for as long as rules are to hold: a rule is bound to an inode, and files of `/proc`
    /// get another one when the kernel drops the entry they were found by.
    _pinned: Vec<PathFd>,
}

impl fmt::Display for FilesHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "files by Landlock (ABI {})", self.abi)?;
        match self.free_threads {
            0 => Ok(()),
            1 => write!(f, ", but for a thread that was there before"),
            more => write!(f, ", but for {more} threads that were there before"),
        }
    }
}

/// Restricts the calling thread and all it will start, with Landlock's version 8 every thread of
/// the process: only what is `allowed` can be opened, no signal leaves the process, no connection
/// is made. Files that are open stay so.
pub fn restrict_files(allowed: &Allowed) -> Result<FilesHeld, SandboxError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let pinned = open(allowed.rules(home.as_deref()))?;
    let status =
        restrict(&pinned, &allowed.outgoing_ports).map_err(|error| refused(describe(&error)))?;
    let abi = abi_of(&status).ok_or(SandboxError::NotOffered { what: LANDLOCK })?;
    let free_threads = if status.all_threads { 0 } else { other_threads() };
    Ok(FilesHeld { abi, free_threads, _pinned: pinned.into_iter().map(|(_, fd)| fd).collect() })
}

/// The version that holds; `None` when none does.
pub(super) fn abi_of(status: &RestrictionStatus) -> Option<u32> {
    match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Some(kernel_abi.map_or(effective_abi as u32, i32::unsigned_abs))
        }
        _ => None,
    }
}

/// Opens what there is; a path nobody has needs no rule.
fn open(rules: Vec<Rule>) -> Result<Vec<(Rule, PathFd)>, SandboxError> {
    let existing = rules.into_iter().flat_map(every_match).filter(|rule| rule.path.exists());
    let opened = existing.map(|rule| match PathFd::new(&rule.path) {
        Ok(fd) => Ok((rule, fd)),
        Err(error) => Err(refused(format!("{}: {}", rule.path.display(), describe(&error)))),
    });
    opened.collect()
}

/// The rule for every entry it names.
fn every_match(rule: Rule) -> Vec<Rule> {
    let Some(begin) = rule.path.to_str().and_then(|path| path.strip_suffix('*')) else {
        return vec![rule];
    };
    let begins = |path: &PathBuf| path.to_str().is_some_and(|path| path.starts_with(begin));
    let folder = rule.path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let entries = folder.into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(begins).map(|path| Rule { path, ..rule.clone() }).collect()
}

fn restrict(
    rules: &[(Rule, PathFd)],
    ports: &[u16],
) -> Result<RestrictionStatus, landlock::RulesetError> {
    let mut domain: RulesetCreated = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::ConnectTcp)?
        .scope(Scope::from_all(KNOWN))?
        .create()?
        .all_threads(true)?;
    for (rule, fd) in rules {
        let rights = rights(rule.access, rule.path.is_dir());
        domain = domain.add_rule(PathBeneath::new(fd.as_fd(), rights))?;
    }
    for port in ports {
        domain = domain.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    domain.restrict_self()
}

fn rights(access: Access, is_folder: bool) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate;
    let all = match access {
        Access::Read => read,
        Access::Own => {
            let make = AccessFs::MakeReg | AccessFs::MakeDir;
            let remove = AccessFs::RemoveFile | AccessFs::RemoveDir;
            read | write | make | remove | AccessFs::Refer
        }
        Access::Device => read | AccessFs::WriteFile | AccessFs::IoctlDev,
    };
    if is_folder { all } else { all & AccessFs::from_file(KNOWN) }
}

/// Threads beside the calling one.
fn other_threads() -> usize {
    std::fs::read_dir(Path::new("/proc/self/task")).map_or(0, |tasks| tasks.count() - 1)
}

/// An error with its causes: the crate's own sentences leave them out.
fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut said: Vec<String> = causes.map(ToString::to_string).collect();
    said.dedup();
    said.join(": ")
}

fn refused(reason: String) -> SandboxError {
    SandboxError::Refused { what: LANDLOCK, reason }
}
