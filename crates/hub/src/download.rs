//! One file: resumed where it stopped, checked against its SHA-256, named only when it is right.
//!
//! ```text
//! lock ─▶ whole? ── yes ─▶ link
//!          │ no
//!          ▼
//!         hash what is here ─▶ ask for the rest ◄─┐ broken: wait, ask from where it broke
//!                                   │    └────────┘
//!                                   ▼
//!         checksum ── wrong ─▶ remove; once more if part of it was from before, else refuse
//!          │ right
//!          ▼
//!         sync ─▶ rename ─▶ link
//! ```

use crate::cache::Place;
use crate::error::FetchError;
use crate::http::{Client, Span};
use crate::limits::PROGRESS_BYTES;
use crate::lock::Lock;
use crate::offer::{RemoteFile, hex};
use crate::parallel::Stop;
use crate::progress::Progress;
use motley_model::format_bytes;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes read and written at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Why a model was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// The server did not give it.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Other bytes than the hub promises.
    #[error(
        "{path}: its bytes have the checksum {found}, and should have {expected}; they were \
         removed. Try again; if it stays so, the file at the server is damaged"
    )]
    Checksum { path: String, expected: String, found: String },
    /// The file changed at the server.
    #[error("{url}: has {found} bytes now, had {expected}; start again")]
    Length { url: String, expected: u64, found: u64 },
    /// Too little room, seen before anything was asked for.
    #[error(
        "{}: {need} bytes ({}) are to come and {free} ({}) are free; make room, or name another \
         disk with {variable}",
        folder.display(), format_bytes(*need), format_bytes(*free)
    )]
    NoRoom { folder: PathBuf, need: u64, free: u64, variable: &'static str },
    /// The disk is full, after all.
    #[error(
        "{}: the disk is full; what came is kept and the next pull goes on from there. Make \
         room, or name another disk with HF_HUB_CACHE (URLs: MOTLEY_CACHE)",
        path.display()
    )]
    Full { path: PathBuf },
    /// A file or folder cannot be used.
    #[error("{}: cannot be written: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Another part failed first.
    #[error("{path}: stopped")]
    Stopped { path: String },
}

/// A file on its way.
pub(crate) struct Download<'a> {
    pub(crate) client: &'a Client,
    pub(crate) file: &'a RemoteFile,
    pub(crate) place: &'a Place,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) stop: &'a Stop,
}

impl Download<'_> {
    /// Brings the file to its place.
    pub(crate) fn run(&self) -> Result<(), PullError> {
        let waits = || self.progress.waits(&self.file.path);
        let lock = Lock::take(&self.place.lock, waits, || self.stop.is_set());
        let Some(_lock) = lock.map_err(|error| io_error(&self.place.lock, error))? else {
            return Err(self.stopped());
        };
        match self.place.is_whole(self.file.bytes) {
            true => self.progress.here(self.file.bytes),
            false => self.fetch()?,
        }
        self.place.link().map_err(|error| io_error(self.place.opened(), error))
    }

    fn fetch(&self) -> Result<(), PullError> {
        let part = &self.place.part;
        let mut resumed = self.complete()?;
        if let Err(error) = self.check(&resumed) {
            if !resumed.from_before {
                return Err(error);
            }
            // What was here from before may be what is wrong: all of it once more.
            tracing::warn!("{error}");
            resumed = self.complete()?;
            self.check(&resumed)?;
        }
        resumed.file.sync_all().map_err(|error| io_error(part, error))?;
        fs::rename(part, &self.place.whole).map_err(|error| io_error(&self.place.whole, error))
    }

    /// Removes bytes that are not those the hub promises.
    fn check(&self, whole: &Whole) -> Result<(), PullError> {
        let found = whole.sha256.as_str();
        let Some(expected) = self.file.sha256.as_deref().filter(|expected| *expected != found)
        else {
            return Ok(());
        };
        let part = &self.place.part;
        fs::remove_file(part).map_err(|error| io_error(part, error))?;
        self.progress.lost(self.file.bytes);
        let (expected, found) = (expected.to_owned(), found.to_owned());
        Err(PullError::Checksum { path: self.file.path.clone(), expected, found })
    }

    /// All bytes in the part's file.
    fn complete(&self) -> Result<Whole, PullError> {
        let mut writer = self.resume()?;
        let from_before = writer.at > 0;
        let mut failures = 0;
        while writer.at < self.file.bytes {
            let before = writer.at;
            let Err(error) = self.append(&mut writer) else { continue };
            let PullError::Fetch(error) = error else { return Err(error) };
            let came = writer.at.saturating_sub(before);
            failures = if came >= PROGRESS_BYTES { 1 } else { failures + 1 };
            let Some(wait) = self.client.retry.wait_after(failures, &error) else {
                return Err(error.into());
            };
            self.progress.again(&self.file.path, &error, wait);
            std::thread::sleep(wait);
        }
        Ok(Whole { sha256: hex(&writer.hash.finalize()), file: writer.file, from_before })
    }

    /// Opens what is here and hashes it.
    fn resume(&self) -> Result<Writer, PullError> {
        let part = &self.place.part;
        let error = |error| io_error(part, error);
        if let Some(folder) = part.parent() {
            fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
        }
        let options =
            File::options().create(true).read(true).write(true).truncate(false).open(part);
        let mut writer = Writer { file: options.map_err(error)?, hash: Sha256::new(), at: 0 };
        if writer.file.metadata().map_err(error)?.len() > self.file.bytes {
            writer.restart().map_err(error)?;
        }
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match writer.file.read(&mut buffer).map_err(error)? {
                0 => return Ok(writer),
                read => {
                    writer.hash.update(&buffer[..read]);
                    writer.at += read as u64;
                    self.progress.here(read as u64);
                }
            }
            self.keep_on()?;
        }
    }

    /// Asks for the rest and writes it as it comes.
    fn append(&self, writer: &mut Writer) -> Result<(), PullError> {
        self.keep_on()?;
        let span = Span { from: writer.at, most: None };
        let mut piece = self.client.piece(&self.file.url, span)?;
        let expected = self.file.bytes;
        if let Some(found) = piece.whole_bytes.filter(|found| *found != expected) {
            return Err(PullError::Length { url: piece.url, expected, found });
        }
        let error = |error| io_error(&self.place.part, error);
        if piece.from != writer.at {
            // A server without ranges sends all of it.
            self.progress.lost(writer.at);
            writer.restart().map_err(error)?;
        }
        let mut buffer = vec![0; BUFFER_BYTES];
        while writer.at < expected {
            self.keep_on()?;
            let most = (expected - writer.at).min(BUFFER_BYTES as u64) as usize;
            match piece.read(&mut buffer[..most])? {
                0 => return Err(FetchError::Early { url: piece.url, bytes: writer.at }.into()),
                read => {
                    writer.write(&buffer[..read]).map_err(error)?;
                    self.progress.came(read as u64);
                }
            }
        }
        Ok(())
    }

    fn keep_on(&self) -> Result<(), PullError> {
        if self.stop.is_set() { Err(self.stopped()) } else { Ok(()) }
    }

    fn stopped(&self) -> PullError {
        PullError::Stopped { path: self.file.path.clone() }
    }
}

/// All bytes, not yet named.
struct Whole {
    sha256: String,
    file: File,
    /// Whether some were here before this process came.
    from_before: bool,
}

/// Bytes so far: their file, hash and number.
struct Writer {
    file: File,
    hash: Sha256,
    at: u64,
}

impl Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.hash, self.at) = (Sha256::new(), 0);
        Ok(())
    }
}

fn io_error(path: &Path, source: io::Error) -> PullError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => PullError::Full { path },
        _ => PullError::Io { path, source },
    }
}
