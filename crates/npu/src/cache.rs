//! Compiled graphs on disk, named by the hash of everything they depend on: the
//! experts' bytes as the model's file has them, the shape, the provider and its options.
//! Providers that keep compiled code themselves are given a folder of that name instead,
//! because some of them distinguish graphs by structure only, not by weights.
//!
//! ```text
//! <key>.onnx     a graph, by ONNX Runtime's own kernels
//! <key>.sha256   the hash of that file: a damaged file is compiled again, never run
//! <key>/         what another provider keeps
//! <key>.N.part   being written by process N
//! ```
//!
//! All of them together are bounded: the ones used longest ago go first.

use crate::provider::{Provider, ProviderConfig};
use crate::spec::GraphSpec;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Default limit for the bytes of all kept graphs.
pub const MAX_CACHE_BYTES: u64 = 16_000_000_000;
/// Raised when the same inputs give another graph.
const VERSION: u32 = 2;
/// Bytes of a file hashed at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Characters of a key in a file's name.
const KEY_CHARS: usize = 64;

/// Everything a graph depends on, hashed.
#[derive(Debug, Clone)]
pub struct GraphKey(Sha256);

impl GraphKey {
    /// Begins with what is not weights.
    pub fn new(spec: &GraphSpec, config: &ProviderConfig) -> Self {
        let mut hash = Sha256::new();
        // The folder is where the graph lies, not what it is.
        let config = ProviderConfig { cache_dir: None, ..config.clone() };
        hash.update(format!("{VERSION} {spec:?} {config:?} {:?}", config.options()));
        Self(hash)
    }

    /// Adds bytes of weights; order counts, and so do borders.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// The key as a file's name.
    pub fn name(&self) -> String {
        hex(self.0.clone())
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    })
}

/// A folder of graphs.
#[derive(Debug, Clone)]
pub struct GraphCache {
    folder: PathBuf,
    max_bytes: u64,
}

impl GraphCache {
    /// The folder at `path`, created when it does not exist; never more than `max_bytes` in it
    /// but for the graph used last.
    pub fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self { folder: path.into(), max_bytes })
    }

    /// Where the graph of `key` is or would be.
    pub fn path(&self, key: &GraphKey) -> PathBuf {
        self.folder.join(key.name()).with_extension("onnx")
    }

    /// The folder a provider keeps the graph of `key` in; created when it does not exist.
    pub(crate) fn provider_folder(&self, key: &GraphKey) -> Option<PathBuf> {
        let folder = self.folder.join(key.name());
        fs::create_dir_all(&folder).ok().map(|()| folder)
    }

    /// Whether the file at `path` is there and is what was written; counts as a use.
    pub(crate) fn is_whole(&self, path: &Path) -> bool {
        let kept = fs::read_to_string(path.with_extension("sha256"));
        let whole = kept.is_ok_and(|kept| hash_of(path).is_ok_and(|found| found == kept));
        if whole {
            touch(path);
        }
        whole
    }

    /// Where to write a graph before it takes `path`; `None` when this provider's graphs
    /// cannot be written (it compiled them for itself).
    pub(crate) fn unfinished(&self, config: &ProviderConfig, path: &Path) -> Option<PathBuf> {
        let own = config.provider == Provider::Cpu;
        own.then(|| path.with_extension(format!("{}.part", std::process::id())))
    }

    /// Gives the graph written at `unfinished` its place. Without it the next start compiles
    /// again, so a failure here is not an error of the graph.
    pub(crate) fn keep(&self, unfinished: &Path, path: &Path) {
        let kept = hash_of(unfinished)
            .and_then(|hash| fs::write(path.with_extension("sha256"), hash))
            .and_then(|()| fs::rename(unfinished, path));
        if kept.is_err() {
            let _ = fs::remove_file(unfinished);
        }
    }

    /// Removes what was used longest ago until the rest fits; `key`'s graph stays.
    pub fn trim(&self, key: &GraphKey) {
        touch(&self.folder.join(key.name()));
        let Ok(mut kept) = self.kept() else { return };
        let mut bytes: u64 = kept.iter().map(|graph| graph.bytes).sum();
        kept.sort_by_key(|graph| graph.used);
        let name = key.name();
        for graph in kept.iter().filter(|graph| graph.name != name) {
            if bytes <= self.max_bytes {
                return;
            }
            graph.parts.iter().for_each(|part| remove(part));
            bytes -= graph.bytes;
        }
    }

    /// What is there, graph by graph. Files of other names are ignored.
    fn kept(&self) -> io::Result<Vec<Kept>> {
        let mut graphs: HashMap<String, Kept> = HashMap::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(|name| name.get(..KEY_CHARS));
            let Some(key) = key.filter(|key| key.bytes().all(|byte| byte.is_ascii_hexdigit()))
            else {
                continue;
            };
            let graph = graphs.entry(key.to_owned()).or_insert_with(|| Kept::new(key));
            graph.bytes += bytes_of(&entry.path());
            let used = entry.metadata().and_then(|metadata| metadata.modified());
            graph.used = graph.used.max(used.unwrap_or(SystemTime::UNIX_EPOCH));
            graph.parts.push(entry.path());
        }
        Ok(graphs.into_values().collect())
    }
}

/// One graph on disk, with everything beside it.
struct Kept {
    name: String,
    parts: Vec<PathBuf>,
    bytes: u64,
    used: SystemTime,
}

impl Kept {
    fn new(name: &str) -> Self {
        Self { name: name.into(), parts: Vec::new(), bytes: 0, used: SystemTime::UNIX_EPOCH }
    }
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(hash)),
            read => hash.update(&chunk[..read]),
        }
    }
}

/// Marks a file or folder as used now; a time that cannot be set only ages it.
fn touch(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

fn bytes_of(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let inside = fs::read_dir(path).into_iter().flatten().flatten();
    inside.map(|entry| bytes_of(&entry.path())).sum()
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Activation, ExpertShape, Precision};
    use std::time::Duration;

    const SPEC: GraphSpec = GraphSpec {
        shape: ExpertShape { hidden: 16, inner: 16 },
        experts: 2,
        capacity: 16,
        activation: Activation::SwiGlu,
        biased: false,
        precision: Precision::F32,
    };

    #[test]
    fn a_key_knows_bytes_borders_and_settings() {
        let config = ProviderConfig::cpu(1);
        let name = |spec: &GraphSpec, config: &ProviderConfig, parts: &[&[u8]]| {
            let mut key = GraphKey::new(spec, config);
            parts.iter().for_each(|part| key.add(part));
            key.name()
        };
        let first = name(&SPEC, &config, &[b"ab", b"c"]);
        assert_eq!(first.len(), KEY_CHARS);
        assert_eq!(first, name(&SPEC, &config, &[b"ab", b"c"]));
        assert_ne!(first, name(&SPEC, &config, &[b"a", b"bc"]));
        assert_ne!(first, name(&GraphSpec { capacity: 32, ..SPEC }, &config, &[b"ab", b"c"]));
        let other = ProviderConfig { provider: Provider::OpenVino, ..config.clone() };
        assert_ne!(first, name(&SPEC, &other, &[b"ab", b"c"]));
        let moved = ProviderConfig { cache_dir: Some("there".into()), ..config };
        assert_eq!(first, name(&SPEC, &moved, &[b"ab", b"c"]));
    }

    fn key(weights: &[u8]) -> GraphKey {
        let mut key = GraphKey::new(&SPEC, &ProviderConfig::cpu(1));
        key.add(weights);
        key
    }

    /// Keeps 100 bytes as the graph of `key`, used `hours` ago.
    fn kept(cache: &GraphCache, key: &GraphKey, hours: u64) {
        let path = cache.path(key);
        let part = path.with_extension("1.part");
        fs::write(&part, [7; 36]).unwrap();
        cache.keep(&part, &path);
        let then = SystemTime::now() - Duration::from_secs(3600 * hours);
        for path in [path.with_extension("sha256"), path] {
            File::open(path).unwrap().set_modified(then).unwrap();
        }
    }

    #[test]
    fn the_one_used_longest_ago_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = GraphCache::open(folder.path(), 250).unwrap();
        let [old, older, used, new] = [b"a", b"b", b"c", b"d"].map(|weights| key(weights));
        kept(&cache, &old, 5);
        kept(&cache, &older, 9);
        fs::write(folder.path().join("notes.onnx"), [0; 1000]).unwrap();
        // The oldest of all, but opened just now.
        kept(&cache, &used, 20);
        assert!(cache.is_whole(&cache.path(&used)));
        kept(&cache, &new, 0);
        cache.trim(&new);
        let there = [&old, &older, &used, &new].map(|key| cache.path(key).exists());
        assert_eq!(there, [false, false, true, true], "two of 100 bytes fit into 250");
        assert!(folder.path().join("notes.onnx").exists(), "other files are left alone");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "hashes go with graphs");
        let none = GraphCache::open(folder.path(), 0).unwrap();
        none.trim(&new);
        assert!(cache.path(&new).exists() && !cache.path(&used).exists(), "the last one stays");
    }

    #[test]
    fn folders_of_providers_count_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let cache = GraphCache::open(folder.path(), 150).unwrap();
        let [first, second] = [b"a", b"b"].map(|weights| key(weights));
        for key in [&first, &second] {
            fs::write(cache.provider_folder(key).unwrap().join("blob"), [0; 100]).unwrap();
        }
        cache.trim(&second);
        let there = [&first, &second].map(|key| folder.path().join(key.name()).exists());
        assert_eq!(there, [false, true]);
    }

    #[test]
    fn a_damaged_file_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let cache = GraphCache::open(folder.path(), MAX_CACHE_BYTES).unwrap();
        let key = key(b"a");
        assert!(!cache.is_whole(&cache.path(&key)));
        kept(&cache, &key, 1);
        assert!(cache.is_whole(&cache.path(&key)));
        fs::write(cache.path(&key), [8; 36]).unwrap();
        assert!(!cache.is_whole(&cache.path(&key)));
    }
}
