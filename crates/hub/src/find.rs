//! What is here: models found by name without the network, and listed. Removes nothing.

use crate::cache::{SOURCE, repo_of, url_folder};
use crate::kept::{Kept, KeptError};
use crate::name::{HubName, ModelName, RepoId};
use crate::scan::{commits, file_name, folders, in_snapshot, in_url_folder, length, unfinished};
use crate::settings::Settings;
use crate::variants::{Part, SelectError, Variant, select};
use std::fs;
use std::path::Path;

/// The model a name means, if all of it is here. `Any` takes the only one, else it is for the
/// caller to choose among several: all are returned, smallest first.
pub fn find(settings: &Settings, name: &ModelName) -> Result<Vec<Kept>, KeptError> {
    let not_here = |name: &dyn ToString| KeptError::NotHere { name: name.to_string() };
    match name {
        ModelName::Local(path) => Err(KeptError::Local { path: path.clone() }),
        ModelName::Hub(name) => {
            for commit in commits(settings, &name.repo) {
                let all = in_snapshot(settings, &name.repo, &commit)?;
                let found = matching(name, all)?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            Err(not_here(name))
        }
        ModelName::Url(url) => {
            let stem = Part::of(&url.file).stem;
            let all = in_url_folder(&url_folder(settings, url), &url.folder)?;
            let is = |kept: &Kept| kept.is_whole() && Part::of(&file_name(&kept.path)).stem == stem;
            match all.into_iter().find(is) {
                Some(kept) => Ok(vec![kept]),
                None => Err(not_here(url)),
            }
        }
    }
}

/// Whole models of a snapshot that the name may mean.
fn matching(
    name: &HubName,
    (all, variants): (Vec<Kept>, Vec<Variant>),
) -> Result<Vec<Kept>, KeptError> {
    let chosen = match select(name.repo.as_str(), &variants, &name.wanted) {
        Ok(chosen) => chosen,
        Err(SelectError::Empty { .. } | SelectError::NotThere { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let kept = chosen.into_iter().map(|index| all[index].clone());
    Ok(kept.filter(Kept::is_whole).collect())
}

/// Everything here, by name.
pub fn list(settings: &Settings) -> Result<Vec<Kept>, KeptError> {
    let mut all: Vec<Kept> = Vec::new();
    for folder in folders(&settings.hub_cache) {
        let Some(repo) = repo_of(&folder) else { continue };
        let unfinished_bytes =
            unfinished(&folder.join("blobs")).iter().map(|part| length(part)).sum();
        let before = all.len();
        for commit in commits(settings, &repo) {
            let (found, _) = in_snapshot(settings, &repo, &commit)?;
            for kept in found {
                let known = all[before..].iter().any(|one| one.name == kept.name && one.is_whole());
                if !known {
                    all.push(Kept { unfinished_bytes: 0, ..kept });
                }
            }
        }
        if unfinished_bytes > 0 {
            note_unfinished(&mut all, before, &repo, &folder, unfinished_bytes);
        }
    }
    for folder in folders(&settings.url_cache) {
        let Ok(base) = fs::read_to_string(folder.join(SOURCE)) else { continue };
        all.extend(in_url_folder(&folder, base.trim())?);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Bytes of a download that did not end belong to the model that is not whole; to one of its own
/// where no part of it is.
fn note_unfinished(all: &mut Vec<Kept>, from: usize, repo: &RepoId, folder: &Path, bytes: u64) {
    if let Some(kept) = all[from..].iter_mut().find(|kept| !kept.is_whole()) {
        kept.unfinished_bytes = bytes;
        return;
    }
    all.push(Kept {
        name: repo.to_string(),
        label: "unfinished".to_owned(),
        path: folder.to_owned(),
        paths: Vec::new(),
        count: 1,
        bytes: 0,
        modified: None,
        unfinished_bytes: bytes,
    });
}
