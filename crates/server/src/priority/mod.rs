//! Threads that prepare requests give way to those that compute: computing threads wait for each
//! other, so one that is held up by another's JSON holds up every stream.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
mod system;

pub(crate) use system::give_way;
