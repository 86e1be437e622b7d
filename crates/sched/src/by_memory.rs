//! Choices that differ by memory, as people write them; what is chosen between is said elsewhere.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::named::{Named, UnknownName};

/// The memories that experts are brought to and sent away from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memories {
    /// RAM, from disk.
    pub ram: bool,
    /// Devices, from RAM.
    pub devices: bool,
}

/// A choice for every memory, or for some, as flags write it: `NAME`, `ram=NAME`, `gpu=NAME` or
/// several of them with commas between. `None` leaves a memory to its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByMemory<T> {
    all: Option<T>,
    ram: Option<T>,
    devices: Option<T>,
}

/// A choice for a memory that nothing is brought to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the {kind} for `{memory}` would decide nothing: {why}; leave `{memory}=` out")]
pub struct NotThere {
    /// What was chosen.
    pub kind: &'static str,
    pub memory: &'static str,
    pub why: &'static str,
}

/// What flags call the memories.
const RAM: &str = "ram";
const DEVICES: &str = "gpu";

impl<T: Named> ByMemory<T> {
    /// One for each.
    pub fn of(ram: T, devices: T) -> Self {
        match ram.name() == devices.name() {
            true => Self::from(ram),
            false => Self { all: None, ram: Some(ram), devices: Some(devices) },
        }
    }

    /// The choice for RAM that experts come to from disk.
    pub fn for_ram(&self, default: T) -> T {
        self.ram.or(self.all).unwrap_or(default)
    }

    /// The choice for devices.
    pub fn for_devices(&self, default: T) -> T {
        self.devices.or(self.all).unwrap_or(default)
    }

    /// Refuses a memory that is named here and is not among `memories`.
    pub fn check(&self, memories: Memories) -> Result<(), NotThere> {
        let (memory, why) = match (self.ram, self.devices) {
            (Some(_), _) if !memories.ram => (RAM, "no expert comes to RAM from a disk"),
            (_, Some(_)) if !memories.devices => (DEVICES, "no GPU shares the experts"),
            _ => return Ok(()),
        };
        Err(NotThere { kind: T::KIND, memory, why })
    }
}

/// Nothing chosen.
impl<T> Default for ByMemory<T> {
    fn default() -> Self {
        Self { all: None, ram: None, devices: None }
    }
}

/// The same for every memory.
impl<T: Named> From<T> for ByMemory<T> {
    fn from(all: T) -> Self {
        Self { all: Some(all), ..Self::default() }
    }
}

impl<T: Named> FromStr for ByMemory<T> {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let mut found = Self::default();
        for part in text.split(',') {
            let (memory, name) = part.split_once('=').map_or((None, part), |(m, n)| (Some(m), n));
            let own = match memory.map(str::trim) {
                None => &mut found.all,
                Some(RAM) => &mut found.ram,
                Some(DEVICES) => &mut found.devices,
                Some(other) => {
                    let known = format!("{RAM}, {DEVICES}");
                    return Err(UnknownName { kind: "memory", name: other.to_owned(), known });
                }
            };
            *own = Some(T::find(name.trim())?);
        }
        Ok(found)
    }
}

impl<T: Named> fmt::Display for ByMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("", self.all), ("ram=", self.ram), ("gpu=", self.devices)];
        let written = parts.into_iter().filter_map(|(memory, own)| Some((memory, own?.name())));
        for (at, (memory, name)) in written.enumerate() {
            write!(f, "{}{memory}{name}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::PolicyChoice;

    #[test]
    fn a_memory_is_named_before_its_choice() {
        for text in ["lru", "ram=lru", "gpu=mrs", "blend,gpu=lru", "ram=lru,gpu=lfu"] {
            let found: ByMemory<PolicyChoice> = text.parse().unwrap();
            assert_eq!(found.to_string(), text);
        }
        let found: ByMemory<PolicyChoice> = "blend, gpu = lru".parse().unwrap();
        let names = (found.for_ram(PolicyChoice::Lfu).name(), found.for_devices(PolicyChoice::Lfu));
        assert_eq!(names, ("blend", PolicyChoice::Lru));
        let disk = Memories { ram: true, devices: false };
        let refused = found.check(disk).unwrap_err().to_string();
        assert!(
            refused.starts_with("the cache policy for `gpu` would decide nothing"),
            "{refused}"
        );
        assert_eq!("lru".parse::<ByMemory<PolicyChoice>>().unwrap().check(disk), Ok(()));
        for (text, kind) in [("disk=lru", "memory"), ("ram=magic", "cache policy"), ("", "cache")] {
            let error = text.parse::<ByMemory<PolicyChoice>>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("unknown {kind}")), "{error}");
        }
    }
}
