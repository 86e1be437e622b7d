//! One command, one file.

pub(crate) mod bench;
pub(crate) mod bug;
pub(crate) mod calibrate;
pub(crate) mod check_file;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod neighbours;
pub(crate) mod openapi;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod pull;
pub(crate) mod reproduce;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod show;
pub(crate) mod sim;
pub(crate) mod trace;
pub(crate) mod tune;
pub(crate) mod worker;
