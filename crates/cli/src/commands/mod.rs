//! One command, one file.

pub(crate) mod bench;
pub(crate) mod eval;
pub(crate) mod inspect;
pub(crate) mod plan;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod trace;
pub(crate) mod worker;
