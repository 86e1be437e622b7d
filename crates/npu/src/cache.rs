//! Compiled graphs on disk, named by the hash of everything they are made from: the
//! experts' bytes as the model's file has them, the shape, the provider and its options.
//! Providers that keep compiled code themselves are given a folder instead.

use crate::provider::{Provider, ProviderConfig};
use crate::spec::GraphSpec;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Raised when the same inputs give another graph.
const VERSION: u32 = 1;

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
        self.0.clone().finalize().iter().fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        })
    }
}

/// A folder of graphs.
#[derive(Debug, Clone)]
pub struct GraphCache(PathBuf);

impl GraphCache {
    /// The folder at `path`, made when it is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self(path.into()))
    }

    /// Where the graph of `key` is or would be.
    pub fn path(&self, key: &GraphKey) -> PathBuf {
        self.0.join(key.name()).with_extension("onnx")
    }

    /// Where to write a graph before it takes `path`; `None` when this provider's graphs
    /// cannot be written (it compiled them for itself).
    pub(crate) fn unfinished(&self, config: &ProviderConfig, path: &Path) -> Option<PathBuf> {
        let own = config.provider == Provider::Cpu;
        own.then(|| path.with_extension(format!("{}.part", std::process::id())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Activation, ExpertShape, Precision};

    #[test]
    fn a_key_knows_bytes_borders_and_settings() {
        let spec = GraphSpec {
            shape: ExpertShape { hidden: 16, inner: 16 },
            experts: 2,
            capacity: 16,
            activation: Activation::SwiGlu,
            biased: false,
            precision: Precision::F32,
        };
        let config = ProviderConfig::cpu(1);
        let name = |spec: &GraphSpec, config: &ProviderConfig, parts: &[&[u8]]| {
            let mut key = GraphKey::new(spec, config);
            parts.iter().for_each(|part| key.add(part));
            key.name()
        };
        let first = name(&spec, &config, &[b"ab", b"c"]);
        assert_eq!(first.len(), 64);
        assert_eq!(first, name(&spec, &config, &[b"ab", b"c"]));
        assert_ne!(first, name(&spec, &config, &[b"a", b"bc"]));
        assert_ne!(first, name(&GraphSpec { capacity: 32, ..spec }, &config, &[b"ab", b"c"]));
        let other = ProviderConfig { provider: Provider::OpenVino, ..config.clone() };
        assert_ne!(first, name(&spec, &other, &[b"ab", b"c"]));
        let moved = ProviderConfig { cache_dir: Some("there".into()), ..config };
        assert_eq!(first, name(&spec, &moved, &[b"ab", b"c"]));
    }
}
