//! What this process, or another, holds in memory. Not what its group or the machine holds.

use std::path::Path;

use crate::files;

/// Resident memory of a process by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfMemory {
    /// Heap, stacks, arenas.
    pub anon_bytes: u64,
    /// Mapped file pages (a mapped model among them), which the kernel can drop.
    pub file_bytes: u64,
    /// Shared memory.
    pub shared_bytes: u64,
    /// Swapped out.
    pub swap_bytes: u64,
    /// Highest resident size so far, all kinds.
    pub peak_bytes: u64,
}

/// From `/proc/self/status`, which costs microseconds; `smaps_rollup` walks every page table.
/// The kernel counts per thread and may be off by a few hundred kB.
pub fn read(root: &Path) -> Option<SelfMemory> {
    of_status(&files::text(root, "proc/self/status")?)
}

/// The same of another process; `None` when it has ended.
pub fn of_process(root: &Path, id: u32) -> Option<SelfMemory> {
    of_status(&files::text(root, &format!("proc/{id}/status"))?)
}

impl SelfMemory {
    /// All that is resident, of every kind.
    pub fn resident_bytes(&self) -> u64 {
        self.anon_bytes + self.file_bytes + self.shared_bytes
    }
}

fn of_status(status: &str) -> Option<SelfMemory> {
    let bytes = |key| files::keyed_kb(status, key);
    Some(SelfMemory {
        anon_bytes: bytes("RssAnon")?,
        file_bytes: bytes("RssFile")?,
        shared_bytes: bytes("RssShmem")?,
        swap_bytes: bytes("VmSwap").unwrap_or(0),
        peak_bytes: bytes("VmHWM").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::Tree;

    #[test]
    fn kinds_are_told_apart() {
        let status = "VmHWM:\t 9 kB\nVmRSS:\t 7 kB\nRssAnon:\t 4 kB\nRssFile:\t 2 kB\n\
                      RssShmem:\t 1 kB\nVmSwap:\t 0 kB\n";
        let found = read(Tree::new(&[("proc/self/status", status)]).root()).unwrap();
        assert_eq!((found.anon_bytes, found.file_bytes), (4096, 2048));
        assert_eq!((found.shared_bytes, found.swap_bytes, found.peak_bytes), (1024, 0, 9216));
        assert_eq!(found.resident_bytes(), 7 << 10);
        let other = Tree::new(&[("proc/12/status", status)]);
        assert_eq!(of_process(other.root(), 12), Some(found));
        assert_eq!(of_process(other.root(), 13), None);
        assert_eq!(read(Tree::new(&[("proc/self/status", "VmRSS: 7 kB\n")]).root()), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_grows_with_what_it_takes() {
        let before = read(Path::new("/")).unwrap().anon_bytes;
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = read(Path::new("/")).unwrap().anon_bytes;
        assert!(after - before > 60 << 20, "{before} {after} {}", taken.len());
    }
}
