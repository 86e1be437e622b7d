//! The `motley` command.
#![forbid(unsafe_code)]

fn main() {}
