//! The store against real files: every backend, direct and buffered, on the filesystems at hand.

mod cache;
mod faults;
mod leases;
mod order;
mod reads;
mod world;
