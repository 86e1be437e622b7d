//! Folders of the cache, read. Other tools write there too, so nothing in them is taken for granted;
//! what cannot be read is not there.

use crate::cache::{INCOMPLETE, read_ref, repo_folder};
use crate::kept::{Kept, KeptError};
use crate::listing::{is_helper, is_hex};
use crate::name::{RepoId, is_gguf};
use crate::settings::Settings;
use crate::variants::{Variant, group, typed};
use std::cmp::Reverse;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

/// Folders inside a folder that are looked into, and files that are looked at.
const MAX_DEPTH: usize = 6;
const MAX_FOUND: usize = 100_000;

/// Commits of a repository that are here: the one it was last at, then the newest.
pub(crate) fn commits(settings: &Settings, repo: &RepoId) -> Vec<String> {
    let folder = repo_folder(settings, repo).join("snapshots");
    let mut found: Vec<PathBuf> = folders(&folder);
    found.sort_by_key(|path| Reverse(path.metadata().and_then(|meta| meta.modified()).ok()));
    let names = found.iter().map(|path| file_name(path)).filter(|name| is_hex(name, 40));
    let current = read_ref(settings, repo).filter(|commit| folder.join(commit).is_dir());
    let mut all: Vec<String> = current.into_iter().collect();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Models of one snapshot, smallest first, and the same as variants.
pub(crate) fn in_snapshot(
    settings: &Settings,
    repo: &RepoId,
    commit: &str,
) -> Result<(Vec<Kept>, Vec<Variant>), KeptError> {
    let folder = repo_folder(settings, repo).join("snapshots").join(commit);
    models(&folder, &|all, index| format!("{repo}:{}", typed(repo, all, index)))
}

/// Models that came from a URL beginning with `base`.
pub(crate) fn in_url_folder(folder: &Path, base: &str) -> Result<Vec<Kept>, KeptError> {
    let name = |all: &[Variant], index: usize| format!("{base}{}", all[index].first_path());
    let (mut all, variants) = models(folder, &name)?;
    for (kept, variant) in all.iter_mut().zip(&variants) {
        let own = |part: &&PathBuf| file_name(part).starts_with(&variant.stem);
        kept.unfinished_bytes =
            unfinished(folder).iter().filter(own).map(|part| length(part)).sum();
    }
    Ok(all)
}

fn models(
    folder: &Path,
    name: &dyn Fn(&[Variant], usize) -> String,
) -> Result<(Vec<Kept>, Vec<Variant>), KeptError> {
    let relative = |path: &PathBuf| path.strip_prefix(folder).ok()?.to_str().map(str::to_owned);
    let files: Vec<(String, PathBuf)> = walk(folder)
        .into_iter()
        .filter_map(|path| Some((relative(&path)?, path)))
        .filter(|(name, path)| is_gguf(name) && !is_helper(name) && path.is_file())
        .collect();
    let variants = group(files.iter().map(|(name, path)| (name.as_str(), length(path))))?;
    let kept = |index: usize| {
        let variant = &variants[index];
        let paths: Vec<PathBuf> = variant.files.iter().map(|at| files[*at].1.clone()).collect();
        let modified = |path: &PathBuf| path.metadata().and_then(|meta| meta.modified()).ok();
        Kept {
            name: name(&variants, index),
            label: variant.label.clone(),
            path: paths[0].clone(),
            count: variant.count,
            bytes: variant.bytes,
            modified: paths.iter().filter_map(modified).max(),
            paths,
            unfinished_bytes: 0,
        }
    };
    let all = (0..variants.len()).map(kept).collect();
    Ok((all, variants))
}

/// Downloads that did not end.
pub(crate) fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let is = |path: &PathBuf| path.extension().is_some_and(|end| end == INCOMPLETE);
    entries(folder).map(|entry| entry.path()).filter(is).collect()
}

/// Every file and link below a folder; links are not followed.
pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut rest) = (Vec::new(), vec![(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = rest.pop() {
        for entry in entries(&folder) {
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true if depth < MAX_DEPTH => rest.push((entry.path(), depth + 1)),
                true => {}
                false => files.push(entry.path()),
            }
            if files.len() >= MAX_FOUND {
                return files;
            }
        }
    }
    files.sort();
    files
}

/// Folders in a folder, by name.
pub(crate) fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        entries(folder).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    all.sort();
    all
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Bytes of a file, or of what a link leads to.
pub(crate) fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
