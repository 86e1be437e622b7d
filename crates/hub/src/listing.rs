//! What the hub says a repository holds, parsed and checked. Every text here was written by a
//! stranger; nothing is fetched.
//!
//! `GET /api/models/{repo}/revision/main` names the commit, `GET /api/models/{repo}/tree/{commit}`
//! its files, a page at a time. Files kept in large-file storage, as every model is, have the SHA-256
//! of their bytes there; it is also the name of the blob in the cache.

use crate::limits::MAX_FILE_BYTES;
use crate::name::{check_path, is_gguf};
use serde::Deserialize;

/// What is wrong with a listing.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListingError {
    /// No commit.
    #[error("the hub names commit {found:?}, not 40 hexadecimal digits")]
    Commit { found: String },
    /// A path that leaves its folder.
    #[error("the hub lists a file {path:?}, which could lie outside its folder")]
    Path { path: String },
    /// A size no model has.
    #[error("the hub lists {path:?} with {bytes} bytes; at most {MAX_FILE_BYTES} are taken")]
    Size { path: String, bytes: u64 },
    /// A checksum that is none.
    #[error("the hub lists {path:?} with {found:?} as its checksum")]
    Checksum { path: String, found: String },
}

/// A commit of a repository.
#[derive(Debug, Clone, Deserialize)]
pub struct Revision {
    sha: String,
}

impl Revision {
    /// 40 hexadecimal digits in lower case.
    pub fn commit(&self) -> Result<String, ListingError> {
        match is_hex(&self.sha, 40) {
            true => Ok(self.sha.clone()),
            false => Err(ListingError::Commit { found: self.sha.clone() }),
        }
    }
}

/// A file or folder as the hub lists it.
#[derive(Debug, Clone, Deserialize)]
pub struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    oid: String,
    lfs: Option<LargeFile>,
}

/// Its place in large-file storage.
#[derive(Debug, Clone, Deserialize)]
struct LargeFile {
    oid: String,
    size: u64,
}

/// A file of a model, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Inside the repository; stays in its folder.
    pub path: String,
    pub bytes: u64,
    /// Name of the blob in the cache: hexadecimal digits.
    pub etag: String,
    /// Of its bytes, where they are in large-file storage.
    pub sha256: Option<String>,
}

impl Entry {
    /// The file of a model that this is, if it is one.
    pub fn model_file(self) -> Result<Option<ListedFile>, ListingError> {
        if self.kind != "file" || !is_gguf(&self.path) || is_helper(&self.path) {
            return Ok(None);
        }
        let path = self.path;
        if !check_path(&path) {
            return Err(ListingError::Path { path });
        }
        let (bytes, etag, digits) = match &self.lfs {
            Some(lfs) => (lfs.size, lfs.oid.clone(), 64),
            None => (self.size, self.oid.clone(), 40),
        };
        if bytes > MAX_FILE_BYTES {
            return Err(ListingError::Size { path, bytes });
        }
        if !is_hex(&etag, digits) {
            return Err(ListingError::Checksum { path, found: etag });
        }
        let sha256 = self.lfs.map(|lfs| lfs.oid);
        Ok(Some(ListedFile { path, bytes, etag, sha256 }))
    }
}

/// GGUF files that go with a model and are none: projectors of images, importance matrices.
pub(crate) fn is_helper(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    name.starts_with("mmproj") || name.contains("imatrix") || name.starts_with("ggml-vocab")
}

/// Whether a text is `digits` hexadecimal digits in lower case.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(json: &str) -> Result<Option<ListedFile>, ListingError> {
        serde_json::from_str::<Entry>(json).expect("JSON").model_file()
    }

    #[test]
    fn files_of_models_are_taken_with_their_checksums() {
        let oid = "a".repeat(64);
        let file = listed(&format!(
            r#"{{"type":"file","path":"Q4/m.gguf","size":7,"oid":"{}","xetHash":"x",
                "lfs":{{"oid":"{oid}","size":7,"pointerSize":135}}}}"#,
            "b".repeat(40)
        ));
        let file = file.unwrap().unwrap();
        assert_eq!((file.bytes, file.sha256.as_deref()), (7, Some(oid.as_str())));
        for other in ["README.md", "mmproj-F16.gguf", "x/model.imatrix.gguf"] {
            let json = format!(r#"{{"type":"file","path":"{other}","size":1,"oid":""}}"#);
            assert_eq!(listed(&json), Ok(None), "{other}");
        }
        assert_eq!(listed(r#"{"type":"directory","path":"x.gguf","oid":""}"#), Ok(None));
    }

    #[test]
    fn hostile_entries_are_refused() {
        let of = |path: &str, size: u64, oid: &str| {
            let lfs = format!(r#""lfs":{{"oid":"{oid}","size":{size}}}"#);
            listed(&format!(r#"{{"type":"file","path":"{path}","size":{size},{lfs}}}"#))
        };
        let good = "0".repeat(64);
        assert!(matches!(of("../m.gguf", 1, &good), Err(ListingError::Path { .. })));
        assert!(matches!(of("a//m.gguf", 1, &good), Err(ListingError::Path { .. })));
        assert!(matches!(of("/m.gguf", 1, &good), Err(ListingError::Path { .. })));
        assert!(matches!(of("m.gguf", u64::MAX, &good), Err(ListingError::Size { .. })));
        assert!(matches!(of("m.gguf", 1, "../../x"), Err(ListingError::Checksum { .. })));
        let commit = Revision { sha: "../main".into() };
        assert!(matches!(commit.commit(), Err(ListingError::Commit { .. })));
    }
}
