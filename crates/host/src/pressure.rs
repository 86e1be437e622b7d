//! Pressure stall information: how long tasks waited for memory or for a core. Not how much
//! there is of either.

use std::path::Path;

use crate::{cgroup, files};

/// Waiting for memory: `some` while at least one task waited, `full` while all did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryPressure {
    /// Percent of the last 10 s with some task waiting.
    pub some_avg10: f64,
    /// Percent of the last 10 s with all tasks waiting.
    pub full_avg10: f64,
    /// Time with some task waiting since start.
    pub some_total_us: u64,
    /// Time with all tasks waiting since start.
    pub full_total_us: u64,
}

/// The own control group's pressure where there is one, else the machine's; `None` when the
/// kernel keeps none (built without PSI, or started with `psi=0`).
pub fn read(root: &Path) -> Option<MemoryPressure> {
    let own = cgroup::unified_dirs(root).into_iter().next();
    let of_group = own.and_then(|dir| files::read(&dir.join("memory.pressure")));
    let of_machine = || parse(&files::text(root, "proc/pressure/memory")?);
    of_group.and_then(|text| parse(&text)).or_else(of_machine)
}

/// Time since start in which some task waited for a core, in the own control group where that
/// reports it, else on the machine; `None` when the kernel keeps no account.
pub fn cpu_some_total_us(root: &Path) -> Option<u64> {
    let some = |text: String| {
        let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
        field(line, "total")
    };
    let own = cgroup::unified_dirs(root).into_iter().next();
    let of_group = own.and_then(|dir| files::read(&dir.join("cpu.pressure")));
    of_group.and_then(some).or_else(|| files::text(root, "proc/pressure/cpu").and_then(some))
}

/// Lines of `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
fn parse(text: &str) -> Option<MemoryPressure> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let (some, full) = (line("some ")?, line("full ")?);
    Some(MemoryPressure {
        some_avg10: field(some, "avg10")?,
        full_avg10: field(full, "avg10")?,
        some_total_us: field(some, "total")?,
        full_total_us: field(full, "total")?,
    })
}

fn field<T: std::str::FromStr>(line: &str, key: &str) -> Option<T> {
    let pairs = line.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| *name == key)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    const MACHINE: &str = "some avg10=1.50 avg60=0.00 avg300=0.00 total=27590986\n\
                           full avg10=0.25 avg60=0.00 avg300=0.00 total=24339485\n";
    const GROUP: &str = "some avg10=9.00 avg60=0.00 avg300=0.00 total=4\n\
                         full avg10=8.00 avg60=0.00 avg300=0.00 total=3\n";
    const MOUNT: (&str, &str) =
        ("proc/self/mountinfo", "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n");

    #[test]
    fn waiting_for_a_core_needs_no_full_line() {
        let text = "some avg10=40.19 avg60=43.45 avg300=74.62 total=8362977241\n";
        let tree = Tree::new(&[("proc/pressure/cpu", text)]);
        assert_eq!(cpu_some_total_us(tree.root()), Some(8_362_977_241));
        assert_eq!(cpu_some_total_us(Tree::new(&[("proc/pressure/cpu", "x")]).root()), None);
    }

    #[test]
    fn the_own_group_comes_before_the_machine() {
        let machine = ("proc/pressure/memory", MACHINE);
        let own = ("proc/self/cgroup", "4:memory:/x\n0::/me\n");
        let group = ("cg/unified/me/memory.pressure", GROUP);
        let expected = MemoryPressure {
            some_avg10: 1.5,
            full_avg10: 0.25,
            some_total_us: 27_590_986,
            full_total_us: 24_339_485,
        };
        assert_eq!(read(Tree::new(&[machine]).root()), Some(expected));
        let of_group = read(Tree::new(&[machine, own, MOUNT, group]).root()).unwrap();
        assert_eq!((of_group.some_avg10, of_group.full_total_us), (9.0, 3));
    }

    #[test]
    fn a_group_without_the_file_or_a_kernel_without_it() {
        let machine = ("proc/pressure/memory", MACHINE);
        let own = ("proc/self/cgroup", "0::/me\n");
        let empty = ("cg/unified/me/memory.pressure", "");
        assert_eq!(read(Tree::new(&[machine, own, MOUNT, empty]).root()).unwrap().some_avg10, 1.5);
        assert_eq!(read(Tree::new(&[("proc/pressure/memory", "some x\n")]).root()), None);
        assert_eq!(read(Tree::new(&[]).root()), None);
    }
}
