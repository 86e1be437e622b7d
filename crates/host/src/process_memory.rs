//! What one process holds in memory: this one, or another by its number. Not what its control
//! group or the machine holds.

use std::path::Path;

use crate::files;

/// Resident memory of a process by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Heap, stacks, arenas.
    pub anon_bytes: u64,
    /// Mapped file pages (a mapped model among them), which the kernel can drop.
    pub file_bytes: u64,
    pub shared_bytes: u64,
    pub swap_bytes: u64,
    /// Highest resident size so far, all kinds.
    pub peak_bytes: u64,
}

impl ProcessMemory {
    /// All kinds in memory together, as `VmRSS`.
    pub fn resident_bytes(&self) -> u64 {
        self.anon_bytes + self.file_bytes + self.shared_bytes
    }
}

/// Of this process, from `/proc/self/status`, which costs microseconds; `smaps_rollup` walks
/// every page table. The kernel counts per thread and may be off by a few hundred kB.
pub fn of_self(root: &Path) -> Option<ProcessMemory> {
    parse(&files::text(root, "proc/self/status")?)
}

/// Of process `pid`; `None` when there is none.
pub fn of_process(root: &Path, pid: u32) -> Option<ProcessMemory> {
    parse(&files::text(root, &format!("proc/{pid}/status"))?)
}

fn parse(status: &str) -> Option<ProcessMemory> {
    let bytes = |key| files::keyed_kb(status, key);
    Some(ProcessMemory {
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
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn kinds_are_kept_apart() {
        let status = "VmHWM:\t 9 kB\nVmRSS:\t 7 kB\nRssAnon:\t 4 kB\nRssFile:\t 2 kB\n\
                      RssShmem:\t 1 kB\nVmSwap:\t 0 kB\n";
        let tree = Tree::new(&[("proc/self/status", status), ("proc/71/status", "VmRSS: 7 kB\n")]);
        let found = of_self(tree.root()).unwrap();
        assert_eq!((found.anon_bytes, found.file_bytes), (4096, 2048));
        assert_eq!((found.shared_bytes, found.swap_bytes, found.peak_bytes), (1024, 0, 9216));
        assert_eq!(found.resident_bytes(), 7 << 10);
        assert_eq!((of_process(tree.root(), 71), of_process(tree.root(), 72)), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_grows_with_what_it_takes() {
        let root = Path::new("/");
        let before = of_self(root).unwrap().anon_bytes;
        let taken = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = of_process(root, std::process::id()).unwrap().anon_bytes;
        assert!(after - before > 60 << 20, "{before} {after} {}", taken.len());
    }
}
