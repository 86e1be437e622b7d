//! The store against real files: every backend, direct and buffered, on the filesystems of this machine.

#[cfg(target_os = "linux")]
mod cache;
mod faults;
mod leases;
mod order;
mod reads;
mod world;
