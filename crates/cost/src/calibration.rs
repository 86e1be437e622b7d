//! A measured machine as data: what experts, memory, disk and links cost here, with the error
//! of every fit and where the numbers come from. Text in, text out; files and measuring are a
//! driver's.
//!
//! Expert costs are kept per byte of weights and per operation, so that they scale from the
//! shape that was measured to any other:
//!
//! ```text
//! t(experts e with n_e tokens each) = block + Σ_e launch + max(bytes / rate, n_e · flop / rate')
//! ```

use motley_machine::{Machine, MachineError};
use serde::{Deserialize, Serialize};

use crate::compute::ComputeCost;
use crate::derive::ExpertShape;
use crate::fit::{Fit, Residuals};
pub use crate::kernels::{KernelWay, WeightLayout};

/// The only format version this crate reads.
pub const FORMAT_VERSION: u32 = 2;
/// A calibration is a few hundred lines; anything longer is not one.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// Most entries of one kind.
pub const MAX_ITEMS: usize = 4096;

/// Everything measured on one machine in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFile {
    /// Format version, [`FORMAT_VERSION`].
    #[serde(rename = "motley_calibration")]
    pub version: u32,
    pub provenance: Provenance,
    /// The machine in the words of a machine file, with measured peaks.
    pub machine: Machine,
    /// Reading memory, by number of threads.
    #[serde(default)]
    pub memory: Vec<MemoryRate>,
    /// The disk that holds models, where one was measured.
    #[serde(default)]
    pub disk: Option<DiskCost>,
    /// Copies between the CPU's memory and a device's.
    #[serde(rename = "link", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkCost>,
    /// Experts on the CPU, by quantisation, layout and threads.
    #[serde(rename = "expert", default)]
    pub experts: Vec<ExpertCost>,
    /// Experts on devices.
    #[serde(rename = "device", default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceCost>,
}

/// Experts on one device: rows there and back counted with them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceCost {
    /// ggml's name of it.
    pub name: String,
    /// By quantisation, in the file's layout; launched by one thread.
    #[serde(rename = "expert", default)]
    pub experts: Vec<ExpertCost>,
}

/// A number is a command, a machine and a date.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// `2026-01-31T12:00:00Z`.
    pub date: String,
    /// Program and version.
    pub program: String,
    pub cpu: String,
    pub cores: u32,
    /// Instruction sets of the kernels.
    #[serde(default)]
    pub instructions: Vec<String>,
    /// Tasks running or waiting when it began: above a fraction of the cores the numbers suffer.
    #[serde(default)]
    pub load_one_min: Option<f64>,
    pub took_s: f64,
    /// A few seconds on one model's experts; a full calibration always counts for more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub quick: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Rate at which threads read memory together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRate {
    pub threads: u32,
    /// 10⁹ bytes per second, all threads together.
    pub gb_per_s: f64,
}

/// Reading expert-sized ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskCost {
    /// Filesystem, and the disk where known: `ext4 on nvme0n1`.
    pub what: String,
    /// Read past the page cache.
    pub direct: bool,
    /// Mechanism (`uring`, `threads`).
    pub backend: String,
    /// Reads kept in flight for `gb_per_s`.
    pub in_flight: u32,
    /// Rate with that many in flight.
    pub gb_per_s: f64,
    /// Fixed cost of a read that is alone.
    pub latency_us: f64,
    /// Rate of a read that is alone.
    pub alone_gb_per_s: f64,
    /// Error of the fit of reads that are alone.
    pub residuals: Residuals,
}

/// Copies over one link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkCost {
    /// Where the bytes come from, ggml's name.
    pub from: String,
    /// Where they go.
    pub to: String,
    /// Fixed cost of one copy.
    pub latency_us: f64,
    pub gb_per_s: f64,
    pub residuals: Residuals,
}

/// Experts of one quantisation and layout on a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertCost {
    /// ggml's name of the type.
    pub quantisation: String,
    /// Its bits for one weight, scales included.
    pub bits_per_weight: f64,
    pub layout: WeightLayout,
    pub way: KernelWay,
    pub threads: u32,
    /// Fixed cost of one block, whatever it holds.
    pub block_us: f64,
    /// Fixed cost of one expert in it.
    pub launch_us: f64,
    /// Reading weights: microseconds for 10⁶ bytes.
    pub us_per_mb: f64,
    /// Arithmetic: microseconds for 10⁶ operations, multiply and add counted as two.
    pub us_per_mflop: f64,
    pub residuals: Residuals,
    /// Mean relative error of the fit on another shape, where that was tried.
    #[serde(default)]
    pub other_shape_relative: Option<f64>,
    /// The same of [`ExpertCost::points_us`].
    #[serde(default)]
    pub other_shape_points_relative: Option<f64>,
    /// Width of a hidden row of the measured experts.
    pub hidden: u32,
    /// Their width between up and down.
    pub intermediate: u32,
    /// What was measured: time of one expert, by tokens, without the block's share.
    pub measured: Vec<MeasuredPoint>,
}

/// One measured point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredPoint {
    pub tokens: u32,
    /// Time of an undisturbed run.
    pub took_us: f64,
}

/// Why text is not a calibration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// Longer than [`MAX_FILE_BYTES`], or more than [`MAX_ITEMS`] entries of a kind.
    #[error("{origin}: {what} = {found} is more than a calibration has ({limit})")]
    TooLong { origin: String, what: &'static str, found: usize, limit: usize },
    /// Not TOML, an unknown field, or a field of the wrong type.
    #[error("{origin}: {source}")]
    Syntax {
        origin: String,
        /// Line, column and field.
        source: Box<toml::de::Error>,
    },
    /// A version this crate does not read.
    #[error(
        "{origin}: motley_calibration = {found}, but this program reads {FORMAT_VERSION}; \
         run motley calibrate again"
    )]
    Version { origin: String, found: u32 },
    /// A number that cannot be a time or a rate.
    #[error("{origin}: {field} = {value}, but it must be {rule}")]
    Value { origin: String, field: &'static str, value: f64, rule: &'static str },
    /// The machine in it is none.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

impl CalibrationFile {
    /// Reads and checks; `origin` names the text in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, CalibrationError> {
        let (what, found, limit) = ("bytes", text.len(), MAX_FILE_BYTES);
        if found > limit {
            return Err(CalibrationError::TooLong { origin: origin.into(), what, found, limit });
        }
        let found: Self = toml::from_str(text).map_err(|source| CalibrationError::Syntax {
            origin: origin.into(),
            source: Box::new(source),
        })?;
        if found.version != FORMAT_VERSION {
            return Err(CalibrationError::Version { origin: origin.into(), found: found.version });
        }
        found.check(origin)?;
        Ok(found)
    }

    /// The text [`CalibrationFile::parse`] reads.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("plain structs with string keys")
    }

    /// Cost of experts of that type: of exactly that layout and way where it was measured (else
    /// another), with the number of threads nearest to `threads`.
    pub fn expert(
        &self,
        quantisation: &str,
        layout: WeightLayout,
        way: KernelWay,
        threads: u32,
    ) -> Option<&ExpertCost> {
        let same = self.experts.iter().filter(|cost| cost.quantisation == quantisation);
        same.min_by_key(|cost| {
            (cost.layout != layout, cost.way != way, cost.threads.abs_diff(threads))
        })
    }

    /// The same, and where several shapes were measured the one nearest to a matrix of
    /// `width` (hidden times between): small experts cost more per byte than large ones.
    pub fn expert_near(
        &self,
        quantisation: &str,
        layout: WeightLayout,
        way: KernelWay,
        threads: u32,
        width: f64,
    ) -> Option<&ExpertCost> {
        let like = self.expert(quantisation, layout, way, threads)?;
        let same = self.experts.iter().filter(|cost| {
            (&cost.quantisation, cost.layout, cost.way, cost.threads)
                == (&like.quantisation, like.layout, like.way, like.threads)
        });
        same.min_by(|a, b| a.far_from(width).total_cmp(&b.far_from(width)))
    }

    /// Rate of memory with the number of threads nearest to `threads`.
    pub fn memory_gb_per_s(&self, threads: u32) -> Option<f64> {
        let nearest = self.memory.iter().min_by_key(|rate| rate.threads.abs_diff(threads));
        nearest.map(|rate| rate.gb_per_s)
    }

    fn check(&self, origin: &str) -> Result<(), CalibrationError> {
        let experts = || self.experts.iter().chain(self.devices.iter().flat_map(|d| &d.experts));
        for (what, found) in [
            ("expert", experts().count()),
            ("device", self.devices.len()),
            ("memory", self.memory.len()),
            ("link", self.links.len()),
            ("measured", experts().map(|e| e.measured.len()).max().unwrap_or(0)),
        ] {
            let limit = MAX_ITEMS;
            if found > limit {
                return Err(CalibrationError::TooLong {
                    origin: origin.into(),
                    what,
                    found,
                    limit,
                });
            }
        }
        self.machine.check(origin)?;
        let bits = experts().map(|cost| ("bits_per_weight", cost.bits_per_weight));
        let rates = self.memory.iter().map(|rate| ("gb_per_s", rate.gb_per_s));
        let disk = self.disk.iter().flat_map(|disk| {
            [("disk.gb_per_s", disk.gb_per_s), ("disk.alone_gb_per_s", disk.alone_gb_per_s)]
        });
        let links = self.links.iter().map(|link| ("link.gb_per_s", link.gb_per_s));
        let positive = |value: f64| value.is_finite() && value > 0.0;
        must(origin, rates.chain(disk).chain(links).chain(bits), positive, "above zero")?;
        let times = experts().flat_map(|cost| {
            [
                ("block_us", cost.block_us),
                ("launch_us", cost.launch_us),
                ("us_per_mb", cost.us_per_mb),
                ("us_per_mflop", cost.us_per_mflop),
            ]
        });
        let latency = self.disk.iter().map(|disk| ("disk.latency_us", disk.latency_us));
        let ways = self.links.iter().map(|link| ("link.latency_us", link.latency_us));
        let points = experts().flat_map(|cost| &cost.measured).map(|at| ("took_us", at.took_us));
        let times = times.chain(latency).chain(ways).chain(points).chain(self.facts());
        let not_negative = |value: f64| value.is_finite() && value >= 0.0;
        must(origin, times, not_negative, "finite and not negative")?;
        let rising = |cost: &ExpertCost| cost.measured.is_sorted_by(|a, b| a.tokens < b.tokens);
        let order = experts().filter(|cost| !rising(cost)).map(|_| ("tokens", 0.0));
        must(origin, order, |_| false, "rising from point to point")
    }
}

impl CalibrationFile {
    /// Numbers that say how it was measured and how well it fits; nothing is computed with them.
    fn facts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let experts = self.experts.iter().chain(self.devices.iter().flat_map(|d| &d.experts));
        let disk = self.disk.iter().map(|disk| disk.residuals);
        let links = self.links.iter().map(|link| link.residuals);
        let fits = experts.clone().map(|cost| cost.residuals).chain(disk).chain(links);
        let fits = fits.flat_map(|fit| [fit.rms, fit.worst_relative, fit.mean_relative]);
        let shapes = experts
            .flat_map(|cost| [cost.other_shape_relative, cost.other_shape_points_relative])
            .flatten();
        let run = [Some(self.provenance.took_s), self.provenance.load_one_min];
        let run = run.into_iter().flatten().map(|value| ("provenance", value));
        fits.chain(shapes).map(|value| ("residuals", value)).chain(run)
    }
}

fn must(
    origin: &str,
    mut values: impl Iterator<Item = (&'static str, f64)>,
    holds: impl Fn(f64) -> bool,
    rule: &'static str,
) -> Result<(), CalibrationError> {
    match values.find(|(_, value)| !holds(*value)) {
        None => Ok(()),
        Some((field, value)) => {
            Err(CalibrationError::Value { origin: origin.into(), field, value, rule })
        }
    }
}

impl ExpertCost {
    /// How far its matrices are from `width` (hidden times between) in size; 0 is equal.
    pub fn far_from(&self, width: f64) -> f64 {
        let found = f64::from(self.hidden) * f64::from(self.intermediate);
        (found.max(1.0) / width.max(1.0)).ln().abs()
    }

    /// The cost of one expert of another shape. The block's share is not in it.
    pub fn compute(&self, shape: &ExpertShape) -> ComputeCost {
        ComputeCost {
            launch_us: self.launch_us,
            per_token_us: shape.flop_per_token() * 1e-6 * self.us_per_mflop,
            floor_us: shape.bytes as f64 * 1e-6 * self.us_per_mb,
        }
    }

    /// Time of one expert of another shape, from the measured points ([`between_points_us`])
    /// in proportion to the weights. Kernels change their ways with the number of tokens, and
    /// the points know where; the fit does not.
    pub fn points_us(&self, shape: &ExpertShape, tokens: u32) -> f64 {
        let measured = f64::from(self.hidden) * f64::from(self.intermediate);
        let scale = f64::from(shape.hidden) * f64::from(shape.intermediate) / measured.max(1.0);
        scale * between_points_us(&self.measured, f64::from(tokens))
    }

    /// Time of one expert of the measured shape; rows may be a mean.
    pub fn measured_us(&self, rows: f64) -> f64 {
        between_points_us(&self.measured, rows)
    }

    /// The faster of two ways at every number of tokens both were measured with.
    pub fn faster(&self, other: &Self) -> Self {
        let mut best = self.clone();
        for point in &mut best.measured {
            let there = other.measured.iter().find(|there| there.tokens == point.tokens);
            point.took_us = there.map_or(point.took_us, |there| there.took_us.min(point.took_us));
        }
        best.us_per_mb = self.us_per_mb.min(other.us_per_mb);
        best.us_per_mflop = self.us_per_mflop.min(other.us_per_mflop);
        best
    }

    /// Rates from a fit of experts of `shape`: the inverse of [`ExpertCost::compute`], as
    /// (launch_us, us_per_mb, us_per_mflop).
    pub fn rates(fit: &Fit<ComputeCost>, shape: &ExpertShape) -> (f64, f64, f64) {
        let ComputeCost { launch_us, per_token_us, floor_us } = fit.model;
        let per_mflop = per_token_us / (shape.flop_per_token() * 1e-6);
        (launch_us, floor_us / (shape.bytes as f64 * 1e-6), per_mflop)
    }
}

/// Time at `tokens` from points with rising tokens: linear between them, at the last one's time
/// per token beyond. 0 without points or tokens.
pub fn between_points_us(points: &[MeasuredPoint], tokens: f64) -> f64 {
    let Some(last) = points.last().filter(|_| tokens > 0.0) else { return 0.0 };
    let above = points.partition_point(|point| f64::from(point.tokens) < tokens);
    match (above.checked_sub(1).map(|i| points[i]), points.get(above)) {
        (None, Some(first)) => first.took_us,
        (Some(low), Some(high)) => {
            let way = (tokens - f64::from(low.tokens)) / f64::from(high.tokens - low.tokens);
            low.took_us + way * (high.took_us - low.took_us)
        }
        (_, None) => last.took_us * tokens / f64::from(last.tokens.max(1)),
    }
}
