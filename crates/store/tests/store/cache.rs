//! The page cache stays out: after reading a file, none of its pages are resident.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;

use motley_store::{FileMode, ReaderOptions};

use crate::world::*;

const FILE_BYTES: u64 = 8 << 20;

/// Pages of the file in the page cache.
fn resident_pages(path: &Path) -> usize {
    let file = File::open(path).expect("our own file");
    let len = FILE_BYTES as usize;
    let mut pages = vec![0u8; len.div_ceil(rustix::param::page_size())];
    // SAFETY: a fresh shared mapping of the file that is only asked about, never read;
    // `pages` has one byte per page of it.
    unsafe {
        let view =
            libc::mmap(null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(view, libc::MAP_FAILED);
        assert_eq!(libc::mincore(view, len, pages.as_mut_ptr()), 0);
        libc::munmap(view, len);
    }
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

#[test]
fn reads_leave_no_page_behind() {
    for mode in [FileMode::DirectIfPossible, FileMode::Buffered] {
        for backend in backends() {
            let file = KnownFile::new(FILE_BYTES);
            let view = File::open(&file.path).expect("our own file");
            rustix::fs::fadvise(&view, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
            if resident_pages(&file.path) > 0 {
                return eprintln!("skipped: this filesystem lives in the page cache");
            }
            let reader = open(file.files(mode), ReaderOptions::new(backend));
            let arena = arena(600_000, 13);
            let wanted = |n: u64| range(32 + n * 600_000, 600_000);
            reader.submit((0..13).map(|n| demand(n, vec![piece(&arena, wanted(n), 0)])));
            for completion in drain(&reader) {
                assert_holds(&completion, &[wanted(completion.tag.0)]);
            }
            assert_eq!(resident_pages(&file.path), 0, "{mode:?} {backend:?}");
        }
    }
}
