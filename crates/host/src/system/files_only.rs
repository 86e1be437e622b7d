//! Linux and Android: the files hold everything.

use crate::load::LoadAverage;
use crate::memory::MemoryState;

pub(crate) fn memory() -> Option<MemoryState> {
    None
}

pub(crate) fn load_average() -> Option<LoadAverage> {
    None
}

pub(crate) fn cpu_name() -> Option<String> {
    None
}
