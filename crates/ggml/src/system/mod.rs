//! What these rooms ask of the operating system beside streams, faults and the heap, which have
//! doors of their own. One folder for each duty, one file for each system.
//!
//! * `memory`: address space, and advice about what lies in memory.
//! * `sparse`: files with holes.
//! * `nodes`: which CPU a thread is on, and memory that comes from a node.
//! * `library`: libraries by address, by path, and functions in them by name.
//! * `threads`: stacks.

pub(crate) mod library;
pub(crate) mod memory;
pub(crate) mod nodes;
pub(crate) mod sparse;
pub(crate) mod threads;
