//! What the executor over devices waits with: the standard library's primitives, or loom's where
//! every order of threads is explored (feature `loom`, docs/decisions/0082). Nothing else here.

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
