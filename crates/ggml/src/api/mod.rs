//! ggml as `seam`, `compute` and `gpu` see it: data types and one table of functions. These
//! rooms reach ggml through here only, so that the same code can run where ggml is linked
//! and where it is looked up in the process of a host. Knows no llama.cpp.
//!
//! Modules, in reading order:
//! * `types`: ggml's structs, handles and constants.
//! * `table`: its functions, each listed once with its signature.
//! * `numbers`: operations and kinds of devices, which releases count differently.
//! * `abi`: mirror of the tables that a backend of one's own fills in.

pub(crate) mod abi;
pub(crate) mod numbers;
mod table;
mod types;

pub(crate) use table::*;
pub(crate) use types::*;
