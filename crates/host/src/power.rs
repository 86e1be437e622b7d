//! Where the power comes from. Not how much of it is used; that is `energy`.

use std::path::{Path, PathBuf};

use crate::files;

/// What feeds the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerSource {
    /// Mains power, or a machine without any battery.
    Mains,
    /// A battery that is being emptied.
    Battery {
        /// Charge left, 0 to 100, where known.
        percent: Option<u32>,
    },
}

/// Reads `/sys/class/power_supply`; a machine that reports nothing is on mains power.
pub fn read(root: &Path) -> PowerSource {
    let battery = batteries(root).into_iter().find(|dir| is_discharging(dir));
    match battery {
        Some(dir) => PowerSource::Battery { percent: files::value(&dir.join("capacity")) },
        None => PowerSource::Mains,
    }
}

/// Folders of the batteries that feed the machine (not those of a mouse), by name.
pub(crate) fn batteries(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("sys/class/power_supply"));
    let is_battery = |dir: &PathBuf| {
        let says = |name: &str, what: &str| {
            files::read(&dir.join(name)).is_some_and(|text| text.trim() == what)
        };
        says("type", "Battery") && !says("scope", "Device")
    };
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(is_battery)
        .collect();
    found.sort();
    found
}

pub(crate) fn is_discharging(battery: &Path) -> bool {
    files::read(&battery.join("status")).is_some_and(|text| text.trim() == "Discharging")
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn a_battery_counts_while_it_is_emptied() {
        let tree = Tree::new(&[
            ("sys/class/power_supply/mouse/type", "Battery\n"),
            ("sys/class/power_supply/mouse/scope", "Device\n"),
            ("sys/class/power_supply/mouse/status", "Discharging\n"),
            ("sys/class/power_supply/AC/type", "Mains\n"),
            ("sys/class/power_supply/BAT0/type", "Battery\n"),
            ("sys/class/power_supply/BAT0/status", "Charging\n"),
            ("sys/class/power_supply/BAT0/capacity", "81\n"),
        ]);
        assert_eq!(read(tree.root()), PowerSource::Mains);
        tree.write("sys/class/power_supply/BAT0/status", "Discharging\n");
        assert_eq!(read(tree.root()), PowerSource::Battery { percent: Some(81) });
        assert_eq!(read(Tree::new(&[]).root()), PowerSource::Mains);
    }
}
