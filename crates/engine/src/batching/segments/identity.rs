//! The key that stands for a model and the shape of its cache: what is computed with one is never
//! read with another.

use motley_ggml::versions;
use motley_model::{KvType, OpenedFile, read_exact_at};
use motley_sched::batch::SegmentKey;
use sha2::{Digest, Sha256};
use std::io;
use std::time::UNIX_EPOCH;

/// Read whole of every file: most headers are shorter.
const BEGINNING_BYTES: u64 = 4 << 20;
/// Places of a file that are looked at beside it: models of one kind have equal headers.
const SAMPLES: u64 = 64;
const SAMPLE_BYTES: usize = 4096;

/// The root of all segments of a model whose files these are, with a cache of `kv`. Length and time
/// of every file, its beginning and samples of the rest; reading all of it would take minutes.
pub(in super::super) fn root_of(files: &[OpenedFile], kv: KvType) -> io::Result<SegmentKey> {
    let mut hash = Sha256::new();
    hash.update(b"motley segments 1");
    hash.update(versions::CRATE);
    hash.update(kv.name());
    for file in files {
        let length = file.len_bytes();
        hash.update(length.to_le_bytes());
        let modified = file.file().metadata()?.modified()?;
        let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        hash.update(modified.as_nanos().to_le_bytes());
        let mut bytes = vec![0; BEGINNING_BYTES.min(length) as usize];
        read_exact_at(file.file(), &mut bytes, 0)?;
        hash.update(&bytes);
        bytes.resize(SAMPLE_BYTES.min(bytes.len()), 0);
        for sample in 0..SAMPLES {
            let at = length.saturating_sub(bytes.len() as u64) / SAMPLES * sample;
            read_exact_at(file.file(), &mut bytes, at)?;
            hash.update(&bytes);
        }
    }
    Ok(SegmentKey(hash.finalize().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_weights_and_other_caches_have_other_roots() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let root = |bytes: &[u8], kv| {
            std::fs::write(&path, bytes).unwrap();
            let writer = std::fs::File::options().write(true).open(&path).unwrap();
            writer.set_modified(UNIX_EPOCH).unwrap();
            drop(writer);
            root_of(&[OpenedFile::open(&path).unwrap()], kv).unwrap()
        };
        let mut bytes = vec![3; 9 << 20];
        let before = root(&bytes, KvType::F16);
        assert_eq!(before, root(&bytes, KvType::F16));
        assert_ne!(before, root(&bytes, KvType::Q8_0));
        bytes[6 << 20..7 << 20].fill(4);
        assert_ne!(before, root(&bytes, KvType::F16));
    }
}
