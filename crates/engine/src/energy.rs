//! Energy of what a session or a server computes (M7): read from the machine's meters, else by the
//! draw a decision predicts. Where neither is known it says nothing; it never guesses a draw.
//!
//! * [`EnergyWatch`]: a session's, divided into prompts and decoding.
//! * [`EnergyCounter`]: a server's, read at any moment.

use crate::clock::now;
use motley_host::energy::{self, Meter, Sampler, Scope, sampler::PERIOD};
use motley_plan::Decision;
use motley_plan::predict::Prediction;
use motley_sched::Phase;
use motley_trace::{EnergyRecord, EnergySource, PhaseRecord};
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two readings of a server: often enough to see every wrap of a counter, and seldom
/// enough to let a processor rest.
const COUNTER_PERIOD: Duration = Duration::from_secs(1);

/// Watches a session's computing. By default it watches nothing.
#[derive(Default)]
pub struct EnergyWatch {
    /// Those that are at rest; the others are with `readers`.
    meters: Vec<Box<dyn Meter>>,
    readers: Vec<Sampler>,
    /// What the meters are called; empty where there are none.
    names: String,
    draw: Option<Draw>,
    /// What is computed, and since when.
    phase: Option<(Phase, Instant)>,
    prefill_joules: f64,
    decode_joules: f64,
    /// A meter did not tell all (a charger was plugged in): no sum is shown.
    failed: bool,
}

/// What a decision predicts a machine to draw while it computes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Draw {
    prefill_w: f64,
    decode_w: f64,
    /// Of decoding.
    joules_per_token: f64,
}

impl EnergyWatch {
    /// The meters of the machine below `root`, with those of its GPUs if they compute.
    pub fn by_meters(root: &Path, gpus_compute: bool) -> Self {
        let found = energy::find(root);
        let whole = found.meter.scope() == Scope::Machine;
        let gpus = if gpus_compute && !whole { energy::gpu_meters() } else { Vec::new() };
        let first = found.missing.is_none().then_some(found.meter);
        let meters: Vec<_> = first.into_iter().chain(gpus).collect();
        let names: Vec<String> = meters.iter().map(|meter| meter.name()).collect();
        Self { meters, names: names.join(" + "), ..Self::default() }
    }

    /// The same; without a meter, what `decision` predicts.
    pub fn of(root: &Path, decision: &Decision) -> Self {
        let watch = Self::by_meters(root, !decision.devices.is_empty());
        Self { draw: Draw::of(decision), ..watch }
    }

    /// From here on `phase` is computed.
    pub(crate) fn enter(&mut self, phase: Phase) {
        if self.phase.is_some_and(|(known, _)| known == phase) {
            return;
        }
        self.rest();
        self.start_readers(PERIOD);
        self.phase = Some((phase, now()));
    }

    /// From here on nothing is computed, until a session goes on.
    pub fn rest(&mut self) {
        let Some((phase, began)) = self.phase.take() else { return };
        let took = began.elapsed();
        for reader in self.readers.drain(..) {
            let (energy, meter) = reader.finish();
            self.meters.push(meter);
            let covers = |seconds: f64| seconds + PERIOD.as_secs_f64() >= took.as_secs_f64();
            match energy.filter(|energy| covers(energy.seconds)) {
                Some(energy) if phase == Phase::Prefill => self.prefill_joules += energy.joules,
                Some(energy) => self.decode_joules += energy.joules,
                None => self.failed = true,
            }
        }
    }

    /// Names of the meters; `None` where there are none.
    pub(crate) fn meter_names(&self) -> Option<&str> {
        Some(self.names.as_str()).filter(|names| !names.is_empty())
    }

    /// Rests, and tells what meters read so far; `None` where they do not tell all.
    pub(crate) fn metered_joules(&mut self) -> Option<f64> {
        self.rest();
        self.is_metered().then_some(self.prefill_joules + self.decode_joules)
    }

    /// The energy of what was computed before the last rest, given where its time went.
    pub(crate) fn record(
        &self,
        prefill: &PhaseRecord,
        decode: &PhaseRecord,
    ) -> Option<EnergyRecord> {
        let (source, prefill_joules, decode_joules) = match self.draw {
            _ if self.is_metered() => {
                (EnergySource::Meter(self.names.clone()), self.prefill_joules, self.decode_joules)
            }
            Some(draw) => (
                EnergySource::Model,
                draw.prefill_w * prefill.time_s,
                draw.decode_w * decode.time_s,
            ),
            None => return None,
        };
        Some(EnergyRecord {
            source,
            prefill_joules,
            decode_joules,
            joules_per_token: (decode.tokens > 0).then(|| decode_joules / decode.tokens as f64),
            predicted_joules_per_token: self.draw.map(|draw| draw.joules_per_token),
        })
    }

    /// Counts for as long as the result lives.
    pub fn count(mut self) -> EnergyCounter {
        self.start_readers(COUNTER_PERIOD);
        let readers = if self.failed { Vec::new() } else { self.readers };
        EnergyCounter { readers, draw: self.draw }
    }

    fn is_metered(&self) -> bool {
        !self.names.is_empty() && !self.failed
    }

    fn start_readers(&mut self, period: Duration) {
        for meter in self.meters.drain(..) {
            match Sampler::start(meter, period) {
                Ok(reader) => self.readers.push(reader),
                Err(error) => {
                    tracing::warn!(target: "motley", "energy is not measured: {error}");
                    self.failed = true;
                }
            }
        }
    }
}

impl Draw {
    /// `None` where the decision does not know what the machine draws.
    fn of(decision: &Decision) -> Option<Self> {
        let watts = |predicted: &Prediction| {
            let watts = predicted.joules_per_token? * predicted.tokens_per_s;
            Some(watts).filter(|watts| watts.is_finite() && *watts >= 0.0)
        };
        Some(Self {
            prefill_w: watts(&decision.prefill)?,
            decode_w: watts(&decision.decode)?,
            joules_per_token: decision.decode.joules_per_token?,
        })
    }
}

/// Energy since a server's start.
pub struct EnergyCounter {
    readers: Vec<Sampler>,
    draw: Option<Draw>,
}

/// Energy up to now, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Joules {
    /// What the meters read: at all times, whoever uses the machine.
    Metered(f64),
    /// The predicted draw over the time spent computing.
    Modelled(f64),
}

impl EnergyCounter {
    /// The energy of a server that was busy with each phase as long as `busy` says; `None` where
    /// nobody knows.
    pub fn joules(&self, busy: &dyn Fn(Phase) -> Duration) -> Option<Joules> {
        if !self.readers.is_empty() {
            let read = |reader: &Sampler| reader.energy().map_or(0.0, |energy| energy.joules);
            return Some(Joules::Metered(self.readers.iter().map(read).sum()));
        }
        let draw = self.draw?;
        let seconds = |phase| busy(phase).as_secs_f64();
        let (prefill_s, decode_s) = (seconds(Phase::Prefill), seconds(Phase::Decode));
        Some(Joules::Modelled(draw.prefill_w * prefill_s + draw.decode_w * decode_s))
    }
}

impl fmt::Debug for EnergyCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnergyCounter({} meters, {:?})", self.readers.len(), self.draw)
    }
}
