//! Linux: `O_DIRECT`, the alignment that `statx` tells, and `posix_fadvise`.

use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags};

use crate::read::disk::{ALIGNMENT_MAX_BYTES, Alignment};

/// Alignment assumed where the kernel does not say (before Linux 6.1, or by the filesystem):
/// the largest logical block of a disk in use.
const ALIGNMENT_UNKNOWN_BYTES: usize = 4096;

/// Reading ahead would fetch bytes nobody asked for.
pub(crate) fn expect_random(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
}

/// Makes the page cache drop a range, whole pages around it too.
pub(crate) fn forget(file: &File, offset: u64, len_bytes: usize) {
    let page = rustix::param::page_size() as u64;
    let start = offset - offset % page;
    let end = (offset + len_bytes as u64).next_multiple_of(page);
    let _ = rustix::fs::fadvise(file, start, NonZeroU64::new(end - start), Advice::DontNeed);
}

/// Makes it drop the whole file.
pub(crate) fn forget_all(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// The file of `buffered` once more, for direct reads; `None` where the filesystem refuses them or
/// another file lies at `path` by now.
pub(crate) fn open_direct(path: &Path, buffered: &File) -> Option<(File, Alignment)> {
    let alignment = direct_alignment(buffered)?;
    let flags = OFlags::DIRECT.bits() as i32;
    // The handle's own name: nobody can put another file there.
    let handle = PathBuf::from(format!("/proc/self/fd/{}", buffered.as_raw_fd()));
    let open = |path: &Path| OpenOptions::new().read(true).custom_flags(flags).open(path).ok();
    let file = open(&handle).or_else(|| open(path))?;
    let inode = |file: &File| file.metadata().ok().map(|found| (found.dev(), found.ino()));
    (inode(&file)? == inode(buffered)?).then_some((file, alignment))
}

/// Alignment of memory and of offsets; `None` if the filesystem says that it has no direct reads.
fn direct_alignment(file: &File) -> Option<Alignment> {
    let unknown = Alignment { memory: ALIGNMENT_UNKNOWN_BYTES, offset: ALIGNMENT_UNKNOWN_BYTES };
    let wanted = StatxFlags::DIOALIGN;
    let Ok(found) = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted) else {
        return Some(unknown);
    };
    if found.stx_mask & wanted.bits() == 0 {
        return Some(unknown);
    }
    let (memory, offset) = (found.stx_dio_mem_align as usize, found.stx_dio_offset_align as usize);
    let usable = |a: usize| a.is_power_of_two() && a <= ALIGNMENT_MAX_BYTES;
    (usable(memory) && usable(offset)).then_some(Alignment { memory, offset })
}
