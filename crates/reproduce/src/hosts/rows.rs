//! Every model on every head with every number of workers, cables and streams: speeds with workers,
//! alone and split by layers.

use motley_machine::Machine;
use motley_sim::hosts::{HostChoices, HostSetup};
use motley_sim::outcome::Outcome;
use motley_sim::setup::{CacheSize, Choices};
use motley_sim::shape::ModelShape;
use serde::Serialize;

use super::assumed::{Assumptions, GOAL_LINK, LINKS, NamedLink, STREAMS, WORKERS};
use super::routing::{Streams, Together};
use crate::compared::model::Model;
use crate::error::ReproduceError;
use crate::tiers::models::MODELS as LARGE;

/// gpt-oss-120b, Qwen3-235B-A22B at four and at two bits, DeepSeek-V3.
pub const MODELS: [Model; 4] = [LARGE[0], LARGE[1], LARGE[2], LARGE[3]];

/// The head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    Gpu,
    NoGpu,
}

impl Head {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Gpu, Self::NoGpu];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpu => "24 GB GPU",
            Self::NoGpu => "no GPU",
        }
    }
}

/// One arrangement. Speeds are tokens per second of all streams together.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub model: &'static str,
    pub head: Head,
    pub workers: u16,
    pub link: &'static str,
    pub streams: u32,
    /// Part of the experts the head's memories hold, and all hosts' together.
    pub held_alone: f64,
    pub held: f64,
    /// The head with its disk.
    pub alone: f64,
    /// Whole layers on each host, in turn; and if every host always had work.
    pub split: f64,
    pub pipelined: f64,
    /// With workers and copies of the most used experts; without copies, where that was tried.
    pub ours: f64,
    pub plain: Option<f64>,
    pub parts: Parts,
}

/// Where a pass with workers goes, as parts of its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parts {
    /// Everything but routed experts.
    pub dense: f64,
    /// The head waits for workers with nothing of its own to do.
    pub waited: f64,
    /// Of the busiest worker: its experts, and its frames and round trips.
    pub compute: f64,
    pub wire: f64,
}

impl Row {
    /// Over the head alone.
    pub fn over_alone(&self) -> f64 {
        self.ours / self.alone
    }

    /// Over whole layers.
    pub fn over_split(&self) -> f64 {
        self.ours / self.split
    }

    /// Whether two hosts hold what one does not.
    pub fn fits_two(&self) -> bool {
        self.workers == 1 && self.held_alone < 1.0 && self.held >= 1.0
    }
}

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub models: &'a [Model],
    pub heads: &'a [Head],
    pub workers: &'a [u16],
    pub links: &'a [NamedLink],
    pub streams: &'a [u32],
    /// Whether copies are left out once at the goals' cable.
    pub plain: bool,
}

impl Wanted<'_> {
    /// What the document shows.
    pub const WHOLE: Self = Self {
        models: &MODELS,
        heads: &Head::ALL,
        workers: &WORKERS,
        links: &LINKS,
        streams: &STREAMS,
        plain: true,
    };
    /// What the goals are about.
    pub const GOALS: Self =
        Self { workers: &[1, 2], links: &[GOAL_LINK], streams: &[1], plain: false, ..Self::WHOLE };
}

/// The rows under one set of assumptions.
pub fn rows(open: Assumptions, wanted: &Wanted<'_>) -> Result<Vec<Row>, ReproduceError> {
    let [with, without] = open.machines()?;
    let mut rows = Vec::new();
    for model in wanted.models {
        let most = wanted.streams.iter().copied().max().unwrap_or(1);
        let routing = Streams::new(model, open.skew_factor, most)?;
        for &head in wanted.heads {
            let machine = if head == Head::Gpu { &with } else { &without };
            for &streams in wanted.streams {
                let together = routing.together(streams);
                let (uses, shape) = (&routing.uses, model.shape());
                let pair =
                    Pair { machine, worker: &without, shape, uses, together, open, head, model };
                pair.rows(wanted, &mut rows)?;
            }
        }
    }
    Ok(rows)
}

/// A head with a model and its streams.
struct Pair<'a> {
    machine: &'a Machine,
    worker: &'a Machine,
    shape: ModelShape,
    uses: &'a [u64],
    together: Together,
    open: Assumptions,
    head: Head,
    model: &'a Model,
}

impl Pair<'_> {
    fn rows(&self, wanted: &Wanted<'_>, rows: &mut Vec<Row>) -> Result<(), ReproduceError> {
        let from = self.together.measured_from;
        let setup = self.setup(wanted.workers[0], &wanted.links[0], false)?;
        let alone = setup.alone(&self.together.trace)?.tokens_per_s_from(from);
        for &workers in wanted.workers {
            for link in wanted.links {
                rows.push(self.row(workers, link, alone, wanted.plain && *link == GOAL_LINK)?);
            }
        }
        Ok(())
    }

    fn row(
        &self,
        workers: u16,
        link: &NamedLink,
        alone: f64,
        plain: bool,
    ) -> Result<Row, ReproduceError> {
        let (trace, from) = (&self.together.trace, self.together.measured_from);
        let setup = self.setup(workers, link, true)?;
        let outcome = setup.run(trace)?;
        let split = setup.split(trace);
        let plain = match plain {
            true => Some(self.setup(workers, link, false)?.run(trace)?.tokens_per_s_from(from)),
            false => None,
        };
        let all = f64::from(self.shape.layers) * f64::from(self.shape.experts);
        let own = f64::from(setup.head_slots());
        let others = f64::from(workers) * f64::from(setup.worker_slots);
        Ok(Row {
            model: self.model.name,
            head: self.head,
            workers,
            link: link.name,
            streams: self.together.streams,
            held_alone: (own / all).min(1.0),
            held: ((own + others) / all).min(1.0),
            alone,
            split: split.tokens_per_s_from(from),
            pipelined: split.pipelined_from(from),
            ours: outcome.tokens_per_s_from(from),
            plain,
            parts: parts(&outcome),
        })
    }

    fn setup(
        &self,
        workers: u16,
        link: &NamedLink,
        replicas: bool,
    ) -> Result<HostSetup, ReproduceError> {
        let head = Choices {
            machine: self.machine,
            model: &self.shape,
            strategy: None,
            policy: None,
            prefetch: None,
            cache: CacheSize::Fitting,
            prediction_accuracy: crate::machines::ASSUMED.prediction_accuracy,
            faults: None,
            seed: 5,
        };
        Ok(HostSetup::new(&HostChoices {
            head,
            worker: self.worker,
            workers,
            link: self.open.link(link.link),
            uses: self.uses,
            replicas,
            streams: self.together.streams,
        })?)
    }
}

fn parts(outcome: &Outcome) -> Parts {
    let busiest = outcome.hosts.iter().max_by_key(|host| host.compute).copied().unwrap_or_default();
    let waited = outcome.hosts.iter().map(|host| host.waited).sum();
    Parts {
        dense: outcome.share_of_wall(outcome.dense_busy),
        waited: outcome.share_of_wall(waited),
        compute: outcome.share_of_wall(busiest.compute),
        wire: outcome.share_of_wall(busiest.wire),
    }
}
