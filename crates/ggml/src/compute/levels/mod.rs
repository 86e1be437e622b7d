//! Which levels of vector instructions this CPU offers that change speed by tens of percent.

#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod processor;
#[cfg(not(target_arch = "x86_64"))]
#[path = "portable.rs"]
mod processor;

pub use processor::offered_features;
