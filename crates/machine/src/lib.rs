//! A machine as data: what computes, what stores, what connects them, what it draws.
//!
//! This crate holds descriptions only. It measures nothing (a driver does) and decides
//! nothing (`motley-cost` turns a description into times, `motley-sched` into actions).
//!
//! Reading order:
//! * [`spec`]: the nouns [`Machine`], [`Device`], [`Link`], [`CoreCluster`],
//!   [`MemoryNode`], [`Power`].
//! * [`error`]: why a machine could not be read, and the limits of a description.
//! * [`load`]: TOML text to a validated [`Machine`].
//! * `check`: the rules a description must keep, each error naming item and field.
//! * [`ready`]: machine files shipped with the crate, found by name.
//! * [`regime`]: where a model's experts live on a machine.
#![forbid(unsafe_code)]

mod check;
pub mod error;
pub mod load;
pub mod ready;
pub mod regime;
pub mod spec;

pub use error::MachineError;
pub use load::read_file;
pub use ready::{find, ready_names};
pub use regime::Regime;
pub use spec::{
    CoreCluster, CoreRole, Device, DeviceKind, Link, Machine, MemoryNode, Power, Provenance,
};
