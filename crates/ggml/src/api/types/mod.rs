//! ggml's data: structs, handles and constants that keep their layout whoever brings the
//! functions. Holds no function. Numbers that hosts count differently are in [`super::numbers`].
//!
//! * `linked`: as the linked ggml's headers have them.
//! * `mirror`: the same spelled out, for builds that link none; a test compares the two.

#[cfg(feature = "llama")]
mod linked;
#[cfg(any(not(feature = "llama"), test))]
mod mirror;

#[cfg(feature = "llama")]
pub(crate) use linked::*;
#[cfg(not(feature = "llama"))]
pub(crate) use mirror::*;
