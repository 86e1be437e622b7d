//! Anonymous memory from the operating system, given back page by page. Knows nothing of
//! slots; the one place that maps and unmaps.

use std::io;
use std::ptr::NonNull;

mod system;

/// Whether the system may back a mapping with 2 MiB pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HugePages {
    /// Ordinary pages: memory is used and given back exactly per slot.
    Refuse,
    /// Ask for huge pages: fewer faults and TLB misses, but memory comes in steps of 2 MiB.
    #[default]
    Ask,
}

/// One private anonymous mapping, zero until written, not counted before that.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len_bytes: usize,
    huge: HugePages,
}

// SAFETY: a mapping is plain memory of the process; who may touch which part of it is decided
// by the leases of its owner, not by the thread.
unsafe impl Send for Mapping {}
// SAFETY: as above; `Mapping` itself hands out only an address.
unsafe impl Sync for Mapping {}

/// Bytes of one page of this system.
pub(crate) fn page_bytes() -> usize {
    system::page_bytes()
}

impl Mapping {
    /// Reserves `len_bytes` of page-aligned address space; pages come when first written.
    pub(crate) fn reserve(len_bytes: usize, huge: HugePages) -> io::Result<Self> {
        let len_bytes = len_bytes.max(1);
        let mapping = Self { base: system::map(len_bytes)?, len_bytes, huge };
        mapping.back_with(0, len_bytes, huge);
        Ok(mapping)
    }

    /// First byte, aligned to a page.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Gives the pages of a range (whole pages) back; they read as zero afterwards, or as what they
    /// held where the system says so late. The range
    /// gets no huge pages until [`Mapping::restore`], or the system's own collapsing of small
    /// pages would bring the memory back unasked.
    ///
    /// # Safety
    /// The range lies in the mapping and nobody reads or writes it during the call or relies on
    /// what it held.
    pub(crate) unsafe fn discard(&self, offset: usize, len_bytes: usize) {
        debug_assert!(offset + len_bytes <= self.len_bytes);
        if self.huge == HugePages::Ask {
            self.back_with(offset, len_bytes, HugePages::Refuse);
        }
        // SAFETY: inside the mapping, and unused, as the caller vouches.
        unsafe { system::discard(self.base.as_ptr().add(offset), len_bytes) };
    }

    /// Lets a range that was discarded have huge pages again.
    pub(crate) fn restore(&self, offset: usize, len_bytes: usize) {
        if self.huge == HugePages::Ask {
            self.back_with(offset, len_bytes, self.huge);
        }
    }

    fn back_with(&self, offset: usize, len_bytes: usize, huge: HugePages) {
        debug_assert!(offset + len_bytes <= self.len_bytes);
        // SAFETY: inside the mapping.
        unsafe {
            let start = self.base.as_ptr().add(offset);
            system::allow_huge_pages(start, len_bytes, huge == HugePages::Ask);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that was mapped; the owner lives as long as its leases.
        unsafe { system::unmap(self.base, self.len_bytes) };
    }
}
