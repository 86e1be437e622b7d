//! Linux and Android: the files hold everything.

use super::SystemMemory;

pub(crate) fn memory() -> Option<SystemMemory> {
    None
}

pub(crate) fn load_average() -> Option<[f64; 3]> {
    None
}

pub(crate) fn cpu_name() -> Option<String> {
    None
}
