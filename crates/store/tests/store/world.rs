//! What the tests share: files of known bytes, readers of every kind, requests and checks.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use motley_model::{FileRange, Matrix, TensorPart};
use motley_store::{
    Arena, ArenaSpec, Backend, Completion, FaultPlan, FileMode, Files, HugePages, Piece, Priority,
    Reader, ReaderOptions, Request, Tag,
};

/// A file whose bytes are a function of their offset.
pub(crate) struct KnownFile {
    pub(crate) path: PathBuf,
    _dir: tempfile::TempDir,
}

impl KnownFile {
    /// In the directory for temporary files, on disk.
    pub(crate) fn new(len_bytes: u64) -> Self {
        Self::inside(&std::env::temp_dir(), len_bytes)
    }

    pub(crate) fn inside(parent: &Path, len_bytes: u64) -> Self {
        let dir = tempfile::tempdir_in(parent).expect("a temporary directory");
        let path = dir.path().join("model.gguf");
        let mut file = File::create(&path).expect("a new file");
        file.write_all(&bytes_at(0, len_bytes as usize)).expect("room on the disk");
        file.sync_all().expect("a working disk");
        Self { path, _dir: dir }
    }

    pub(crate) fn files(&self, mode: FileMode) -> Arc<Files> {
        Arc::new(Files::open(&[&self.path], mode).expect("the file was just written"))
    }

    pub(crate) fn reader(&self, options: ReaderOptions) -> Reader {
        open(self.files(FileMode::DirectIfPossible), options)
    }
}

pub(crate) fn open(files: Arc<Files>, options: ReaderOptions) -> Reader {
    Reader::open(files, options).expect("a backend this system has")
}

/// What [`KnownFile`] holds in a range.
pub(crate) fn bytes_at(offset: u64, len: usize) -> Vec<u8> {
    (offset..offset + len as u64)
        .map(|x| (x.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

/// The backends this system allows; a container may forbid io_uring.
pub(crate) fn backends() -> Vec<Backend> {
    let file = KnownFile::new(1);
    let files = file.files(FileMode::Buffered);
    let works = |backend: &Backend| {
        let opened = Reader::open(Arc::clone(&files), ReaderOptions::new(*backend));
        opened.inspect_err(|error| eprintln!("skipped: {error}")).is_ok()
    };
    let working: Vec<Backend> = Backend::ALL.into_iter().filter(works).collect();
    assert!(working.contains(&Backend::Pool));
    working
}

pub(crate) fn faulty(backend: Backend, in_flight: u32, faults: FaultPlan) -> ReaderOptions {
    ReaderOptions { backend, in_flight, faults: Some(faults) }
}

pub(crate) fn arena(slot_bytes: usize, slots: u32) -> Arena {
    let spec = ArenaSpec {
        slot_bytes,
        max_slots: slots,
        usable_slots: slots,
        huge_pages: HugePages::Refuse,
    };
    Arena::new(spec).expect("a small arena")
}

pub(crate) fn range(offset: u64, len_bytes: u64) -> FileRange {
    FileRange { file: 0, offset, len_bytes }
}

pub(crate) fn piece(arena: &Arena, range: FileRange, at_bytes: usize) -> Piece {
    let slot = arena.lease().expect("a free slot");
    Piece { matrix: Matrix::Gate, part: TensorPart::Weight, range, slot, at_bytes }
}

pub(crate) fn demand(tag: u64, pieces: Vec<Piece>) -> Request {
    Request { tag: Tag(tag), priority: Priority::Demand, pieces }
}

pub(crate) fn prefetch(tag: u64, pieces: Vec<Piece>) -> Request {
    Request { tag: Tag(tag), priority: Priority::Prefetch, pieces }
}

/// Every completion of what is under way.
pub(crate) fn drain(reader: &Reader) -> Vec<Completion> {
    std::iter::from_fn(|| reader.wait(None)).collect()
}

/// Checks one filled slot per range against what the file was written with.
pub(crate) fn assert_holds(completion: &Completion, ranges: &[FileRange]) {
    let filled = completion.outcome.as_ref().expect("a working disk");
    assert_eq!(filled.len(), ranges.len());
    for ((_, _, slot), range) in filled.iter().zip(ranges) {
        let expected = bytes_at(range.offset, range.len_bytes as usize);
        assert!(slot.bytes() == expected, "wrong bytes for {range:?}");
    }
}
