//! glibc, told when to give memory back.

/// From this size on a block has pages of its own, which freeing gives back. Left alone, glibc
/// raises the limit to 32 MiB once such a block was freed, and every thread that ever tokenised a
/// prompt of a megabyte keeps 8 to 15 MB. What sampling allocates for each token is below it: 12
/// bytes for each entry of a vocabulary, 3 MB of 262,144.
const OWN_PAGES_BYTES: libc::c_int = 4 << 20;

/// Lets large blocks go back to the system when they are freed, for the whole process.
pub(crate) fn return_large_blocks() {
    // SAFETY: takes the allocator's own lock; no memory in use is touched. The value is one glibc
    // takes: below its limit of 32 MiB.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_BYTES) };
}

/// Gives back what the allocator keeps; takes milliseconds.
pub fn give_back_freed() {
    // SAFETY: takes the allocator's own locks; no memory in use is touched.
    unsafe { libc::malloc_trim(0) };
}
