//! The seven phones: published figures, and speed and power models fitted to them.
//!
//! ```text
//! speed(I) = raw / (1 + (raw/bus)^p)^(1/p) · (1 - c)^max(0, |I|-2),   raw = Σ_i |I_i| · u · f_i · q_i
//! E(I)     = dram + (P_s + κ · Σ_i a_i · (|I_i| · f_i² + idle_i · b · g_i²)) / speed(I)
//! g_i      = f_i in a cluster with selected cores, w · f_i in one without
//! ```
//!
//! `bus` and `c` follow from two speeds of a phone, `κ` and `P_s` from two energies: those published
//! for MNN with the first model, and the same times MNN-AECS's mean gain over all models. The rest
//! is assumed. This is not the heuristic AECS searches with.

use motley_machine::{CoreCluster, Machine};
use motley_plan::cores::{CoreSet, Freedom};

use super::assumed::Assumptions;
use crate::error::ReproduceError;

/// One engine's figures on one phone, averaged over the source's datasets (Tables 9 and 10).
#[derive(Debug, Clone, Copy)]
pub struct Published {
    /// Its cores, from Table 8 (MNN takes the four biggest) and Table 7.
    pub set: &'static [u32],
    /// Decode speed of each model, tokens per second.
    pub speeds: &'static [f64],
    /// Energy of each model, mJ per token (on iPhones in the units of Xcode's gauge).
    pub energies: &'static [f64],
}

/// One phone.
#[derive(Debug, Clone, Copy)]
pub struct Phone {
    /// Its machine file.
    pub machine: &'static str,
    /// What may be chosen there.
    pub freedom: Freedom,
    /// MNN as published.
    pub mnn: Published,
    /// MNN-AECS as published; its cores are Table 7's.
    pub aecs: Published,
    /// Assumed: speed of one prime core without the bus, over MNN-AECS's.
    pub one_core: f64,
    /// Assumed: how sharply the bus saturates, p.
    pub sharpness: f64,
    /// Assumed: work per cycle of each cluster's cores, prime = 1: `q`.
    pub per_cycle: &'static [f64],
    /// Frequency of a cluster without selected cores over its highest: `w`. Table 4 shows half;
    /// the source says of the Meizu that it does not clock idle clusters down.
    pub idle_clock: f64,
}

macro_rules! published {
    ($set:expr, $speeds:expr, $energies:expr) => {
        Published { set: &$set, speeds: &$speeds, energies: &$energies }
    };
}

/// Table 9 (Qwen2.5-1.5B and 3B, Llama3.2-1B and 3B, Gemma2-2B) and Table 10 (Qwen2.5-1.5B,
/// Llama3.2-1B).
pub const PHONES: [Phone; 7] = [
    Phone {
        machine: "mate-40-pro",
        freedom: Freedom::Affinity,
        mnn: published!(
            [1, 3, 0],
            [20.7, 10.5, 26.2, 9.7, 12.3],
            [389.4, 737.7, 314.6, 794.9, 662.2]
        ),
        aecs: published!(
            [0, 2, 0],
            [20.3, 10.5, 25.8, 9.4, 12.2],
            [298.2, 583.6, 236.7, 650.3, 523.1]
        ),
        one_core: 0.85,
        sharpness: 4.0,
        per_cycle: &[1.0, 1.0, 0.35],
        idle_clock: 0.5,
    },
    Phone {
        machine: "honor-v30-pro",
        freedom: Freedom::Affinity,
        mnn: published!(
            [2, 2, 0],
            [23.0, 11.7, 29.0, 10.9, 14.0],
            [313.0, 619.7, 245.7, 675.7, 541.7]
        ),
        aecs: published!(
            [0, 2, 0],
            [20.9, 11.1, 26.4, 10.3, 13.3],
            [250.3, 479.9, 199.8, 525.2, 400.2]
        ),
        one_core: 0.8,
        sharpness: 4.0,
        per_cycle: &[1.0, 1.0, 0.35],
        idle_clock: 0.5,
    },
    Phone {
        machine: "galaxy-a56",
        freedom: Freedom::Affinity,
        mnn: published!(
            [1, 3, 0],
            [18.3, 9.0, 21.8, 8.4, 10.8],
            [290.8, 501.1, 235.8, 560.9, 492.4]
        ),
        aecs: published!(
            [0, 2, 0],
            [18.0, 9.2, 22.2, 8.4, 11.0],
            [237.2, 429.5, 185.0, 469.5, 375.0]
        ),
        one_core: 0.75,
        sharpness: 4.0,
        per_cycle: &[1.0, 1.0, 0.35],
        idle_clock: 0.5,
    },
    Phone {
        machine: "meizu-21",
        freedom: Freedom::Affinity,
        mnn: published!(
            [1, 3, 0, 0],
            [21.8, 11.6, 26.8, 10.3, 11.1],
            [283.6, 548.6, 228.6, 585.2, 552.0]
        ),
        aecs: published!(
            [1, 0, 1, 0],
            [24.4, 12.9, 30.1, 11.4, 12.6],
            [262.3, 472.6, 213.0, 513.2, 509.0]
        ),
        one_core: 0.8,
        sharpness: 16.0,
        per_cycle: &[1.0, 0.6, 0.6, 0.3],
        idle_clock: 1.0,
    },
    Phone {
        machine: "xiaomi-15-pro",
        freedom: Freedom::Affinity,
        mnn: published!(
            [2, 2],
            [37.1, 20.1, 47.2, 19.0, 23.4],
            [213.9, 416.4, 143.5, 443.0, 359.4]
        ),
        aecs: published!(
            [2, 0],
            [45.6, 23.3, 59.0, 21.3, 28.7],
            [150.4, 322.3, 114.3, 355.6, 292.6]
        ),
        one_core: 0.6,
        sharpness: 4.0,
        per_cycle: &[1.0, 0.85],
        idle_clock: 0.5,
    },
    Phone {
        machine: "iphone-12",
        freedom: Freedom::Threads,
        mnn: published!([2, 2], [27.9, 34.5], [34.0, 27.1]),
        aecs: published!([1, 0], [29.3, 37.3], [19.6, 15.5]),
        one_core: 1.6,
        sharpness: 4.0,
        per_cycle: &[1.0, 0.4],
        idle_clock: 0.5,
    },
    Phone {
        machine: "iphone-15",
        freedom: Freedom::Threads,
        mnn: published!([2, 2], [33.4, 46.1], [28.6, 19.9]),
        aecs: published!([2, 0], [35.5, 48.1], [23.4, 16.3]),
        one_core: 0.7,
        sharpness: 4.0,
        per_cycle: &[1.0, 0.4],
        idle_clock: 0.5,
    },
];

/// A phone with its models fitted.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The phone.
    pub phone: Phone,
    /// Its machine.
    pub machine: Machine,
    /// `u`: tokens per second of one prime core per GHz, without the bus.
    pub per_ghz: f64,
    /// Speed of the bus, tokens per second.
    pub bus: f64,
    /// `c`: speed lost by each core beyond two.
    pub congestion: f64,
    /// `κ`: watts of a busy prime core per GHz².
    pub core_w_per_ghz2: f64,
    /// `P_s`, watts.
    pub static_w: f64,
    dram_j: f64,
    idle_core: f64,
}

impl Phone {
    /// Fits the models. Speeds and energies are those of the first model, times the mean ratio of
    /// MNN-AECS to MNN over all of them.
    pub fn fit(&self, open: Assumptions) -> Result<Fitted, ReproduceError> {
        let machine = motley_machine::find(self.machine)?;
        let slow = self.mnn.speeds[0];
        let fast = slow * mean_ratio(self.aecs.speeds, self.mnn.speeds);
        let dear_j = self.mnn.energies[0] / 1e3;
        let cheap_j = dear_j * mean_ratio(self.aecs.energies, self.mnn.energies);
        let per_ghz = self.one_core * fast / machine.clusters[0].max_ghz;
        let mut fitted = Fitted {
            phone: *self,
            machine,
            per_ghz,
            bus: f64::INFINITY,
            congestion: 0.0,
            core_w_per_ghz2: 1.0,
            static_w: 0.0,
            dram_j: open.dram_share * dear_j,
            idle_core: open.idle_core,
        };
        let (mnn, aecs) = (set(self.mnn.set), set(self.aecs.set));
        fitted.bus = fitted.bus_for(&aecs, fast);
        let cores_over = f64::from(mnn.cores().saturating_sub(2).max(1));
        fitted.congestion = 1.0 - (slow / fitted.speed(&mnn)).powf(1.0 / cores_over);
        let (dear_w, cheap_w) = ((dear_j - fitted.dram_j) * slow, (cheap_j - fitted.dram_j) * fast);
        let (many, few) = (fitted.watts(&mnn), fitted.watts(&aecs));
        fitted.core_w_per_ghz2 = (dear_w - cheap_w) / (many - few);
        fitted.static_w = dear_w - fitted.core_w_per_ghz2 * many;
        Ok(fitted)
    }
}

impl Fitted {
    /// True decode speed, tokens per second.
    pub fn speed(&self, set: &CoreSet) -> f64 {
        let raw = |(at, cores): (usize, &u32)| {
            f64::from(*cores) * self.machine.clusters[at].max_ghz * self.phone.per_cycle[at]
        };
        let raw = self.per_ghz * set.per_cluster.iter().enumerate().map(raw).sum::<f64>();
        let p = self.phone.sharpness;
        let contending = f64::from(set.cores().saturating_sub(2));
        raw / (1.0 + (raw / self.bus).powf(p)).powf(1.0 / p)
            * (1.0 - self.congestion).powf(contending)
    }

    /// True energy of one token, joules.
    pub fn energy_j(&self, set: &CoreSet) -> f64 {
        self.dram_j + self.watts(set) / self.speed(set)
    }

    /// How far the model is from MNN-AECS's published speed and energy with the first model, as
    /// parts of these: it goes through the mean gain over all models instead.
    pub fn off_published(&self) -> (f64, f64) {
        let aecs = &self.phone.aecs;
        let set = set(aecs.set);
        let joules = aecs.energies[0] / 1e3;
        (self.speed(&set) / aecs.speeds[0] - 1.0, self.energy_j(&set) / joules - 1.0)
    }

    fn watts(&self, set: &CoreSet) -> f64 {
        let cluster = |(cluster, cores): (&CoreCluster, &u32)| {
            let idle = f64::from(cluster.cores - cores);
            let clock = if *cores > 0 { 1.0 } else { self.phone.idle_clock };
            let busy = f64::from(*cores) * cluster.max_ghz.powi(2);
            let rest = idle * self.idle_core * (clock * cluster.max_ghz).powi(2);
            cluster.power_scale * (busy + rest)
        };
        let all: f64 = self.machine.clusters.iter().zip(&set.per_cluster).map(cluster).sum();
        self.static_w + self.core_w_per_ghz2 * all
    }

    /// The bus at which `set` reaches `speed`, by halving.
    fn bus_for(&self, set: &CoreSet, speed: f64) -> f64 {
        let (mut low, mut high) = (speed, 1000.0 * speed);
        let with = |bus: f64| Self { bus, ..self.clone() }.speed(set);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if with(middle) < speed { low = middle } else { high = middle }
        }
        high
    }
}

/// A published set.
pub fn set(per_cluster: &[u32]) -> CoreSet {
    CoreSet { per_cluster: per_cluster.to_vec() }
}

/// Geometric mean of the ratios.
fn mean_ratio(parts: &[f64], wholes: &[f64]) -> f64 {
    let logs = parts.iter().zip(wholes).map(|(part, whole)| (part / whole).ln());
    (logs.sum::<f64>() / parts.len().max(1) as f64).exp()
}
