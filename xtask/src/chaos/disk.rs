//! A file system of one file, which is another file read badly: FUSE, mounted while it lives.

#![allow(clippy::disallowed_methods, reason = "a disk is late by the clock and fails by dice")]

use super::weather::{Fate, fate};
use anyhow::{Context, Result};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry,
    ReplyOpen, Request,
};
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// The file's name on the disk.
const NAME: &str = "model.gguf";
const FILE: INodeNo = INodeNo(2);
/// How long the system may remember attributes.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Threads that answer reads, so that a late one holds up no other.
const THREADS: usize = 8;

/// Reads and what became of them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct DiskCounts {
    /// All of them.
    pub reads: u64,
    /// Failed with EIO.
    pub failed: u64,
    /// Answered late.
    pub late: u64,
    /// Answered by half.
    pub short: u64,
}

/// The disk; unmounted when dropped.
pub(super) struct FailingDisk {
    session: Option<BackgroundSession>,
    folder: tempfile::TempDir,
    state: Arc<State>,
}

struct State {
    file: File,
    attributes: FileAttr,
    begun: Instant,
    fails: AtomicBool,
    reads: AtomicU64,
    failed: AtomicU64,
    late: AtomicU64,
    short: AtomicU64,
}

impl FailingDisk {
    /// Mounts a disk that holds `file`, and reads it well until told otherwise.
    pub(super) fn mount(file: &Path) -> Result<Self> {
        let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        let len = opened.metadata()?.len();
        let state = Arc::new(State {
            file: opened,
            attributes: attributes(FILE, FileType::RegularFile, len),
            begun: Instant::now(),
            fails: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            late: AtomicU64::new(0),
            short: AtomicU64::new(0),
        });
        let folder = tempfile::tempdir()?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::RO, MountOption::FSName("failing".into())];
        config.n_threads = Some(THREADS);
        let session = fuser::spawn_mount(OneFile(Arc::clone(&state)), folder.path(), &config)
            .context("cannot mount; is there /dev/fuse, and are you root?")?;
        Ok(Self { session: Some(session), folder, state })
    }

    /// Where the file is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Whether reads may fail from now on.
    pub(super) fn set_fails(&self, fails: bool) {
        self.state.fails.store(fails, Relaxed);
    }

    /// What became of the reads so far.
    pub(super) fn counts(&self) -> DiskCounts {
        let State { reads, failed, late, short, .. } = &*self.state;
        let [reads, failed, late, short] =
            [reads, failed, late, short].map(|count| count.load(Relaxed));
        DiskCounts { reads, failed, late, short }
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && let Err(error) = session.umount_and_join()
        {
            eprintln!("cannot unmount {}: {error}", self.folder.path().display());
        }
    }
}

struct OneFile(Arc<State>);

impl Filesystem for OneFile {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&REMEMBERED, &self.0.attributes, Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match inode {
            INodeNo::ROOT => {
                reply.attr(&REMEMBERED, &attributes(inode, FileType::Directory, 0));
            }
            FILE => reply.attr(&REMEMBERED, &self.0.attributes),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Past the page cache, so that every read is a read.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.0.read(offset, size as usize) {
            Some(bytes) => reply.data(&bytes),
            None => reply.error(Errno::EIO),
        }
    }
}

impl State {
    /// The bytes, unless the weather is against it.
    fn read(&self, offset: u64, size: usize) -> Option<Vec<u8>> {
        self.reads.fetch_add(1, Relaxed);
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < size {
            match self.file.read_at(&mut bytes[filled..], offset + filled as u64).ok()? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        match self.fate() {
            Fate::Well => {}
            Fate::Fails => {
                self.failed.fetch_add(1, Relaxed);
                return None;
            }
            Fate::Late(late) => {
                self.late.fetch_add(1, Relaxed);
                std::thread::sleep(late);
            }
            Fate::Short => {
                self.short.fetch_add(1, Relaxed);
                bytes.truncate(filled / 2);
            }
        }
        Some(bytes)
    }

    fn fate(&self) -> Fate {
        match self.fails.load(Relaxed) {
            true => fate(self.begun.elapsed(), fastrand::f64()),
            false => Fate::Well,
        }
    }
}

fn attributes(ino: INodeNo, kind: FileType, size: u64) -> FileAttr {
    let time = SystemTime::UNIX_EPOCH;
    let perm = if kind == FileType::Directory { 0o555 } else { 0o444 };
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
