//! One command, one file.

pub(crate) mod bench;
pub(crate) mod inspect;
pub(crate) mod run;
pub(crate) mod worker;
