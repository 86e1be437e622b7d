//! Where files lie. The hub's own layout, shared with `huggingface_hub`, `transformers` and
//! llama.cpp; for plain URLs a folder of ours. Names places and makes links; fetches nothing.
//!
//! ```text
//! <hub cache>/models--owner--repo/blobs/<sha256>               the bytes
//!                                 blobs/<sha256>.incomplete    the bytes so far
//!                                 snapshots/<commit>/<path>    a link to a blob
//!                                 refs/main                    the commit
//! <hub cache>/.locks/models--owner--repo/<sha256>.lock
//! <url cache>/<host>-<hash>/<file>.gguf, <file>.gguf.<version>.incomplete, source
//! ```

use crate::name::{RepoId, UrlName};
use crate::offer::{RemoteFile, Source, hex};
use crate::settings::Settings;
use crate::system;
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File that says which URL a folder's files came from.
pub(crate) const SOURCE: &str = "source";
/// How the bytes so far are named.
pub(crate) const INCOMPLETE: &str = "incomplete";

/// The paths of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The bytes, once all are there and checked.
    pub(crate) whole: PathBuf,
    /// The bytes so far.
    pub(crate) part: PathBuf,
    pub(crate) lock: PathBuf,
    /// The link by which it is opened; without one it is opened as `whole`.
    pub(crate) pointer: Option<Pointer>,
}

/// A link in a snapshot, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) path: PathBuf,
    target: PathBuf,
}

impl Place {
    /// Of one file of `source`.
    pub(crate) fn of(settings: &Settings, source: &Source, file: &RemoteFile) -> Self {
        match source {
            Source::Hub { repo, commit } => Self::in_hub(settings, repo, commit, file),
            Source::Url(url) => {
                let folder = url_folder(settings, url);
                let version = &file.etag[..16.min(file.etag.len())];
                Self {
                    whole: folder.join(&file.path),
                    part: folder.join(format!("{}.{version}.{INCOMPLETE}", file.path)),
                    lock: folder.join(format!("{}.lock", file.path)),
                    pointer: None,
                }
            }
        }
    }

    fn in_hub(settings: &Settings, repo: &RepoId, commit: &str, file: &RemoteFile) -> Self {
        let folder = repo_folder(settings, repo);
        let up = "../".repeat(2 + file.path.matches('/').count());
        let pointer = Pointer {
            path: folder.join("snapshots").join(commit).join(&file.path),
            target: PathBuf::from(format!("{up}blobs/{}", file.etag)),
        };
        Self {
            whole: folder.join("blobs").join(&file.etag),
            part: folder.join("blobs").join(format!("{}.{INCOMPLETE}", file.etag)),
            lock: lock_path(settings, repo, &file.etag),
            pointer: Some(pointer),
        }
    }

    /// What a reader of the model opens.
    pub(crate) fn opened(&self) -> &Path {
        self.pointer.as_ref().map_or(&self.whole, |pointer| &pointer.path)
    }

    /// Whether all bytes are there.
    pub(crate) fn is_whole(&self, bytes: u64) -> bool {
        fs::metadata(&self.whole).is_ok_and(|file| file.is_file() && file.len() == bytes)
    }

    /// Bytes that need not come again.
    pub(crate) fn bytes_here(&self, bytes: u64) -> u64 {
        if self.is_whole(bytes) {
            return bytes;
        }
        fs::metadata(&self.part).map_or(0, |part| part.len()).min(bytes)
    }

    /// Makes the link, where there is one to make.
    pub(crate) fn link(&self) -> io::Result<()> {
        let Some(Pointer { path, target }) = &self.pointer else { return Ok(()) };
        if fs::read_link(path).is_ok_and(|found| found == *target) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let _ = fs::remove_file(&beside);
        system::make_link(target, &self.whole, &beside)?;
        fs::rename(&beside, path)
    }
}

/// The folder of a repository.
pub(crate) fn repo_folder(settings: &Settings, repo: &RepoId) -> PathBuf {
    settings.hub_cache.join(folder_name(repo))
}

/// The lock of one blob.
pub(crate) fn lock_path(settings: &Settings, repo: &RepoId, etag: &str) -> PathBuf {
    settings.hub_cache.join(".locks").join(folder_name(repo)).join(format!("{etag}.lock"))
}

fn folder_name(repo: &RepoId) -> String {
    format!("models--{}", repo.as_str().replace('/', "--"))
}

/// The repository a folder of the cache is of.
pub(crate) fn repo_of(folder: &Path) -> Option<RepoId> {
    let name = folder.file_name()?.to_str()?.strip_prefix("models--")?;
    RepoId::parse(&name.replacen("--", "/", 1)).ok()
}

/// The folder of what came from a URL, all parts of a model together.
pub(crate) fn url_folder(settings: &Settings, url: &UrlName) -> PathBuf {
    let host = url.folder.split('/').nth(2).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let host: String = host.chars().map(plain).take(60).collect();
    let hash = hex(&Sha256::digest(&url.folder));
    settings.url_cache.join(format!("{}-{}", host.trim_start_matches('.'), &hash[..16]))
}

/// The commit a repository was last at here.
pub(crate) fn read_ref(settings: &Settings, repo: &RepoId) -> Option<String> {
    let text = fs::read_to_string(repo_folder(settings, repo).join("refs/main")).ok()?;
    let commit = text.trim();
    crate::listing::is_hex(commit, 40).then(|| commit.to_owned())
}

/// Says where all files came from, once they are there: the commit, or the URL.
pub(crate) fn note_source(settings: &Settings, source: &Source) -> io::Result<()> {
    let (path, text) = match source {
        Source::Hub { repo, commit } => {
            (repo_folder(settings, repo).join("refs/main"), commit.clone())
        }
        Source::Url(url) => (url_folder(settings, url).join(SOURCE), url.folder.clone()),
    };
    write_whole(&path, &text)
}

/// Writes a small file, whole or not at all.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

/// Bytes free for this user on the disk of `folder`, which need not exist yet.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    system::free_bytes(existing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_repositories_belong_together() {
        for name in ["Qwen/Qwen3-30B-A3B-GGUF", "a/b"] {
            let repo = RepoId::parse(name).unwrap();
            assert_eq!(repo_of(Path::new(&folder_name(&repo))), Some(repo));
        }
        for other in ["models--gpt2", "datasets--a--b", ".locks", "models--a--b--c"] {
            assert_eq!(repo_of(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn there_is_room_even_where_the_folder_is_not_made_yet() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(&folder.path().join("not/there")).is_some_and(|free| free > 0));
    }
}
