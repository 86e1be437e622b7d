//! Off Linux, through the crate `sysinfo`: memory, load and the processor's name.
//!
//! The subset: no clusters, caches or memory nodes, no control groups, pressure or refaults, no
//! disks, no accelerators, no meters; their readers answer `None` (or nothing) as on any system
//! that does not report it. The root directory has no meaning here.

#![cfg_attr(
    target_os = "linux",
    allow(dead_code, reason = "compiled on Linux only to be tested there")
)]

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use super::SystemMemory;

pub(crate) fn memory() -> Option<SystemMemory> {
    let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(refresh).ok()?;
    let (total_bytes, available_bytes) = (system.total_memory(), system.available_memory());
    (total_bytes > 0).then_some(SystemMemory { total_bytes, available_bytes })
}

pub(crate) fn load_average() -> Option<[f64; 3]> {
    let load = System::load_average().ok()?;
    Some([load.one, load.five, load.fifteen])
}

pub(crate) fn cpu_name() -> Option<String> {
    let refresh = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(refresh).ok()?;
    system.cpus().first().map(|cpu| cpu.brand().trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_subset_agrees_with_the_files_where_both_exist() {
        let files = crate::memory::read(Path::new("/")).unwrap();
        assert_eq!(memory().unwrap().total_bytes, files.total_bytes);
        assert_eq!(cpu_name(), crate::cpu_name::read(Path::new("/")));
        assert!(load_average().unwrap()[0] >= 0.0);
    }
}
