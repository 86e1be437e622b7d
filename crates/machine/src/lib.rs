//! motley-machine.
