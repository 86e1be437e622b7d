//! Linux: `sched_getcpu` and `mbind`.

use crate::system::memory::page_bytes;
use std::ffi::c_void;
use std::io;

/// The CPU this thread runs on now.
pub(crate) fn current_cpu() -> Option<usize> {
    // SAFETY: takes nothing, changes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Has the system take the whole pages of `bytes` of this process's memory from node `id` where it
/// can, from the first touch on.
pub(crate) fn prefer(id: u32, start: *mut c_void, bytes: usize) -> io::Result<()> {
    const WORDS: usize = 16;
    let bits = libc::c_ulong::BITS as usize;
    let mut mask = [0 as libc::c_ulong; WORDS];
    let word = mask.get_mut(id as usize / bits).ok_or(io::ErrorKind::InvalidInput)?;
    *word |= 1 << (id as usize % bits);
    let page = page_bytes();
    let skipped = start.addr().wrapping_neg() % page;
    let bytes = bytes.saturating_sub(skipped) / page * page;
    let start = start.wrapping_byte_add(skipped);
    let (mode, most, flags) = (libc::MPOL_PREFERRED as usize, WORDS * bits + 1, 0_usize);
    // SAFETY: a policy for whole pages of this process's memory, which changes no byte, whoever
    // owns it; the mask outlives the call and has the bits it is said to have (the kernel counts
    // one less).
    let failed =
        unsafe { libc::syscall(libc::SYS_mbind, start, bytes, mode, &raw const mask, most, flags) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
