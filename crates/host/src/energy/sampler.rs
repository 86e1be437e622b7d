//! A thread that reads a meter every 50 ms and integrates. The thread ends with the sampler.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Energy, Integral, Meter, none::NoMeter};

/// Time between readings: counters of fast processors wrap within a minute, and phones' meters
/// were read at this rate for A6.
pub const PERIOD: Duration = Duration::from_millis(50);

/// A running measurement.
pub struct Sampler {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    integral: Arc<Mutex<Integral>>,
    thread: Option<JoinHandle<Box<dyn Meter>>>,
}

/// The thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("no thread to read the energy meter with")]
pub struct SamplerError(#[from] std::io::Error);

impl Sampler {
    /// Takes the first reading now and then one every `period` ([`PERIOD`] on real meters).
    pub fn start(mut meter: Box<dyn Meter>, period: Duration) -> Result<Self, SamplerError> {
        let integral = Arc::new(Mutex::new(Integral::default()));
        let start = Instant::now();
        sample(meter.as_mut(), &integral, start);
        let (stop, stopped) = channel();
        let shared = Arc::clone(&integral);
        let thread = std::thread::Builder::new().name("energy".into()).spawn(move || {
            while waits(&stopped, period) {
                sample(meter.as_mut(), &shared, start);
            }
            // The last piece, shorter than a period.
            sample(meter.as_mut(), &shared, start);
            meter
        })?;
        Ok(Self { stop: Some(stop), integral, thread: Some(thread) })
    }

    /// The energy up to the last reading; `None` when the meter has not given enough readings.
    pub fn energy(&self) -> Option<Energy> {
        lock(&self.integral).energy()
    }

    /// Takes a last reading and ends; gives the meter back for the next measurement.
    pub fn finish(mut self) -> (Option<Energy>, Box<dyn Meter>) {
        let meter = self.join().unwrap_or_else(|| Box::new(NoMeter));
        (self.energy(), meter)
    }

    fn join(&mut self) -> Option<Box<dyn Meter>> {
        self.stop = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.join();
    }
}

/// Sleeps; false when the sampler ended meanwhile.
fn waits(stopped: &Receiver<()>, period: Duration) -> bool {
    stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout)
}

fn sample(meter: &mut dyn Meter, integral: &Mutex<Integral>, start: Instant) {
    if let Some(reading) = meter.read() {
        lock(integral).add(start.elapsed(), reading);
    }
}

fn lock(integral: &Mutex<Integral>) -> std::sync::MutexGuard<'_, Integral> {
    integral.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::rapl::Rapl;
    use motley_testkit::machine_tree::Tree;

    const COUNTER: &str = "sys/class/powercap/intel-rapl:0/energy_uj";

    #[test]
    fn a_moving_counter_is_followed_over_its_wrap() {
        let tree = Tree::new(&[
            ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000\n"),
            (COUNTER, "600000\n"),
        ]);
        let meter = Box::new(Rapl::open(tree.root()).unwrap());
        let sampler = Sampler::start(meter, Duration::from_millis(1)).unwrap();
        // Replaced by renaming: a reader never sees half a number.
        for value in [700_000, 900_000, 100_000, 400_000] {
            let seen = sampler.energy().map_or(0, |energy| energy.readings);
            tree.write("next", &value.to_string());
            std::fs::rename(tree.root().join("next"), tree.root().join(COUNTER)).unwrap();
            while sampler.energy().map_or(0, |energy| energy.readings) < seen + 2 {
                std::thread::yield_now();
            }
        }
        let (energy, mut meter) = sampler.finish();
        let energy = energy.unwrap();
        assert!((energy.joules - 0.8).abs() < 1e-9, "{energy:?}");
        assert!(energy.seconds > 0.0 && energy.readings >= 9, "{energy:?}");
        assert_eq!(meter.name(), "RAPL package-0");
        assert!(meter.read().is_some());
    }

    #[test]
    fn no_meter_gives_no_energy() {
        let sampler = Sampler::start(Box::new(NoMeter), Duration::from_millis(1)).unwrap();
        assert_eq!(sampler.finish().0, None);
    }
}
