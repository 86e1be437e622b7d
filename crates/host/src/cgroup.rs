//! The control groups this process is in, both versions of the interface. Reads limits and
//! counters; never moves a process or writes a limit.
//!
//! `/proc/self/cgroup` names the group, `/proc/self/mountinfo` where the hierarchy is mounted
//! and which part of it (in a container the mount begins below the real root). Limits hold
//! along the whole path, so every directory from the own group up to the mount is asked.

use std::path::{Path, PathBuf};

use crate::files;

/// Which interface a hierarchy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy per controller; `memory.limit_in_bytes`.
    V1,
    /// One hierarchy for all; `memory.max`.
    V2,
}

/// The groups that account for this process's memory, its own first, then their parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroups {
    /// Which files the directories hold.
    pub version: Version,
    /// Existing directories, from the own group up to the mount point.
    pub dirs: Vec<PathBuf>,
}

/// One group with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Most the group may hold: `memory.max` or `memory.high`, whichever is lower (above
    /// `high` the kernel slows the group down to reclaim).
    pub limit_bytes: u64,
    /// What it holds without the page cache that the kernel can drop.
    pub used_bytes: u64,
}

impl Limit {
    /// What may still be taken.
    pub fn room_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes)
    }
}

/// The groups that account for memory: v1 where the memory controller is there, else v2.
pub fn memory_groups(root: &Path) -> Option<MemoryGroups> {
    let of = |version| {
        let dirs = own_dirs(root, version)?;
        Some(MemoryGroups { version, dirs })
    };
    of(Version::V1).or_else(|| of(Version::V2))
}

/// Directories of the unified (v2) hierarchy, which carries PSI even beside v1 controllers.
pub(crate) fn unified_dirs(root: &Path) -> Vec<PathBuf> {
    own_dirs(root, Version::V2).unwrap_or_default()
}

impl MemoryGroups {
    /// Every limit along the path, own group first. `total_bytes` is the machine's memory: a
    /// limit that is not below it limits nothing (v1 writes "no limit" as a huge number).
    pub fn limits(&self, total_bytes: u64) -> Vec<Limit> {
        let limits = self.dirs.iter().filter_map(|dir| self.limit(dir));
        limits.filter(|limit| limit.limit_bytes < total_bytes).collect()
    }

    /// The nearest `memory.stat`, when any group along the path has a limit.
    pub(crate) fn stat_if_limited(&self, total_bytes: u64) -> Option<String> {
        if self.limits(total_bytes).is_empty() {
            return None;
        }
        self.dirs.iter().find_map(|dir| files::read(&dir.join("memory.stat")))
    }

    fn limit(&self, dir: &Path) -> Option<Limit> {
        let number = |name: &str| files::value::<u64>(&dir.join(name));
        let (limit_bytes, held) = match self.version {
            Version::V1 => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")),
            Version::V2 => {
                let limits = [number("memory.max"), number("memory.high")];
                (limits.into_iter().flatten().min()?, number("memory.current"))
            }
        };
        let stat = files::read(&dir.join("memory.stat")).unwrap_or_default();
        let used_bytes = held.unwrap_or(0).saturating_sub(self.droppable_bytes(&stat));
        Some(Limit { limit_bytes, used_bytes })
    }

    /// Page cache on the two file lists; what is locked or shared memory is not on them.
    fn droppable_bytes(&self, stat: &str) -> u64 {
        let keys = match self.version {
            Version::V1 => ["total_inactive_file", "total_active_file"],
            Version::V2 => ["inactive_file", "active_file"],
        };
        keys.iter().filter_map(|key| files::keyed(stat, key)).sum()
    }
}

fn own_dirs(root: &Path, version: Version) -> Option<Vec<PathBuf>> {
    let group = own_group(&files::text(root, "proc/self/cgroup")?, version)?;
    let mount = find_mount(&files::text(root, "proc/self/mountinfo")?, version)?;
    // A group outside the mounted part is seen as the mount itself.
    let inside = match mount.root.as_str() {
        "/" => group.as_str(),
        part => group.strip_prefix(part).unwrap_or("/"),
    };
    let top = root.join(mount.point.trim_start_matches('/'));
    let own = top.join(inside.trim_start_matches('/'));
    let dirs = own.ancestors().take_while(|dir| dir.starts_with(&top));
    let found: Vec<_> = dirs.filter(|dir| dir.is_dir()).map(Path::to_path_buf).collect();
    (!found.is_empty()).then_some(found)
}

/// The path in the line `id:controllers:path` of the wanted hierarchy.
fn own_group(text: &str, version: Version) -> Option<String> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let wanted = match version {
            Version::V1 => controllers.split(',').any(|name| name == "memory"),
            Version::V2 => id == "0" && controllers.is_empty(),
        };
        wanted.then(|| path.to_owned())
    })
}

struct Mount {
    /// The part of the hierarchy that is mounted.
    root: String,
    point: String,
}

/// A line of mountinfo: `id parent dev root point options [tags…] - type source options`.
fn find_mount(text: &str, version: Version) -> Option<Mount> {
    text.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<_> = left.split(' ').collect();
        let right: Vec<_> = right.split(' ').collect();
        let wanted = match version {
            Version::V1 => {
                right[0] == "cgroup" && right.get(2)?.split(',').any(|name| name == "memory")
            }
            Version::V2 => right[0] == "cgroup2",
        };
        let (root, point) = (left.get(3)?, left.get(4)?);
        wanted.then(|| Mount { root: unescape(root), point: unescape(point) })
    })
}

/// Undoes the octal escapes of mountinfo (`\040` for a space).
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => out.push(char::from(code)),
            None => out.push('\\'),
        }
        rest = if code.is_some() { &after[3..] } else { after };
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn limits_hold_along_the_path() {
        let tree = Tree::new(&[
            ("proc/self/cgroup", "0::/app/run\n"),
            ("proc/self/mountinfo", V2_MOUNT),
            ("sys/fs/cgroup/app/memory.max", "max\n"),
            ("sys/fs/cgroup/app/memory.high", "700\n"),
            ("sys/fs/cgroup/app/memory.current", "600\n"),
            ("sys/fs/cgroup/app/memory.stat", "inactive_file 300\nactive_file 50\nfile 9\n"),
            ("sys/fs/cgroup/app/run/memory.max", "900\n"),
            ("sys/fs/cgroup/app/run/memory.current", "100\n"),
        ]);
        let groups = memory_groups(tree.root()).unwrap();
        assert_eq!(groups.version, Version::V2);
        let own = Limit { limit_bytes: 900, used_bytes: 100 };
        let parent = Limit { limit_bytes: 700, used_bytes: 250 };
        assert_eq!(groups.limits(1000), [own, parent]);
        assert_eq!(groups.limits(800), [parent], "a limit above all memory limits nothing");
    }

    #[test]
    fn a_container_without_its_own_names_sees_the_mount() {
        let tree = Tree::new(&[
            ("proc/self/cgroup", "5:cpu,memory:/docker/ab\n0::/\n"),
            (
                "proc/self/mountinfo",
                "40 30 0:32 /docker/ab /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n",
            ),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "512\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file 400\ntotal_active_file 0\n",
            ),
        ]);
        let groups = memory_groups(tree.root()).unwrap();
        assert_eq!(groups.version, Version::V1);
        assert_eq!(groups.limits(1000), [Limit { limit_bytes: 512, used_bytes: 100 }]);
    }

    #[test]
    fn a_group_that_is_not_visible_falls_back_to_its_parents() {
        let tree = Tree::new(&[
            ("proc/self/cgroup", "0::/gone/deeper\n"),
            ("proc/self/mountinfo", V2_MOUNT),
            ("sys/fs/cgroup/cgroup.procs", "1\n"),
        ]);
        let groups = memory_groups(tree.root()).unwrap();
        assert_eq!(groups.dirs, [tree.root().join("sys/fs/cgroup")]);
        assert!(groups.limits(u64::MAX).is_empty());
        assert_eq!(memory_groups(Tree::new(&[]).root()), None);
    }

    #[test]
    fn escapes_of_mountinfo() {
        assert_eq!(unescape(r"/my\040disk\134x"), r"/my disk\x");
        assert_eq!(unescape(r"a\9b\"), r"a\9b\");
    }
}
