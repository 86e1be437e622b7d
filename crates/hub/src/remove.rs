//! Models removed: their links, and the bytes that nothing else links to. Says first what that
//! would be; whether it is done is the caller's choice.

use crate::cache::{SOURCE, lock_path, repo_folder, url_folder};
use crate::kept::KeptError;
use crate::lock::Lock;
use crate::name::{HubName, ModelName, UrlName, Wanted};
use crate::scan::{commits, file_name, in_snapshot, length, unfinished, walk};
use crate::settings::Settings;
use crate::variants::{Part, SelectError, select};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What removing a model takes away; nothing is touched before [`Removal::run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// What it is of, as it is typed.
    pub names: Vec<String>,
    /// Links, and files that are no blobs.
    links: BTreeSet<PathBuf>,
    /// Bytes nothing else links to.
    blobs: BTreeSet<PathBuf>,
    /// Bytes of what is taken away.
    pub freed_bytes: u64,
    /// Bytes that stay, because other files link to them.
    pub shared_bytes: u64,
    locks: Vec<PathBuf>,
    /// Goes if nothing is left in it.
    folder: PathBuf,
}

/// What removing `name` would take away: every version of it, and with `Any` every quantisation.
pub fn removal(settings: &Settings, name: &ModelName) -> Result<Removal, KeptError> {
    match name {
        ModelName::Local(path) => Err(KeptError::Local { path: path.clone() }),
        ModelName::Hub(name) => hub_removal(settings, name),
        ModelName::Url(url) => url_removal(settings, url),
    }
}

fn hub_removal(settings: &Settings, name: &HubName) -> Result<Removal, KeptError> {
    let folder = repo_folder(settings, &name.repo);
    let (mut links, mut names, mut others) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for commit in commits(settings, &name.repo) {
        let (all, variants) = in_snapshot(settings, &name.repo, &commit)?;
        let chosen = match select(name.repo.as_str(), &variants, &name.wanted) {
            Err(SelectError::Several { of, wanted, there }) => {
                return Err(SelectError::Several { of, wanted, there }.into());
            }
            other => other.unwrap_or_default(),
        };
        for index in chosen {
            names.insert(all[index].name.clone());
            links.extend(all[index].paths.iter().cloned());
        }
        others.extend(walk(&folder.join("snapshots").join(&commit)));
    }
    let target = |link: &PathBuf| link.canonicalize().ok();
    let kept: BTreeSet<PathBuf> = others.difference(&links).filter_map(target).collect();
    let mut blobs: BTreeSet<PathBuf> = links.iter().filter_map(target).collect();
    let shared_bytes = blobs.intersection(&kept).map(|blob| length(blob)).sum();
    blobs.retain(|blob| !kept.contains(blob));
    if name.wanted == Wanted::Any {
        blobs.extend(unfinished(&folder.join("blobs")));
    }
    if links.is_empty() && blobs.is_empty() {
        return Err(KeptError::NotHere { name: name.to_string() });
    }
    let stem = |blob: &PathBuf| file_name(blob).split('.').next().unwrap_or_default().to_owned();
    let locks = blobs.iter().map(|blob| lock_path(settings, &name.repo, &stem(blob))).collect();
    let freed_bytes = blobs.iter().map(|blob| length(blob)).sum();
    let names = match names.is_empty() {
        true => vec![name.to_string()],
        false => names.into_iter().collect(),
    };
    Ok(Removal { names, links, blobs, freed_bytes, shared_bytes, locks, folder })
}

fn url_removal(settings: &Settings, url: &UrlName) -> Result<Removal, KeptError> {
    let folder = url_folder(settings, url);
    let stem = Part::of(&url.file).stem;
    let own = |path: &PathBuf| {
        let name = file_name(path);
        let gguf = name.find(".gguf").map(|at| &name[..at + ".gguf".len()]);
        gguf.is_some_and(|name| Part::of(name).stem == stem)
    };
    let blobs: BTreeSet<PathBuf> = walk(&folder).into_iter().filter(own).collect();
    if blobs.is_empty() {
        return Err(KeptError::NotHere { name: url.to_string() });
    }
    let is_lock = |path: &&PathBuf| path.extension().is_some_and(|end| end == "lock");
    let locks = blobs.iter().filter(is_lock).cloned().collect();
    let others = walk(&folder).into_iter().filter(|path| !own(path) && file_name(path) != SOURCE);
    let links = match others.count() {
        0 => BTreeSet::from([folder.join(SOURCE)]),
        _ => BTreeSet::new(),
    };
    let freed_bytes = blobs.iter().map(|blob| length(blob)).sum();
    let names = vec![url.to_string()];
    Ok(Removal { names, links, blobs, freed_bytes, shared_bytes: 0, locks, folder })
}

impl Removal {
    /// Takes it away.
    pub fn run(&self) -> Result<(), KeptError> {
        let held: Result<Vec<Lock>, KeptError> =
            self.locks.iter().map(|path| self.hold(path)).collect();
        let held = held?;
        for path in self.links.iter().chain(&self.blobs) {
            match fs::remove_file(path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(KeptError::Io { path: path.clone(), source });
                }
                _ => {}
            }
        }
        drop(held);
        for path in &self.locks {
            let _ = fs::remove_file(path);
        }
        remove_empty(&self.folder);
        Ok(())
    }

    fn hold(&self, path: &Path) -> Result<Lock, KeptError> {
        let taken = Lock::try_take(path);
        let taken = taken.map_err(|source| KeptError::Io { path: path.to_owned(), source })?;
        taken.ok_or_else(|| KeptError::Busy { name: self.names.join(", ") })
    }
}

/// Folders without files in them; with the last snapshot of a repository what points to it goes too.
fn remove_empty(folder: &Path) {
    if walk(&folder.join("snapshots")).is_empty() {
        let _ = fs::remove_dir_all(folder.join("refs"));
    }
    remove_empty_folders(folder);
}

fn remove_empty_folders(folder: &Path) {
    let inside = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    inside.filter(is_folder).for_each(|entry| remove_empty_folders(&entry.path()));
    // Fails where something is left, as it should.
    let _ = fs::remove_dir(folder);
}
