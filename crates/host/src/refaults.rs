//! Refaults: pages dropped from the page cache (or swapped) and soon wanted again. A rising
//! count says that the working set does not fit; the count itself says nothing.

use std::path::Path;

use crate::{cgroup, files, memory};

/// Refaulted pages since start, file and anonymous: of the own control group when it (or a
/// parent) is limited, else of the machine. Only differences between two reads mean anything.
pub fn read(root: &Path) -> Option<u64> {
    let total_bytes = memory::read(root).ok()?.total_bytes;
    let stat = cgroup::memory_groups(root).and_then(|g| g.stat_if_limited(total_bytes));
    let of_group = stat.and_then(|stat| sum(&stat, "total_").or_else(|| sum(&stat, "")));
    of_group.or_else(|| sum(&files::text(root, "proc/vmstat")?, ""))
}

/// Both kinds, or the one counter of kernels before 5.9.
fn sum(text: &str, prefix: &str) -> Option<u64> {
    let count = |kind: &str| files::keyed(text, &format!("{prefix}workingset_refault{kind}"));
    match (count("_file"), count("_anon")) {
        (None, None) => count(""),
        (file, anon) => Some(file.unwrap_or(0) + anon.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 6 kB\n");
    const VMSTAT: (&str, &str) =
        ("proc/vmstat", "workingset_refault_anon 2\nworkingset_refault_file 40\n");

    #[test]
    fn of_the_machine_without_a_limit_and_of_the_group_with_one() {
        let group = [
            MEMINFO,
            VMSTAT,
            ("proc/self/cgroup", "4:memory:/x\n"),
            ("proc/self/mountinfo", "1 2 0:3 / /cg rw - cgroup cgroup rw,memory\n"),
            ("cg/x/memory.stat", "workingset_refault_file 5\ntotal_workingset_refault_file 7\n"),
            ("cg/x/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(read(Tree::new(&group).root()), Some(42));
        let mut limited = group;
        limited[5].1 = "4096\n";
        assert_eq!(read(Tree::new(&limited).root()), Some(7));
    }

    #[test]
    fn older_kernels_have_one_counter() {
        let tree = Tree::new(&[MEMINFO, ("proc/vmstat", "workingset_refault 11\n")]);
        assert_eq!(read(tree.root()), Some(11));
        assert_eq!(read(Tree::new(&[MEMINFO]).root()), None);
    }
}
