//! No meter: answers nothing, so that nobody takes a guess for a measurement.

use super::{Meter, Reading, Scope};

/// Stands where nothing measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn name(&self) -> String {
        "none".into()
    }

    fn scope(&self) -> Scope {
        Scope::Nothing
    }

    fn read(&mut self) -> Option<Reading> {
        None
    }
}
