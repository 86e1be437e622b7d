//! Beginnings of prompts as files: one per segment, named by its key. Which are written, read and
//! erased says `motley_sched::batch`; this has the bytes.
//!
//! * `file`: a segment as a file, and whether what is read is what was written.
//! * `identity`: the key that stands for a model and the shape of its cache.
//!
//! Writing is left to a thread, so that answers go on; a segment that is wanted before it is there,
//! or after somebody has erased it, is computed again. Two processes may share a folder.

mod file;
mod identity;

pub(super) use identity::root_of;

use file::Header;
use motley_sched::batch::{Segment, SegmentKey};
use motley_trace::rights::make_private_folder;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Segments that are in memory at once: the one that is written, and the next.
pub(super) const IN_MEMORY: u32 = 2;
/// Most files that are looked at; more are erased.
const FILES_MAX: usize = 1 << 18;
/// Nobody writes a segment for so long: what is unfinished then was left behind.
const UNFINISHED_AFTER: Duration = Duration::from_secs(3600);
/// End of a segment's name.
const ENDING: &str = "segment";

/// A folder for beginnings of prompts.
#[derive(Debug, Clone, PartialEq)]
pub struct PrefixCache {
    /// Made where it is missing; segments in it tell what prompts said.
    pub folder: PathBuf,
    /// Most bytes of all files, of any model.
    pub most_bytes: u64,
    /// Bytes the disk reads in a second, until that was measured here.
    pub read_bytes_per_second: f64,
}

impl PrefixCache {
    /// Makes the folder, for its owner alone, where it is missing.
    pub fn make_folder(folder: &Path) -> io::Result<()> {
        make_private_folder(folder)
    }
}

/// The files of a folder.
#[derive(Debug)]
pub(super) struct SegmentFiles {
    folder: PathBuf,
    root: SegmentKey,
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

enum Job {
    Write { header: Header, state: Vec<u8> },
    Erase(SegmentKey),
}

impl SegmentFiles {
    /// Opens a folder, or makes it, and says what is in it: most recently used last, of any model.
    /// What cannot be a segment is erased.
    pub(super) fn open(folder: &Path, root: SegmentKey) -> io::Result<(Self, Vec<Segment>)> {
        PrefixCache::make_folder(folder)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            match header_of(&path) {
                Ok(Some((header, used))) if found.len() < FILES_MAX => found.push((used, header)),
                Ok(None) if !is_left_behind(&path) => {}
                _ => remove(&path),
            }
        }
        found.sort_unstable_by_key(|(used, header)| (*used, header.first, header.key));
        let segments = found.iter().map(|(_, header)| header.segment()).collect();
        let (jobs, queue) = sync_channel(0);
        let written = folder.to_owned();
        #[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
        let writer = std::thread::Builder::new().name("segments".into()).spawn(move || {
            let mut failed = false;
            queue.into_iter().for_each(|job| carry_out(&written, job, &mut failed));
        })?;
        let files =
            Self { folder: folder.to_owned(), root, jobs: Some(jobs), writer: Some(writer) };
        Ok((files, segments))
    }

    /// Has a segment written; its bytes as a file. Waits for the one before it.
    pub(super) fn write(&self, segment: &Segment, state: Vec<u8>) -> u64 {
        let header = Header::new(self.root, segment, state.len() as u64);
        let bytes = header.file_bytes();
        self.hand_over(Job::Write { header, state });
        bytes
    }

    /// What llama.cpp gave of a segment, if it is there as it was written.
    #[allow(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub(super) fn read(&self, segment: &Segment) -> io::Result<Vec<u8>> {
        let path = path_of(&self.folder, segment.key);
        let mut file = File::open(&path)?;
        let state = file::read(&mut file, self.root, segment)?;
        if let Err(error) = file.set_modified(SystemTime::now()) {
            tracing::debug!("{}: its last use is not kept: {error}", path.display());
        }
        Ok(state)
    }

    /// Has a segment erased.
    pub(super) fn erase(&self, key: SegmentKey) {
        self.hand_over(Job::Erase(key));
    }

    fn hand_over(&self, job: Job) {
        if self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_err()) {
            tracing::error!("the thread that writes to {} has ended", self.folder.display());
        }
    }
}

impl Drop for SegmentFiles {
    /// What was handed over is written first.
    fn drop(&mut self) {
        self.jobs = None;
        if self.writer.take().is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the thread that writes to {} has panicked", self.folder.display());
        }
    }
}

/// Says once that a folder cannot be written to, and once that it can again.
fn carry_out(folder: &Path, job: Job, failed: &mut bool) {
    match job {
        Job::Erase(key) => remove(&path_of(folder, key)),
        Job::Write { header, state } => {
            let written = file::write(&path_of(folder, header.key), &header, &state);
            match &written {
                Err(error) if !*failed => {
                    let folder = folder.display();
                    tracing::warn!("beginnings of prompts are not kept in {folder}: {error}");
                }
                Ok(()) if *failed => {
                    tracing::info!("beginnings of prompts are kept in {} again", folder.display());
                }
                _ => {}
            }
            *failed = written.is_err();
        }
    }
}

fn path_of(folder: &Path, key: SegmentKey) -> PathBuf {
    let name: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
    folder.join(name).with_extension(ENDING)
}

/// What a file says it holds, and when it was last of use; `None` for files of other names.
fn header_of(path: &Path) -> io::Result<Option<(Header, SystemTime)>> {
    if path.extension().is_none_or(|ending| ending != ENDING) {
        return Ok(None);
    }
    let mut file = File::open(path)?;
    let facts = file.metadata()?;
    let header = file::header(&mut file, facts.len())?;
    let folder = path.parent().unwrap_or(Path::new(""));
    if path_of(folder, header.key) != path {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Some((header, facts.modified()?)))
}

/// Whether a file was being written by a process that is gone.
fn is_left_behind(path: &Path) -> bool {
    let is_part =
        path.extension().is_some_and(|ending| ending == motley_trace::whole_file::UNFINISHED);
    let age = fs::metadata(path).and_then(|facts| facts.modified()).map(|time| time.elapsed());
    is_part && age.is_ok_and(|age| age.is_ok_and(|age| age > UNFINISHED_AFTER))
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const ROOT: SegmentKey = SegmentKey([1; 32]);

    fn segment(parent: SegmentKey, first: u32, tokens: &[i32]) -> Segment {
        let key = parent.then(tokens);
        Segment { key, parent, first, tokens: tokens.len() as u32, bytes: 0 }
    }

    #[test]
    fn what_was_written_is_found_again_and_read_by_its_own_model_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("prefixes");
        let (files, found) = SegmentFiles::open(&folder, ROOT).unwrap();
        assert_eq!(found, []);
        let first = segment(ROOT, 0, &[1, 2, 3]);
        let second = segment(first.key, 3, &[4]);
        let bytes = files.write(&first, vec![7; 1000]);
        files.write(&second, vec![8; 10]);
        drop(files);

        let (files, found) = SegmentFiles::open(&folder, ROOT).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Segment { bytes, ..first });
        let rights = fs::metadata(path_of(&folder, first.key)).unwrap().permissions();
        assert_eq!(rights.mode() & 0o777, 0o600);
        assert_eq!(files.read(&found[0]).unwrap(), [7; 1000]);
        let (others, found) = SegmentFiles::open(&folder, SegmentKey([2; 32])).unwrap();
        assert_eq!(found.len(), 2, "they count, whose ever they are");
        assert!(others.read(&first).unwrap_err().to_string().contains("another model"));
        files.erase(first.key);
        drop(files);
        assert_eq!(SegmentFiles::open(&folder, ROOT).unwrap().1.len(), 1);
    }

    #[test]
    fn damage_is_found_out() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (files, _) = SegmentFiles::open(folder, ROOT).unwrap();
        let kept = segment(ROOT, 0, &[1, 2, 3]);
        files.write(&kept, vec![7; 1000]);
        drop(files);
        let path = path_of(folder, kept.key);
        let whole = fs::read(&path).unwrap();
        let (files, _) = SegmentFiles::open(folder, ROOT).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, &damaged).unwrap();
            assert!(files.read(&kept).is_err(), "byte {at}");
        }
        for length in [0, 1, 100, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(files.read(&kept).is_err(), "{length} bytes");
        }
        let (_, found) = SegmentFiles::open(folder, ROOT).unwrap();
        assert_eq!((found.len(), path.exists()), (0, false), "what is no segment is erased");
    }
}
