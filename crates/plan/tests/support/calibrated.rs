//! A calibration of a described machine.

use motley_cost::calibration::{CalibrationFile, FORMAT_VERSION, MemoryRate, Provenance};
use motley_machine::Machine;

/// A table in which only memory was measured, by cores.
pub(crate) fn measured(machine: &Machine, rates: &[(u32, f64)]) -> CalibrationFile {
    CalibrationFile {
        version: FORMAT_VERSION,
        provenance: Provenance {
            date: "2026-01-31T12:00:00Z".into(),
            program: "motley".into(),
            cpu: "Some CPU".into(),
            cores: 4,
            instructions: vec![],
            load_one_min: None,
            took_s: 1.0,
            quick: false,
        },
        machine: machine.clone(),
        memory: rates.iter().map(|&(threads, gb_per_s)| MemoryRate { threads, gb_per_s }).collect(),
        disk: None,
        links: vec![],
        devices: vec![],
        experts: vec![],
    }
}
