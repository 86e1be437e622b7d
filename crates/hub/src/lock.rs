//! One download of a file at a time, among all processes: the lock file the hub's own tools use.
//! The system gives a lock back when its process ends, however it ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Between two looks at a lock that somebody else has.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock, however long that takes; `waits` is called once if somebody has it.
    /// Gives up, with `None`, when `stop` says so.
    pub(crate) fn take(
        path: &Path,
        waits: impl FnOnce(),
        stop: impl Fn() -> bool,
    ) -> io::Result<Option<Self>> {
        let file = open(path)?;
        let mut waits = Some(waits);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file })),
                Err(TryLockError::WouldBlock) => {}
                // A file system without locks: as without another process.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Some(Self { _file: file }));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if stop() {
                return Ok(None);
            }
            if let Some(waits) = waits.take() {
                waits();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The lock, if nobody has it.
    pub(crate) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        Self::take(path, || {}, || true)
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    File::options().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b.lock");
        let held = Lock::try_take(&path).unwrap();
        assert!(held.is_some());
        assert!(Lock::try_take(&path).unwrap().is_none());
        drop(held);
        assert!(Lock::try_take(&path).unwrap().is_some());
    }
}
