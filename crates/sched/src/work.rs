//! The work of one layer and the lanes it can run on. Data for strategies; no choice is made here.
//!
//! ```text
//!   slow tier ──(link)──▶ fast tier
//!   home units            fast unit
//! ```
//!
//! Three regimes in these words: hybrid (slow = RAM with the CPU as home unit, fast = VRAM),
//! beyond RAM (slow = SSD without a home unit, fast = RAM arena with the CPU), near-data (slow =
//! memory modules each with a home unit, fast = VRAM).

use motley_cost::{ComputeCost, Nanos, TensorParallel, TransferCost};
pub use motley_trace::Phase;
use serde::{Deserialize, Serialize};

/// A part of one expert, in 256ths of its intermediate width (G2 moves partial experts).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u16);

impl Share {
    /// No part.
    pub const NONE: Self = Self(0);
    /// The whole expert.
    pub const WHOLE: Self = Self(256);

    /// Nearest share to a fraction between 0 and 1.
    pub fn nearest(fraction: f64) -> Self {
        Self((fraction.clamp(0.0, 1.0) * 256.0).round() as u16)
    }

    /// As a fraction.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 256.0
    }

    /// What is left of the whole.
    pub fn rest(self) -> Self {
        Self(256 - self.0)
    }

    /// This part of a number of bytes, rounded up.
    pub fn of_bytes(self, bytes: u64) -> u64 {
        (bytes * u64::from(self.0)).div_ceil(256)
    }
}

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// The unit beside the fast tier.
    Fast,
    /// A unit beside the slow tier, by lane number.
    Home(u16),
}

/// How experts lie on several home units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Whole experts dealt round: expert `e` lives on lane `e mod units` (expert parallelism).
    Whole,
    /// Every unit holds a slice of every expert and all work on one together (G1): one lane.
    Split,
}

/// The units beside the slow tier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Homes {
    pub units: u16,
    /// How experts lie on them.
    pub layout: Layout,
    /// A whole expert on one unit.
    pub unit: ComputeCost,
    /// Paid by a lane before its first expert of a layer: fixed part of moving activations out
    /// and back (`T_a` of G2).
    pub entry_us: f64,
    /// The same: part of each token of the pass.
    pub entry_per_token_us: f64,
}

/// What everything costs, as far as the scheduler knows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// A whole expert on the fast unit.
    pub fast: ComputeCost,
    /// The home units; without them every expert has to be loaded.
    pub home: Option<Homes>,
    /// The link from the slow to the fast tier.
    pub link: TransferCost,
    /// Bytes of one expert.
    pub expert_bytes: u64,
}

impl Costs {
    /// Part of an expert on the fast unit.
    pub fn fast_time(&self, tokens: u32, share: Share) -> Nanos {
        self.fast.scaled(share.fraction()).time(tokens)
    }

    /// Part of an expert on its home lane, without the entry. [`Nanos::NEVER`] without home units.
    pub fn home_time(&self, tokens: u32, share: Share) -> Nanos {
        let Some(home) = self.home else { return Nanos::NEVER };
        let whole = match home.layout {
            Layout::Whole => home.unit,
            Layout::Split => TensorParallel { unit: home.unit, units: home.units.into() }.compute(),
        };
        whole.scaled(share.fraction()).time(tokens)
    }

    /// Part of an expert over the link.
    pub fn load_time(&self, share: Share) -> Nanos {
        self.link.time(share.of_bytes(self.expert_bytes))
    }

    /// What a home lane pays before its first expert of a layer.
    pub fn entry_time(&self, pass_tokens: u32) -> Nanos {
        let tokens = f64::from(pass_tokens);
        let entry = |home: Homes| home.entry_us + tokens * home.entry_per_token_us;
        self.home.map_or(Nanos::ZERO, |home| Nanos::from_us(entry(home)))
    }

    /// Number of home lanes.
    pub fn lanes(&self) -> u16 {
        match self.home {
            None => 0,
            Some(Homes { layout: Layout::Split, .. }) => 1,
            Some(home) => home.units,
        }
    }

    /// The home lane of an expert; there is at least one.
    pub fn lane_of(&self, expert: u16) -> u16 {
        expert % self.lanes().max(1)
    }
}

/// Where an expert's bytes are when its layer is routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// In the slow tier only.
    Absent,
    /// On the link, here after this span.
    Arriving(Nanos),
    /// In the fast tier.
    Resident,
}

/// One expert the layer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItem {
    /// Number in the layer.
    pub expert: u16,
    /// Tokens routed to it: its load, at least 1.
    pub tokens: u32,
    /// Where its bytes are.
    pub presence: Presence,
}

impl WorkItem {
    /// Whether the fast unit can have it without a further load.
    pub fn is_near(&self) -> bool {
        self.presence != Presence::Absent
    }
}

/// One routed layer as a strategy sees it.
#[derive(Debug, Clone, Copy)]
pub struct LayerWork<'a> {
    pub layer: u16,
    pub phase: Phase,
    /// Tokens in the pass.
    pub tokens: u32,
    /// The experts needed, each once.
    pub items: &'a [WorkItem],
    pub costs: &'a Costs,
    /// How long the link is still busy with an earlier load.
    pub link_free_in: Nanos,
}

impl LayerWork<'_> {
    /// Where an item is best waited for: on the fast unit, at home, or not decided here.
    ///
    /// An expert on its way is waited for unless its home unit, asked now, would be done sooner;
    /// it must not be loaded a second time.
    pub fn waits_at(&self, item: &WorkItem) -> Waits {
        match item.presence {
            Presence::Resident => Waits::Fast,
            Presence::Absent => Waits::Anywhere,
            Presence::Arriving(here) => {
                let fast = here + self.costs.fast_time(item.tokens, Share::WHOLE);
                let home = self.costs.home_time(item.tokens, Share::WHOLE);
                if home < fast { Waits::Home } else { Waits::Fast }
            }
        }
    }
}

/// The answer of [`LayerWork::waits_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// The fast unit has it or will have it soon.
    Fast,
    /// Its bytes are on their way but too far; only its home unit may compute it.
    Home,
    /// Its bytes are in the slow tier: home, or a load.
    Anywhere,
}

/// Who computes what, in which order. Indices are positions in [`LayerWork::items`].
///
/// Every item is in `fast`, in `home`, or in both with a share: then it is split.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerPlan {
    /// For the fast unit, best first; one that is not there yet is skipped until it is.
    pub fast: Vec<u16>,
    /// For the home lanes, first come first served on each.
    pub home: Vec<u16>,
    /// Over the link, in order; each is also in `fast`.
    pub load: Vec<u16>,
    /// The part the fast unit takes of a split item (at most one item is split).
    pub split: Option<(u16, Share)>,
}

impl LayerPlan {
    /// Empties the plan and keeps its memory.
    pub fn clear(&mut self) {
        self.fast.clear();
        self.home.clear();
        self.load.clear();
        self.split = None;
    }

    /// The part of `item` the fast unit takes, when the item is in `fast`.
    pub fn fast_share(&self, item: u16) -> Share {
        match self.split {
            Some((split, share)) if split == item => share,
            _ => Share::WHOLE,
        }
    }
}
