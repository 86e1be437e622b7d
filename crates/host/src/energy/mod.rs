//! Energy meters: what the machine, its processor or its GPU uses. One file per meter behind
//! the trait [`Meter`]; [`sampler`] reads one every 50 ms and integrates.
//!
//! * `meter`: what all of them answer.
//! * [`rapl`]: counters of the processor and its memory (Linux powercap).
//! * [`battery`]: what leaves the battery (laptops and phones without a charger).
//! * [`powermetrics`]: what macOS estimates of the processor.
//! * `nvml`: NVIDIA GPUs, with the feature `nvml`; `no_nvml` without it.
//! * [`none`]: where nothing measures; answers nothing rather than a guess.
//! * [`sampler`]: the thread; [`Integral`] is the arithmetic without it.

pub mod battery;
mod meter;
pub mod none;
#[cfg(not(feature = "nvml"))]
#[path = "no_nvml.rs"]
mod nvml;
#[cfg(feature = "nvml")]
mod nvml;
pub mod powermetrics;
pub mod rapl;
pub mod sampler;

use std::path::Path;
use std::time::Duration;

pub use meter::{Meter, Missing, Reading, Scope};
pub use nvml::gpu_meters;
pub use sampler::{Sampler, SamplerError};

/// The meter to use, and why there is no better one.
pub struct Found {
    /// The best there is; [`none::NoMeter`] at worst.
    pub meter: Box<dyn Meter>,
    /// Set when it is [`none::NoMeter`].
    pub missing: Option<Missing>,
}

/// The processor's counters where readable, what macOS says of it, else a battery that is being
/// emptied.
pub fn find(root: &Path) -> Found {
    let found = |meter: Box<dyn Meter>| Found { meter, missing: None };
    let mut refused = match rapl::Rapl::open(root) {
        Ok(rapl) => return found(Box::new(rapl)),
        Err(missing) => missing,
    };
    match powermetrics::PowerMetrics::open(root) {
        Some(Ok(program)) => return found(Box::new(program)),
        Some(Err(missing)) => refused = missing,
        None => (),
    }
    match battery::Battery::open(root) {
        Some(battery) => found(Box::new(battery)),
        None => Found { meter: Box::new(none::NoMeter), missing: Some(refused) },
    }
}

/// Energy over time from readings at given moments. Power is integrated by trapezoids;
/// counters are subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Integral {
    joules: f64,
    readings: u32,
    first: Option<Duration>,
    last: Option<(Duration, Reading)>,
}

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Energy between the first and the last reading.
    pub joules: f64,
    /// Time between them.
    pub seconds: f64,
    pub readings: u32,
}

impl Integral {
    /// Takes the reading of moment `now`, counted from any start.
    pub fn add(&mut self, now: Duration, reading: Reading) {
        if let Some((then, before)) = self.last {
            let seconds = now.saturating_sub(then).as_secs_f64();
            self.joules += match (before, reading) {
                (Reading::Joules(a), Reading::Joules(b)) => (b - a).max(0.0),
                (Reading::Watts(a), Reading::Watts(b)) => 0.5 * (a + b) * seconds,
                _ => 0.0,
            };
        }
        self.first.get_or_insert(now);
        self.last = Some((now, reading));
        self.readings += 1;
    }

    /// The energy so far; `None` before the second reading.
    pub fn energy(&self) -> Option<Energy> {
        let ((first, (last, _)), joules) = (self.first.zip(self.last)?, self.joules);
        let seconds = last.saturating_sub(first).as_secs_f64();
        (self.readings > 1).then_some(Energy { joules, seconds, readings: self.readings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn power_is_integrated_and_counters_are_subtracted() {
        let mut power = Integral::default();
        assert_eq!(power.energy(), None);
        for (at, watts) in [(100, 10.0), (200, 20.0), (400, 20.0)] {
            power.add(ms(at), Reading::Watts(watts));
        }
        let energy = power.energy().unwrap();
        assert!((energy.joules - 5.5).abs() < 1e-12 && (energy.seconds - 0.3).abs() < 1e-12);
        let mut counter = Integral::default();
        for (at, joules) in [(0, 7.0), (50, 7.5), (100, 9.0)] {
            counter.add(ms(at), Reading::Joules(joules));
        }
        let energy = counter.energy().unwrap();
        assert!((energy.joules - 2.0).abs() < 1e-12 && (energy.seconds - 0.1).abs() < 1e-12);
    }

    #[test]
    fn the_processors_counter_comes_before_the_battery() {
        let battery = [
            ("sys/class/power_supply/BAT0/type", "Battery\n"),
            ("sys/class/power_supply/BAT0/status", "Discharging\n"),
            ("sys/class/power_supply/BAT0/power_now", "9000000\n"),
        ];
        let tree = Tree::new(&battery);
        assert_eq!(find(tree.root()).meter.scope(), Scope::Machine);
        tree.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
        tree.write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n");
        assert_eq!(find(tree.root()).meter.scope(), Scope::Processor);
        let nothing = find(Tree::new(&[]).root());
        assert_eq!(nothing.missing, Some(Missing::NotShown));
        assert_eq!(nothing.meter.scope(), Scope::Nothing);
    }
}
