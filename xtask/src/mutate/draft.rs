//! A model's header that can be changed, and the files it becomes. Bytes of tensors are those of
//! the original, as far as its shape still has them, and zeros beyond.

use anyhow::{Context, Result};
use motley_model::ModelFiles;
use motley_model::gguf::{GgufLimits, Metadata, TensorDesc, encode_header};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A tensor as it will be written, and where its bytes lie now.
#[derive(Debug, Clone)]
pub(super) struct DraftTensor {
    pub(super) desc: TensorDesc,
    offset: u64,
    len: u64,
}

/// One file.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<DraftTensor>,
    source: PathBuf,
}

/// A model to be changed.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    name: String,
    pub(super) parts: Vec<Part>,
}

impl Draft {
    /// The model at `path`, all its parts.
    pub(super) fn read(name: &str, path: &Path) -> Result<Self> {
        let files = ModelFiles::open(path, &GgufLimits::default())?;
        let part = |(source, header): (PathBuf, motley_model::gguf::GgufHeader)| Part {
            metadata: header.metadata,
            tensors: header
                .tensors
                .into_iter()
                .map(|tensor| DraftTensor {
                    desc: TensorDesc { name: tensor.name, dims: tensor.dims, ty: tensor.ty },
                    offset: tensor.file_offset,
                    len: tensor.len_bytes,
                })
                .collect(),
            source,
        };
        let parts = files.paths.into_iter().zip(files.headers).map(part).collect();
        Ok(Self { name: name.to_owned(), parts })
    }

    /// What it was made of.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Metadata of the first part, which holds the model's.
    pub(super) fn metadata(&mut self) -> &mut Metadata {
        &mut self.parts[0].metadata
    }

    /// `general.architecture`, or nothing.
    pub(super) fn architecture(&self) -> String {
        let value = self.parts[0].metadata.get("general.architecture");
        value.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    }

    /// Writes all parts below `folder`; the first one, or `None` when no file can say this.
    pub(super) fn write(&self, folder: &Path) -> Result<Option<PathBuf>> {
        for (number, part) in self.parts.iter().enumerate() {
            if !part.write(&self.path(folder, number))? {
                return Ok(None);
            }
        }
        Ok(Some(self.path(folder, 0)))
    }

    /// Removes what was written.
    pub(super) fn remove(&self, folder: &Path) {
        for number in 0..self.parts.len() {
            // What cannot be removed goes with the temporary folder.
            let _ = std::fs::remove_file(self.path(folder, number));
        }
    }

    fn path(&self, folder: &Path, number: usize) -> PathBuf {
        match self.parts.len() {
            1 => folder.join("mutated.gguf"),
            count => folder.join(format!("mutated-{:05}-of-{count:05}.gguf", number + 1)),
        }
    }
}

impl Part {
    fn write(&self, path: &Path) -> Result<bool> {
        let descs: Vec<_> = self.tensors.iter().map(|tensor| tensor.desc.clone()).collect();
        let Ok(header) = encode_header(&self.metadata, &descs) else { return Ok(false) };
        // A shape that says terabytes is a sparse file's; more than a file can be is not written.
        if header.file_len > 1 << 40 {
            return Ok(false);
        }
        let shown = || path.display().to_string();
        let mut file = File::create(path).with_context(shown)?;
        let mut source = File::open(&self.source)?;
        file.write_all(&header.bytes).with_context(shown)?;
        for (tensor, (offset, len)) in
            self.tensors.iter().zip(header.offsets.iter().zip(&header.lens))
        {
            source.seek(SeekFrom::Start(tensor.offset))?;
            file.seek(SeekFrom::Start(*offset))?;
            let bytes = tensor.len.min(*len);
            std::io::copy(&mut (&source).take(bytes), &mut file).with_context(shown)?;
        }
        file.set_len(header.file_len).with_context(shown)?;
        Ok(true)
    }
}
