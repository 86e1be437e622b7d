//! The `motley` command.
fn main() {}
