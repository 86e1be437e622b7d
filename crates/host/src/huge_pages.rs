//! Huge pages: whether large memory can be mapped in big pieces. Asks for none.

use std::path::Path;

use crate::files;

/// The kernel's setting for transparent huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transparent {
    /// For every large mapping.
    Always,
    /// For mappings that ask (Motley's arenas do).
    OnRequest,
    /// Never.
    Never,
}

/// What there is of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HugePages {
    /// `None` when the kernel has none built in.
    pub transparent: Option<Transparent>,
    /// Pages set aside beforehand (`vm.nr_hugepages`).
    pub reserved: u64,
    pub page_bytes: u64,
}

/// Reads the setting and `/proc/meminfo`.
pub fn read(root: &Path) -> Option<HugePages> {
    let meminfo = files::text(root, "proc/meminfo")?;
    let setting = files::text(root, "sys/kernel/mm/transparent_hugepage/enabled");
    Some(HugePages {
        transparent: setting.and_then(|text| transparent(&text)),
        reserved: files::keyed(&meminfo, "HugePages_Total").unwrap_or(0),
        page_bytes: files::keyed_kb(&meminfo, "Hugepagesize").unwrap_or(0),
    })
}

/// `always [madvise] never`: the chosen one is in brackets.
fn transparent(text: &str) -> Option<Transparent> {
    let chosen = text.split_once('[')?.1.split_once(']')?.0;
    match chosen {
        "always" => Some(Transparent::Always),
        "madvise" => Some(Transparent::OnRequest),
        "never" => Some(Transparent::Never),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn the_setting_in_brackets_counts() {
        let tree = Tree::new(&[
            ("proc/meminfo", "HugePages_Total: 4\nHugepagesize: 2048 kB\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ]);
        let expected = HugePages {
            transparent: Some(Transparent::OnRequest),
            reserved: 4,
            page_bytes: 2 << 20,
        };
        assert_eq!(read(tree.root()), Some(expected));
        assert_eq!(transparent("[always] never"), Some(Transparent::Always));
        assert_eq!(transparent("always [never]"), Some(Transparent::Never));
        assert_eq!(transparent("what"), None);
    }
}
