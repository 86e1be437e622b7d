//! Opens the files of a model: one GGUF, or every shard of a split one. Reads headers only.

use std::io;
use std::path::{Path, PathBuf};

use crate::gguf::{
    GgufHeader, GgufLimits, LayoutError, MetaValue, ReadError, VirtualLayout, rewrite_header,
};
use crate::opened::OpenedFile;

/// Most shards of one model; their number has five digits in the names, and real ones a few dozen.
pub const MAX_SHARDS: u64 = 4096;

/// Why a model's files were refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file does not exist.
    #[error("{}: no such file", path.display())]
    NotFound { path: PathBuf },
    /// The path is a directory.
    #[error("{}: this is a directory; name the .gguf file inside it", path.display())]
    Directory { path: PathBuf },
    /// The file cannot be opened.
    #[error("{}: cannot be opened", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The header was refused.
    #[error("{}: cannot be used", path.display())]
    Header { path: PathBuf, source: ReadError },
    /// A shard of a split model whose name does not say which.
    #[error(
        "{}: is part {} of {count} but its name does not end in -{:05}-of-{count:05}.gguf; \
         give it its original name", path.display(), number.saturating_add(1), number.saturating_add(1)
    )]
    ShardName {
        path: PathBuf,
        /// `split.no`, from 0.
        number: u64,
        /// `split.count`.
        count: u64,
    },
    /// A shard is not beside the others.
    #[error(
        "{}: part {} of {count} is missing; put all parts of the model into one directory",
        path.display(), number.saturating_add(1)
    )]
    ShardMissing {
        /// The file that should be there.
        path: PathBuf,
        /// Its number from 0.
        number: u64,
        /// Parts in all.
        count: u64,
    },
    /// A shard belongs elsewhere: its number or count differs from its name.
    #[error(
        "{}: says it is part {} of {count}, expected part {} of {expected_count}; \
         the parts of different models may be mixed", path.display(), number.saturating_add(1), expected.saturating_add(1)
    )]
    ShardMismatch {
        path: PathBuf,
        /// Its `split.no`.
        number: u64,
        /// Its `split.count`.
        count: u64,
        /// The number its name says.
        expected: u64,
        /// The count of the first file.
        expected_count: u64,
    },
    /// The shards together hold another number of tensors than announced.
    #[error("{}: all parts hold {found} tensors, {expected} were announced", path.display())]
    TensorCount {
        /// The first file.
        path: PathBuf,
        found: u64,
        /// `split.tensors.count`.
        expected: u64,
    },
    /// More shards than [`MAX_SHARDS`].
    #[error("{}: {count} parts are more than the limit of {MAX_SHARDS}", path.display())]
    TooManyShards {
        path: PathBuf,
        /// `split.count`.
        count: u64,
    },
}

/// A model's files in order, headers validated.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    pub paths: Vec<PathBuf>,
    /// The files the headers were read from, open; as many as paths, and none where only their
    /// headers are here.
    pub opened: Vec<OpenedFile>,
    /// Header of every file; as many as paths, at least one.
    pub headers: Vec<GgufHeader>,
}

impl ModelFiles {
    /// Opens `path`, and when it is any shard of a split model, all the others beside it.
    pub fn open(path: &Path, limits: &GgufLimits) -> Result<Self, OpenError> {
        let (opened, header) = read_header(path, limits)?;
        let split = Split::of(&header);
        if split.count <= 1 {
            let paths = vec![path.to_owned()];
            return Ok(Self { paths, opened: vec![opened], headers: vec![header] });
        }
        if split.count > MAX_SHARDS {
            return Err(OpenError::TooManyShards { path: path.to_owned(), count: split.count });
        }
        let files = open_shards(path, split, limits)?;
        files.check_tensor_count()?;
        Ok(files)
    }

    /// A model of which only the headers are here, in order; its files lie at `paths`, or will.
    pub fn of_headers(paths: Vec<PathBuf>, headers: Vec<GgufHeader>) -> Result<Self, OpenError> {
        let count = headers.len() as u64;
        for (number, (path, header)) in paths.iter().zip(&headers).enumerate() {
            check_shard(path, header, Split { number: number as u64, count })?;
        }
        let files = Self { paths, opened: Vec::new(), headers };
        files.check_tensor_count()?;
        Ok(files)
    }

    /// One virtual file over all of them.
    pub fn layout(&self) -> Result<VirtualLayout, LayoutError> {
        rewrite_header(&self.headers)
    }

    fn check_tensor_count(&self) -> Result<(), OpenError> {
        let found = self.headers.iter().map(|header| header.tensors.len() as u64).sum();
        let (Some(first), Some(path)) = (self.headers.first(), self.paths.first()) else {
            return Ok(());
        };
        match number(first, "split.tensors.count") {
            Some(expected) if expected != found => {
                Err(OpenError::TensorCount { path: path.clone(), found, expected })
            }
            _ => Ok(()),
        }
    }
}

/// Which shard a file is.
#[derive(Clone, Copy)]
struct Split {
    number: u64,
    count: u64,
}

impl Split {
    fn of(header: &GgufHeader) -> Self {
        Self {
            number: number(header, "split.no").unwrap_or(0),
            count: number(header, "split.count").unwrap_or(1),
        }
    }
}

fn number(header: &GgufHeader, key: &str) -> Option<u64> {
    header.metadata.get(key).and_then(MetaValue::as_u64)
}

fn read_header(path: &Path, limits: &GgufLimits) -> Result<(OpenedFile, GgufHeader), OpenError> {
    let io_error = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => OpenError::NotFound { path: path.to_owned() },
        io::ErrorKind::IsADirectory => OpenError::Directory { path: path.to_owned() },
        _ => OpenError::Io { path: path.to_owned(), source },
    };
    if path.is_dir() {
        return Err(OpenError::Directory { path: path.to_owned() });
    }
    let opened = OpenedFile::open(path).map_err(io_error)?;
    let header = GgufHeader::read(opened.file(), limits)
        .map_err(|source| OpenError::Header { path: path.to_owned(), source })?;
    Ok((opened, header))
}

fn open_shards(path: &Path, split: Split, limits: &GgufLimits) -> Result<ModelFiles, OpenError> {
    let prefix = shard_prefix(path, split).ok_or_else(|| OpenError::ShardName {
        path: path.to_owned(),
        number: split.number,
        count: split.count,
    })?;
    let mut files = ModelFiles { paths: Vec::new(), opened: Vec::new(), headers: Vec::new() };
    for number in 0..split.count {
        let shard = path.with_file_name(shard_name(&prefix, number, split.count));
        let (opened, header) = read_header(&shard, limits).map_err(|error| match error {
            OpenError::NotFound { path } => {
                OpenError::ShardMissing { path, number, count: split.count }
            }
            other => other,
        })?;
        check_shard(&shard, &header, Split { number, count: split.count })?;
        files.paths.push(shard);
        files.opened.push(opened);
        files.headers.push(header);
    }
    Ok(files)
}

fn check_shard(path: &Path, header: &GgufHeader, expected: Split) -> Result<(), OpenError> {
    let found = Split::of(header);
    if found.number == expected.number && found.count == expected.count {
        return Ok(());
    }
    Err(OpenError::ShardMismatch {
        path: path.to_owned(),
        number: found.number,
        count: found.count,
        expected: expected.number,
        expected_count: expected.count,
    })
}

/// `name-00002-of-00003.gguf` for the second shard, as llama.cpp names them.
fn shard_name(prefix: &str, number: u64, count: u64) -> String {
    format!("{prefix}-{:05}-of-{count:05}.gguf", number.saturating_add(1))
}

/// The name before the shard's number, if the name agrees with the header.
fn shard_prefix(path: &Path, split: Split) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let suffix = shard_name("", split.number, split.count);
    Some(name.strip_suffix(&suffix)?.to_owned())
}
