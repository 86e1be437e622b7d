//! One command, one file.

pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod check_file;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod neighbours;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sim;
pub(crate) mod trace;
pub(crate) mod tune;
pub(crate) mod worker;
