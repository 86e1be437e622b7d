//! A model's files in a read-only mapping, for weights that are computed where they lie and for
//! copies to a device. Reads nothing by itself; pages come when they are touched.

mod system;

use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Arc;

use motley_model::{FileRange, LayerExperts, Matrix, ModelSpec, OpenedFile, TensorPart};

/// Why a model's files could not be mapped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A file cannot be mapped.
    #[error("{}: cannot be mapped", path.display())]
    Map { path: PathBuf, source: io::Error },
    /// An expert lies beyond the end of its file, or in a file that was not given.
    #[error("layer {layer}: experts lie outside the {files} given files; is one cut short?")]
    Outside { layer: u32, files: usize },
}

/// A model's files, each mapped whole. Clones are the same mapping.
#[derive(Debug, Clone)]
pub struct MappedFiles(Arc<Vec<MappedFile>>);

impl MappedFiles {
    /// Maps `files`, in the model's order.
    pub fn map(files: &[OpenedFile]) -> Result<Self, MapError> {
        let map = |file: &OpenedFile| {
            let failed = |source| MapError::Map { path: file.path().into(), source };
            MappedFile::map(file.clone()).map_err(failed)
        };
        Ok(Self(Arc::new(files.iter().map(map).collect::<Result<_, _>>()?)))
    }

    /// The bytes of a range; `None` when it is not all inside its file.
    pub fn get(&self, range: FileRange) -> Option<&[u8]> {
        self.0.get(range.file)?.get(range)
    }

    /// All of each file: its place in memory, for whoever watches over it.
    pub fn whole(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(MappedFile::whole)
    }

    /// The first file that was written to or cut since it was opened.
    pub fn changed(&self) -> Option<&Path> {
        let changed = self.0.iter().find(|mapped| !mapped.file.is_unchanged());
        changed.map(|mapped| mapped.file.path())
    }

    /// The path of file `index`, for messages.
    pub fn path(&self, index: usize) -> Option<&Path> {
        self.0.get(index).map(|mapped| mapped.file.path())
    }
}

/// The routed experts of a model, as they lie in its files. Clones are the same mapping.
#[derive(Debug, Clone)]
pub struct MappedExperts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layers: Vec<Option<LayerExperts>>,
    files: MappedFiles,
}

impl MappedExperts {
    /// The experts of `spec` in its mapped files.
    pub fn new(spec: &ModelSpec, files: MappedFiles) -> Result<Self, MapError> {
        for layer in spec.layers.iter().flatten() {
            let last = layer.experts.saturating_sub(1);
            if !layer.ranges(last).all(|(_, range)| files.get(range).is_some()) {
                return Err(MapError::Outside { layer: layer.layer, files: files.0.len() });
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
                let bytes = self.0.files.get(range)?;
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
    file: OpenedFile,
}

// SAFETY: the mapping is read-only memory of the process; any thread may read it.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    fn map(file: OpenedFile) -> io::Result<Self> {
        let len_bytes = usize::try_from(file.len_bytes()).map_err(io::Error::other)?;
        if len_bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let base = system::map(file.file(), len_bytes)?;
        Ok(Self { base, len_bytes, file })
    }

    fn whole(&self) -> &[u8] {
        // SAFETY: the mapping lives as long as `self`; nobody writes through it.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len_bytes) }
    }

    fn get(&self, range: FileRange) -> Option<&[u8]> {
        let start = usize::try_from(range.offset).ok()?;
        let len_bytes = usize::try_from(range.len_bytes).ok()?;
        self.whole().get(start..).and_then(|rest| rest.get(..len_bytes))
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped; slices borrow the file.
        unsafe { system::unmap(self.base, self.len_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not held open: Windows lets a model's file have no writer.
    fn file_of(bytes: &[u8]) -> tempfile::TempPath {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn ranges_are_the_files_own_bytes() {
        let bytes: Vec<u8> = (0..=255).collect();
        let file = file_of(&bytes);
        let mapped = MappedFile::map(OpenedFile::open(&file).unwrap()).unwrap();
        let range = |offset, len_bytes| FileRange { file: 0, offset, len_bytes };
        assert_eq!(mapped.get(range(10, 5)), Some(&bytes[10..15]));
        assert_eq!(mapped.get(range(0, 256)), Some(&bytes[..]));
        assert_eq!(mapped.get(range(200, 57)), None);
        assert_eq!(mapped.get(range(u64::MAX, 2)), None);
    }

    #[test]
    fn an_empty_file_is_refused() {
        let file = file_of(&[]);
        let error = MappedFile::map(OpenedFile::open(&file).unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
