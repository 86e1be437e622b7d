//! How much memory there is, and how much of it this process may use. Not what it should use.

use std::path::{Path, PathBuf};

use crate::system::SystemMemory;
use crate::{cgroup, files, system};

/// Memory of the machine and the limits on this process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryState {
    /// What the machine has (`MemTotal`).
    pub total_bytes: u64,
    /// What could be taken without swapping, by the kernel's estimate (`MemAvailable`).
    pub available_bytes: u64,
    /// The lowest limit of a control group (v1 or v2) on the path of this process's group.
    pub limit_bytes: Option<u64>,
    /// What the group of that limit holds, without page cache the kernel can drop; of the
    /// whole machine when there is no limit.
    pub used_bytes: u64,
    /// What this process may still take: the available memory, or less where any group on
    /// the path has less room.
    pub room_bytes: u64,
}

/// Why memory could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// `/proc/meminfo` is absent or has no `MemTotal` and `MemAvailable`.
    #[error("{}: no MemTotal and MemAvailable to read", path.display())]
    Meminfo { path: PathBuf },
}

/// Reads `/proc/meminfo` and the control groups below `root`.
pub fn read(root: &Path) -> Result<MemoryState, MemoryError> {
    if let Some(SystemMemory { total_bytes, available_bytes }) = system::memory() {
        return Ok(MemoryState::without_limits(total_bytes, available_bytes));
    }
    let meminfo = files::text(root, "proc/meminfo").unwrap_or_default();
    let bytes = |key| files::keyed_kb(&meminfo, key);
    let (Some(total_bytes), Some(available_bytes)) = (bytes("MemTotal"), bytes("MemAvailable"))
    else {
        return Err(MemoryError::Meminfo { path: root.join("proc/meminfo") });
    };
    let groups = cgroup::memory_groups(root);
    let limits = groups.map(|groups| groups.limits(total_bytes)).unwrap_or_default();
    let mut state = MemoryState::without_limits(total_bytes, available_bytes);
    if let Some(tightest) = limits.iter().min_by_key(|limit| limit.limit_bytes) {
        state.limit_bytes = Some(tightest.limit_bytes);
        state.used_bytes = tightest.used_bytes;
    }
    let room = limits.iter().map(cgroup::Limit::room_bytes).min();
    state.room_bytes = room.unwrap_or(u64::MAX).min(available_bytes);
    Ok(state)
}

impl MemoryState {
    fn without_limits(total_bytes: u64, available_bytes: u64) -> Self {
        Self {
            total_bytes,
            available_bytes,
            limit_bytes: None,
            used_bytes: total_bytes.saturating_sub(available_bytes),
            room_bytes: available_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 6 kB\n");

    #[test]
    fn a_machine_without_groups_has_its_available_memory() {
        let state = read(Tree::new(&[MEMINFO]).root()).unwrap();
        let (total_bytes, available_bytes) = (8 << 10, 6 << 10);
        let expected = MemoryState {
            total_bytes,
            available_bytes,
            limit_bytes: None,
            used_bytes: 2 << 10,
            room_bytes: available_bytes,
        };
        assert_eq!(state, expected);
    }

    #[test]
    fn the_tightest_limit_is_named_and_the_least_room_counts() {
        let tree = Tree::new(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/a/memory.max", "5000\n"),
            ("sys/fs/cgroup/a/memory.current", "4500\n"),
            ("sys/fs/cgroup/a/b/memory.max", "4000\n"),
            ("sys/fs/cgroup/a/b/memory.current", "1000\n"),
            ("sys/fs/cgroup/a/b/memory.stat", "active_file 200\n"),
        ]);
        let state = read(tree.root()).unwrap();
        assert_eq!(state.limit_bytes, Some(4000));
        assert_eq!(state.used_bytes, 800);
        assert_eq!(state.room_bytes, 500, "the parent has less room than the own group");
    }

    #[test]
    fn the_error_names_the_file() {
        let error = read(Tree::new(&[("proc/meminfo", "MemTotal: 8 kB\n")]).root()).unwrap_err();
        assert!(error.to_string().contains("proc/meminfo: no MemTotal"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_reads() {
        let state = read(Path::new("/")).unwrap();
        assert!(state.room_bytes <= state.available_bytes);
        assert!(state.available_bytes <= state.total_bytes && state.total_bytes > 1 << 26);
    }
}
