//! What leaves the battery: the whole machine's power, only while no charger feeds it.
//! Drivers update it every second or so; differences over shorter times mean nothing.

use std::path::{Path, PathBuf};

use super::{Meter, Reading, Scope};
use crate::{files, power};

/// All batteries of the machine, summed.
#[derive(Debug)]
pub struct Battery {
    dirs: Vec<PathBuf>,
}

impl Battery {
    /// `None` when there is no battery, or none is being emptied, or none reports its power.
    pub fn open(root: &Path) -> Option<Self> {
        let mut battery = Self { dirs: power::batteries(root) };
        battery.read().is_some().then_some(battery)
    }
}

impl Meter for Battery {
    fn name(&self) -> String {
        let names: Vec<_> = self.dirs.iter().filter_map(|dir| dir.file_name()?.to_str()).collect();
        format!("battery {}", names.join(", "))
    }

    fn scope(&self) -> Scope {
        Scope::Machine
    }

    fn read(&mut self) -> Option<Reading> {
        let emptied = self.dirs.iter().filter(|dir| power::is_discharging(dir));
        let watts: Vec<f64> = emptied.map(|dir| watts(dir)).collect::<Option<_>>()?;
        (!watts.is_empty()).then(|| Reading::Watts(watts.iter().sum()))
    }
}

/// `power_now` in µW, or `current_now` in µA times `voltage_now` in µV. Phones write a negative
/// current while emptying.
fn watts(dir: &Path) -> Option<f64> {
    let number = |name: &str| files::value::<f64>(&dir.join(name));
    let product = || Some(number("current_now")? * number("voltage_now")? * 1e-12);
    number("power_now").map(|uw| uw * 1e-6).or_else(product).map(f64::abs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    const BAT: &str = "sys/class/power_supply/battery";

    fn phone() -> Tree {
        let tree = Tree::new(&[]);
        for (name, text) in [
            ("type", "Battery\n"),
            ("status", "Discharging\n"),
            ("current_now", "-500000\n"),
            ("voltage_now", "4000000\n"),
        ] {
            tree.write(&format!("{BAT}/{name}"), text);
        }
        tree
    }

    #[test]
    fn current_times_voltage_or_power_itself() {
        let tree = phone();
        let mut battery = Battery::open(tree.root()).unwrap();
        assert_eq!(battery.read(), Some(Reading::Watts(2.0)));
        tree.write(&format!("{BAT}/current_now"), "-750000\n");
        assert_eq!(battery.read(), Some(Reading::Watts(3.0)));
        tree.write(&format!("{BAT}/power_now"), "8500000\n");
        assert_eq!(battery.read(), Some(Reading::Watts(8.5)));
        assert_eq!(battery.name(), "battery battery");
    }

    #[test]
    fn a_charger_ends_the_measurement() {
        let tree = phone();
        let mut battery = Battery::open(tree.root()).unwrap();
        tree.write(&format!("{BAT}/status"), "Charging\n");
        assert_eq!(battery.read(), None);
        assert!(Battery::open(tree.root()).is_none());
    }
}
