//! What the arena, the read queue and the pool wait with: the standard library's primitives, or
//! loom's where every order of threads is explored (feature `loom`, docs/decisions/0082). No
//! other file of this crate that shares something between threads names either.

#[cfg(feature = "loom")]
pub(crate) use loom::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};
#[cfg(not(feature = "loom"))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle},
};
