//! RAPL: energy counters of the processor, through Linux powercap (Intel and AMD).
//!
//! Zones `intel-rapl:N` are packages (or `psys`, the whole board, which overlaps them and is
//! left out); `intel-rapl:N:M` are parts of package N. `dram` is beside the package and is
//! added; `core` and `uncore` are inside it and are not. Counters wrap around at
//! `max_energy_range_uj`, within a minute or an hour; a read every 50 ms sees each wrap.

use std::path::{Path, PathBuf};

use super::{Meter, Missing, Reading, Scope};
use crate::files;

/// The packages' and their memories' counters, summed.
#[derive(Debug)]
pub struct Rapl {
    zones: Vec<Zone>,
}

#[derive(Debug)]
struct Zone {
    name: String,
    file: PathBuf,
    /// Value at which the counter starts again.
    range_uj: Option<u64>,
    last_uj: u64,
    used_uj: u64,
}

impl Rapl {
    /// Opens every zone below `root`; why not, when there is none or one is unreadable.
    pub fn open(root: &Path) -> Result<Self, Missing> {
        let entries = std::fs::read_dir(root.join("sys/class/powercap"));
        let mut dirs: Vec<PathBuf> =
            entries.into_iter().flatten().flatten().map(|e| e.path()).collect();
        dirs.sort();
        let zones = dirs.iter().filter_map(|dir| Zone::open(dir)).collect::<Result<Vec<_>, _>>()?;
        if zones.is_empty() { Err(Missing::NotShown) } else { Ok(Self { zones }) }
    }
}

impl Zone {
    /// `None` for zones that are not counted.
    fn open(dir: &Path) -> Option<Result<Self, Missing>> {
        let name = files::read(&dir.join("name"))?.trim().to_owned();
        if !name.starts_with("package") && name != "dram" {
            return None;
        }
        let file = dir.join("energy_uj");
        let Some(last_uj) = files::value(&file) else {
            return file.exists().then_some(Err(Missing::Permission { file }));
        };
        let range_uj = files::value(&dir.join("max_energy_range_uj"));
        Some(Ok(Self { name, file, range_uj, last_uj, used_uj: 0 }))
    }

    /// Adds what was used since the last read; a lower value has wrapped around once.
    fn advance(&mut self) -> Option<u64> {
        let now_uj: u64 = files::value(&self.file)?;
        self.used_uj += match now_uj.checked_sub(self.last_uj) {
            Some(used) => used,
            None => self.range_uj.map_or(0, |range| range.saturating_sub(self.last_uj) + now_uj),
        };
        self.last_uj = now_uj;
        Some(self.used_uj)
    }
}

impl Meter for Rapl {
    fn name(&self) -> String {
        let names: Vec<&str> = self.zones.iter().map(|zone| zone.name.as_str()).collect();
        format!("RAPL {}", names.join(", "))
    }

    fn scope(&self) -> Scope {
        Scope::Processor
    }

    fn read(&mut self) -> Option<Reading> {
        let mut total_uj = 0;
        for zone in &mut self.zones {
            total_uj += zone.advance()?;
        }
        Some(Reading::Joules(total_uj as f64 * 1e-6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    fn server() -> Tree {
        let zone = |id: &str, name: &str, energy: &str| {
            [("name", name), ("energy_uj", energy), ("max_energy_range_uj", "262143328850")]
                .map(|(file, text)| (format!("sys/class/powercap/{id}/{file}"), text.to_owned()))
        };
        let files: Vec<_> = [
            zone("intel-rapl:0", "package-0", "1000000"),
            zone("intel-rapl:0:0", "core", "900000"),
            zone("intel-rapl:0:1", "dram", "50"),
            zone("intel-rapl:1", "package-1", "262143328000"),
            zone("intel-rapl:2", "psys", "3"),
        ]
        .concat();
        let tree = Tree::new(&[("sys/class/powercap/intel-rapl/enabled", "1\n")]);
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    #[test]
    fn packages_and_memory_are_summed_and_wraps_are_seen() {
        let tree = server();
        let mut rapl = Rapl::open(tree.root()).unwrap();
        assert_eq!(rapl.name(), "RAPL package-0, dram, package-1");
        assert_eq!(rapl.read(), Some(Reading::Joules(0.0)));
        tree.write("sys/class/powercap/intel-rapl:0/energy_uj", "3000000\n");
        tree.write("sys/class/powercap/intel-rapl:0:0/energy_uj", "2900000\n");
        assert_eq!(rapl.read(), Some(Reading::Joules(2.0)));
        // 850 to the end of the range, then 999150.
        tree.write("sys/class/powercap/intel-rapl:1/energy_uj", "999150\n");
        assert_eq!(rapl.read(), Some(Reading::Joules(3.0)));
        tree.write("sys/class/powercap/intel-rapl:1/energy_uj", "");
        assert_eq!(rapl.read(), None, "a counter that went away reads as none");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let tree = server();
        tree.write("sys/class/powercap/intel-rapl:0/energy_uj", "");
        let missing = Rapl::open(tree.root()).unwrap_err();
        let file = tree.root().join("sys/class/powercap/intel-rapl:0/energy_uj");
        assert_eq!(missing, Missing::Permission { file });
        assert_eq!(Rapl::open(Tree::new(&[]).root()).unwrap_err(), Missing::NotShown);
    }
}
