//! What the processor and its cores are called. What kernels use of it is
//! `ggml`'s to say.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{files, system};

/// The processor as people know it: `model name` on x86, the board or the cores on ARM.
pub fn read(root: &Path) -> Option<String> {
    if let Some(name) = system::cpu_name() {
        return Some(name);
    }
    let cpuinfo = files::text(root, "proc/cpuinfo")?;
    let given = field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Hardware"));
    let board = || {
        let model = files::text(root, "proc/device-tree/model")?;
        Some(model.trim_end_matches('\0').trim().to_owned()).filter(|name| !name.is_empty())
    };
    given.or_else(board).or_else(|| {
        let mut names: Vec<String> = by_cpu(root).into_values().collect();
        names.dedup();
        (!names.is_empty()).then(|| names.join(" + "))
    })
}

/// Whether the kernel runs below a hypervisor, where it says so.
pub fn is_virtual(root: &Path) -> bool {
    has_flag(root, "hypervisor")
}

/// Whether `/proc/cpuinfo` of an x86 processor lists `flag` (`avx2`).
pub fn has_flag(root: &Path, flag: &str) -> bool {
    let cpuinfo = files::text(root, "proc/cpuinfo").unwrap_or_default();
    let flags = field(&cpuinfo, "flags").unwrap_or_default();
    flags.split(' ').any(|listed| listed == flag)
}

/// ARM core names by logical CPU, from the part numbers of `/proc/cpuinfo`.
pub(crate) fn by_cpu(root: &Path) -> BTreeMap<usize, String> {
    let cpuinfo = files::text(root, "proc/cpuinfo").unwrap_or_default();
    let entry = |block: &str| {
        let id = field(block, "processor")?.parse().ok()?;
        let number = |key| u32::from_str_radix(field(block, key)?.strip_prefix("0x")?, 16).ok();
        Some((id, core_name(number("CPU implementer")?, number("CPU part")?)?.to_owned()))
    };
    cpuinfo.split("\n\n").filter_map(entry).collect()
}

fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// Implementer 0x41 is Arm, 0x51 Qualcomm, 0x61 Apple; parts as `lscpu` of util-linux lists them.
fn core_name(implementer: u32, part: u32) -> Option<&'static str> {
    let name = match (implementer, part) {
        (0x41, 0xd03) => "A53",
        (0x41, 0xd05) => "A55",
        (0x41, 0xd08) => "A72",
        (0x41, 0xd09) => "A73",
        (0x41, 0xd0a) => "A75",
        (0x41, 0xd0b) => "A76",
        (0x41, 0xd0c) => "Neoverse N1",
        (0x41, 0xd0d) => "A77",
        (0x41, 0xd40) => "Neoverse V1",
        (0x41, 0xd41) => "A78",
        (0x41, 0xd44) => "X1",
        (0x41, 0xd46) => "A510",
        (0x41, 0xd47) => "A710",
        (0x41, 0xd48) => "X2",
        (0x41, 0xd49) => "Neoverse N2",
        (0x41, 0xd4d) => "A715",
        (0x41, 0xd4e) => "X3",
        (0x41, 0xd4f) => "Neoverse V2",
        (0x41, 0xd80) => "A520",
        (0x41, 0xd81) => "A720",
        (0x41, 0xd82) => "X4",
        (0x41, 0xd85) => "X925",
        (0x41, 0xd87) => "A725",
        (0x51, 0x001 | 0x002) => "Oryon",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn arm_cores_are_named_by_their_parts() {
        let cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\n\
                       processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0d\n\n\
                       processor\t: 2\nCPU implementer\t: 0x99\nCPU part\t: 0x1\n";
        let tree = Tree::new(&[("proc/cpuinfo", cpuinfo)]);
        assert_eq!(by_cpu(tree.root()), BTreeMap::from([(0, "A55".into()), (1, "A77".into())]));
        assert_eq!(read(tree.root()).unwrap(), "A55 + A77");
    }

    #[test]
    fn x86_tells_its_name() {
        let text = "processor\t: 0\nmodel name\t: Some(R) CPU\nflags\t\t: fpu hypervisor\n";
        let tree = Tree::new(&[("proc/cpuinfo", text)]);
        assert_eq!(read(tree.root()).unwrap(), "Some(R) CPU");
        assert!(is_virtual(tree.root()) && !is_virtual(Tree::new(&[]).root()));
        assert_eq!(read(Tree::new(&[]).root()), None);
    }
}
