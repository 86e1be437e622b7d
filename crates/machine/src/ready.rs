//! Machine files shipped inside the crate, found by name. Holds no numbers of its own.

use std::path::Path;

use crate::error::MachineError;
use crate::load::read_file;
use crate::spec::Machine;

/// Names of all shipped machines, in the order of listings.
pub fn ready_names() -> impl Iterator<Item = &'static str> {
    READY.iter().map(|(name, _)| *name)
}

/// A shipped machine by name, or a file when the name ends in `.toml`.
pub fn find(name: &str) -> Result<Machine, MachineError> {
    if name.ends_with(".toml") {
        return read_file(Path::new(name));
    }
    match READY.iter().find(|(ready, _)| *ready == name) {
        Some((ready, text)) => Machine::parse(text, ready),
        None => Err(MachineError::NotFound {
            name: name.into(),
            known: ready_names().collect::<Vec<_>>().join(", "),
        }),
    }
}

macro_rules! ready {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../machines/", $name, ".toml")))),*]
    };
}

const READY: &[(&str, &str)] = ready![
    "two-core-24gb",
    "laptop-8gb-gpu",
    "desktop-16gb-gpu",
    "desktop-24gb-gpu",
    "desktop-24gb-gpu-32gb",
    "desktop-2gpu-24gb-8gb",
    "workstation-2gpu",
    "mac-64gb",
    "m4-max-128gb",
    "snapdragon-x-elite",
    "strix-halo-128gb",
    "dgx-spark",
    "a6000-xeon-5220r",
    "rtx5080-i7-14700-ndp2",
    "rtx5080-i7-14700-ndp4",
    "rtx5080-i7-14700-ndp6",
    "m2-ultra",
    "m2-max",
    "mate-40-pro",
    "honor-v30-pro",
    "galaxy-a56",
    "meizu-21",
    "xiaomi-15-pro",
    "iphone-12",
    "iphone-15",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{CoreRole, DeviceKind};

    #[test]
    fn every_ready_machine_is_valid_and_named_as_its_file() {
        for name in ready_names() {
            let machine = find(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(machine.name, name);
            assert!(machine.first(DeviceKind::Cpu).is_some(), "{name} has no CPU");
        }
    }

    #[test]
    fn every_number_of_a_ready_machine_has_its_source_beside_it() {
        let measured = |line: &str| {
            let value = line.split('=').nth(1).unwrap_or("").trim();
            value.starts_with(|c: char| c.is_ascii_digit()) && !line.starts_with("version")
        };
        for (name, text) in READY {
            for line in text.lines().filter(|line| measured(line)) {
                assert!(line.contains('#'), "{name}: no source for `{line}`");
            }
        }
    }

    #[test]
    fn the_phones_carry_the_cores_of_their_table() {
        let cores = |name: &str| {
            let clusters = find(name).unwrap().clusters;
            clusters
                .iter()
                .map(|c| (c.cores, (c.max_ghz * 100.0).round() as u32))
                .collect::<Vec<_>>()
        };
        assert_eq!(cores("mate-40-pro"), [(1, 313), (3, 254), (4, 205)]);
        assert_eq!(cores("meizu-21"), [(1, 330), (3, 315), (2, 296), (2, 227)]);
        assert_eq!(cores("xiaomi-15-pro"), [(2, 432), (6, 353)]);
    }

    #[test]
    fn clusters_are_listed_big_to_small() {
        for name in ready_names() {
            let roles: Vec<CoreRole> =
                find(name).unwrap().clusters.iter().map(|c| c.role).collect();
            assert!(roles.is_sorted(), "{name}: {roles:?}");
        }
    }

    #[test]
    fn no_ready_machine_claims_to_be_this_one() {
        assert!(matches!(find("this"), Err(MachineError::NotFound { .. })));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let message = find("cray-1").unwrap_err().to_string();
        assert!(message.contains("cray-1") && message.contains("m2-ultra"), "{message}");
        assert!(matches!(find("missing.toml"), Err(MachineError::Io { .. })));
    }
}
