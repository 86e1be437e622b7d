//! What every energy meter answers, and why there may be none. Reads nothing itself.

use std::path::PathBuf;

/// What a meter sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The processor, and its memory where that is metered.
    Processor,
    /// The whole machine.
    Machine,
    /// One GPU.
    Gpu,
    /// Nothing.
    Nothing,
}

/// One answer of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// Energy since the meter was opened; never falls.
    Joules(f64),
    /// Power at this moment.
    Watts(f64),
}

/// Something that measures energy or power.
pub trait Meter: Send {
    /// For people: what is read (`RAPL package-0, dram`).
    fn name(&self) -> String;

    /// What it sees.
    fn scope(&self) -> Scope;

    /// The present value; `None` when it cannot be read now (a battery that charges).
    fn read(&mut self) -> Option<Reading>;
}

/// Why there is no better meter than [`NoMeter`](super::none::NoMeter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The counters are there and only root may read them.
    Permission {
        /// File that cannot be read.
        file: PathBuf,
    },
    /// A program of the system would tell, and only root may run it.
    RootOnly {
        /// The program.
        program: PathBuf,
    },
    /// The kernel shows no counter and no battery that is being emptied.
    NotShown,
}
