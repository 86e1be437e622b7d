//! Expert bytes through a read-only mapping of the model's files: for copies to a device whose
//! source llama.cpp has mapped as well, so that both share the page cache. Reads nothing by
//! itself; pages come when they are touched.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use motley_model::{FileRange, LayerExperts, Matrix, ModelSpec, TensorPart};
use rustix::mm::{MapFlags, ProtFlags};

/// Why a model's files could not be mapped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A file cannot be opened or mapped.
    #[error("{}: cannot be mapped for reading experts", path.display())]
    Map { path: PathBuf, source: io::Error },
    /// An expert lies beyond the end of its file, or in a file that was not given.
    #[error("layer {layer}: experts lie outside the {files} given files; is one cut short?")]
    Outside { layer: u32, files: usize },
}

/// The routed experts of a model, as they lie in its files. Clones are the same mapping.
#[derive(Debug, Clone)]
pub struct MappedExperts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layers: Vec<Option<LayerExperts>>,
    files: Vec<MappedFile>,
}

impl MappedExperts {
    /// Maps the files of `spec`, in the model's order.
    pub fn open<P: AsRef<Path>>(spec: &ModelSpec, paths: &[P]) -> Result<Self, MapError> {
        let mapped = |path: &P| {
            let path = path.as_ref();
            MappedFile::open(path).map_err(|source| MapError::Map { path: path.into(), source })
        };
        let files = paths.iter().map(mapped).collect::<Result<Vec<_>, _>>()?;
        for layer in spec.layers.iter().flatten() {
            let last = layer.experts.saturating_sub(1);
            let inside =
                |range: FileRange| files.get(range.file).is_some_and(|f| f.get(range).is_some());
            if !layer.ranges(last).all(|(_, range)| inside(range)) {
                return Err(MapError::Outside { layer: layer.layer, files: files.len() });
            }
        }
        Ok(Self(Arc::new(Inner { layers: spec.layers.clone(), files })))
    }

    /// Every part of one expert; none when the model has no such expert.
    pub fn parts(
        &self,
        layer: u32,
        expert: u32,
    ) -> impl Iterator<Item = (Matrix, TensorPart, &[u8])> {
        let layer = self.0.layers.get(layer as usize).and_then(Option::as_ref);
        layer.into_iter().flat_map(move |layer| layer.ranges(expert)).filter_map(
            |(tensor, range)| {
                let bytes = self.0.files.get(range.file)?.get(range)?;
                Some((tensor.matrix, tensor.part, bytes))
            },
        )
    }
}

/// One file, mapped whole.
#[derive(Debug)]
struct MappedFile {
    base: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the mapping is read-only memory of the process; any thread may read it.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let len_bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if len_bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: a new mapping at an address the kernel picks aliases nothing. Who cuts the
        // file short while it is in use ends the process, as with llama.cpp's own mapping.
        let base = unsafe {
            let (read, shared) = (ProtFlags::READ, MapFlags::SHARED);
            rustix::mm::mmap(null_mut(), len_bytes, read, shared, &file, 0)?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len_bytes })
    }

    fn get(&self, range: FileRange) -> Option<&[u8]> {
        let start = usize::try_from(range.offset).ok()?;
        let len_bytes = usize::try_from(range.len_bytes).ok()?;
        if start.checked_add(len_bytes)? > self.len_bytes {
            return None;
        }
        // SAFETY: inside the mapping, which lives as long as `self`; nobody writes through it.
        Some(unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(start), len_bytes) })
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped; slices borrow the file.
        let done = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len_bytes) };
        debug_assert!(done.is_ok(), "{done:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn ranges_are_the_files_own_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let file = file_of(&bytes);
        let mapped = MappedFile::open(file.path()).unwrap();
        let range = |offset, len_bytes| FileRange { file: 0, offset, len_bytes };
        assert_eq!(mapped.get(range(10, 5)), Some(&bytes[10..15]));
        assert_eq!(mapped.get(range(0, 256)), Some(&bytes[..]));
        assert_eq!(mapped.get(range(200, 57)), None);
        assert_eq!(mapped.get(range(u64::MAX, 2)), None);
    }

    #[test]
    fn an_empty_file_is_refused() {
        let file = file_of(&[]);
        let error = MappedFile::open(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
