//! Whether files at a path can be read past the page cache. Leaves nothing behind.

use std::path::{Path, PathBuf};

use motley_store::{FileMode, Files};
use serde::Serialize;

/// Answer of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirectIo {
    /// Works.
    Works,
    /// The filesystem refuses; experts would go through the page cache.
    Refused,
    /// No file to try and none could be written.
    Untried,
}

/// Opens `path`, or a model in that folder, or a temporary file written there.
pub fn probe(path: &Path) -> DirectIo {
    if path.is_file() {
        return probe_file(path);
    }
    if let Some(model) = first_model(path) {
        return probe_file(&model);
    }
    // Named, because it is opened a second time; removed when dropped.
    match tempfile::NamedTempFile::new_in(path) {
        Ok(file) if file.as_file().set_len(1 << 16).is_ok() => probe_file(file.path()),
        _ => DirectIo::Untried,
    }
}

fn probe_file(path: &Path) -> DirectIo {
    match Files::open(&[path], FileMode::DirectIfPossible) {
        Ok(files) if files.all_direct() => DirectIo::Works,
        Ok(_) => DirectIo::Refused,
        Err(_) => DirectIo::Untried,
    }
}

fn first_model(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "gguf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_answers_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let in_folder = probe(folder.path());
        assert_ne!(in_folder, DirectIo::Untried);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let model = folder.path().join("x.gguf");
        std::fs::write(&model, [0; 4096]).unwrap();
        assert_eq!((probe(&model), probe(folder.path())), (in_folder, in_folder));
        assert_eq!(probe(Path::new("/no/such/folder")), DirectIo::Untried);
    }
}
