//! Which GGUF files this process has open: the ones its loader is reading. A loader keeps them open
//! until it has loaded everything, and says their names to nobody.

use motley_model::gguf::MAGIC;
use motley_model::read_exact_at;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Their paths, each once, in the order they were opened as far as the system tells.
pub(crate) fn open_models() -> Vec<PathBuf> {
    in_folder(Path::new("/proc/self/fd"))
}

fn in_folder(descriptors: &Path) -> Vec<PathBuf> {
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut entries: Vec<PathBuf> =
        fs::read_dir(descriptors).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort_by_key(number);
    let mut found = Vec::new();
    for path in entries.iter().filter_map(|entry| fs::read_link(entry).ok()) {
        if !found.contains(&path) && is_model(&path) {
            found.push(path);
        }
    }
    found
}

/// Opened anew, so that nobody's place in the file moves; devices and pipes are left alone.
fn is_model(path: &Path) -> bool {
    if !path.is_absolute() || !fs::metadata(path).is_ok_and(|about| about.is_file()) {
        return false;
    }
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|file| read_exact_at(&file, &mut magic, 0));
    read.is_ok() && magic == MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn models_are_found_among_what_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.gguf"), b"GGUF and more").unwrap();
        fs::write(at("b.txt"), b"text").unwrap();
        fs::create_dir(at("fd")).unwrap();
        let targets = ["b.txt", "a.gguf", "a.gguf", "gone.gguf"];
        for (number, target) in targets.iter().enumerate() {
            symlink(at(target), at("fd").join(number.to_string())).unwrap();
        }
        symlink("pipe:[1234]", at("fd").join("9")).unwrap();
        assert_eq!(in_folder(&at("fd")), [at("a.gguf")]);
        assert!(in_folder(&at("nowhere")).is_empty());
    }
}
