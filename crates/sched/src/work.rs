//! The work of one layer and the machine it can run on. Data for strategies; no choice is made here.
//!
//! ```text
//!   home: has every expert ──link 0──▶ tier 0 ──link 1──▶ tier 1
//!   home units                         its unit ──link 2──▶ tier 2
//! ```
//!
//! A machine is memories with units beside them, and links. One memory has every expert; the
//! others are tiers: each holds some, is filled over one link from its parent, and has a unit that
//! computes from it. Machines in these words:
//!
//! | machine | home | tiers |
//! |---|---|---|
//! | hybrid | RAM with the CPU | VRAM |
//! | beyond RAM | SSD, no unit | RAM with the CPU |
//! | a PC whose model is beyond its RAM | SSD, no unit | RAM with the CPU, VRAM below it |
//! | near data | memory modules, a unit each | VRAM |

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
    /// The unit beside a tier.
    Tier(u16),
    /// A unit beside the memory that has every expert, by lane number.
    Home(u16),
}

/// Most tiers of a machine.
pub const MAX_TIERS: usize = 32;

/// How experts lie on several home units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Whole experts dealt round: expert `e` lives on lane `e mod units` (expert parallelism).
    Whole,
    /// Every unit holds a slice of every expert and all work on one together (G1): one lane.
    Split,
}

/// The units beside the memory that has every expert.
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

/// A memory that holds some experts, its unit and the link that fills it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The tier its experts come from; `None` when from where all of them are.
    pub parent: Option<u16>,
    /// A whole expert on its unit.
    pub unit: ComputeCost,
    /// The link from its parent.
    pub link: TransferCost,
    /// Paid by the unit before its first expert of a layer: rows there and back.
    pub entry_us: f64,
    /// The same: part of each token of the pass.
    pub entry_per_token_us: f64,
    /// Whether an expert that stays here leaves its parent.
    pub exclusive: bool,
}

impl Tier {
    /// Beside the memory that has every expert, rows costing nothing.
    pub fn beside_home(unit: ComputeCost, link: TransferCost) -> Self {
        let (entry_us, entry_per_token_us) = (0.0, 0.0);
        Self { parent: None, unit, link, entry_us, entry_per_token_us, exclusive: false }
    }
}

/// What everything costs, as far as the scheduler knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// The home units; without them every expert has to be loaded.
    pub home: Option<Homes>,
    /// At least one; a parent comes before its children.
    pub tiers: Vec<Tier>,
    /// Bytes of one expert.
    pub expert_bytes: u64,
}

impl Costs {
    /// A machine with one tier.
    pub fn one_tier(
        unit: ComputeCost,
        link: TransferCost,
        home: Option<Homes>,
        expert_bytes: u64,
    ) -> Self {
        Self { home, tiers: vec![Tier::beside_home(unit, link)], expert_bytes }
    }

    /// The same with `devices` tiers beside home, each like the first where it is not known better.
    #[must_use]
    pub fn over_devices(mut self, devices: usize) -> Self {
        self.tiers.resize(devices, self.tiers[0]);
        self
    }

    /// The same machine when the model is beyond its RAM: experts come from a disk, RAM with the CPU
    /// and what it pays for rows becomes the first tier, and the others, behind it, have their
    /// experts alone: RAM is too small to keep a copy.
    #[must_use]
    pub fn behind_disk(self, disk: TransferCost) -> Self {
        let ram = match self.home {
            Some(Homes { unit, entry_us, entry_per_token_us, .. }) => {
                Tier { entry_us, entry_per_token_us, ..Tier::beside_home(unit, disk) }
            }
            None => Tier::beside_home(self.tiers[0].unit, disk),
        };
        let behind = |tier: &Tier| Tier {
            parent: Some(tier.parent.map_or(0, |parent| parent + 1)),
            exclusive: true,
            ..*tier
        };
        let tiers = std::iter::once(ram).chain(self.tiers.iter().map(behind)).collect();
        Self { home: None, tiers, expert_bytes: self.expert_bytes }
    }

    /// Part of an expert on a tier's unit, without the entry.
    pub fn tier_time(&self, tier: u16, tokens: u32, share: Share) -> Nanos {
        self.tiers[usize::from(tier)].unit.scaled(share.fraction()).time(tokens)
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

    /// Part of an expert on `unit`, without the entry.
    pub fn unit_time(&self, unit: Unit, tokens: u32, share: Share) -> Nanos {
        match unit {
            Unit::Tier(tier) => self.tier_time(tier, tokens, share),
            Unit::Home(_) => self.home_time(tokens, share),
        }
    }

    /// Part of an expert over the link of a tier.
    pub fn load_time(&self, tier: u16, share: Share) -> Nanos {
        self.tiers[usize::from(tier)].link.time(share.of_bytes(self.expert_bytes))
    }

    /// What `unit` pays before its first expert of a layer.
    pub fn entry_time(&self, unit: Unit, pass_tokens: u32) -> Nanos {
        let (entry_us, per_token_us) = match unit {
            Unit::Tier(tier) => {
                let tier = &self.tiers[usize::from(tier)];
                (tier.entry_us, tier.entry_per_token_us)
            }
            Unit::Home(_) => {
                self.home.map_or((0.0, 0.0), |home| (home.entry_us, home.entry_per_token_us))
            }
        };
        Nanos::from_us(entry_us + f64::from(pass_tokens) * per_token_us)
    }

    /// The tiers on the way to `tier`, one bit for each; not itself.
    pub(crate) fn tiers_above(&self, tier: u16) -> u32 {
        let above = std::iter::successors(self.parent(tier), |&at| self.parent(at));
        above.fold(0, |mask, at| mask | 1 << at)
    }

    /// The tier's own parent.
    pub fn parent(&self, tier: u16) -> Option<u16> {
        self.tiers[usize::from(tier)].parent
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

/// Where an expert is, as seen from one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Not there.
    Absent,
    /// On the link, here after this span.
    Arriving(Nanos),
    /// There.
    Resident,
}

/// In which tiers an expert is, and on which link. It is on one link at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whereabouts {
    /// One bit for each tier.
    resident: u32,
    coming: Option<(u16, Nanos)>,
}

impl Whereabouts {
    /// The same, in `tier` too.
    #[must_use]
    pub fn and_in(self, tier: u16) -> Self {
        Self { resident: self.resident | 1 << tier, ..self }
    }

    /// The same, and on its way to `tier`, there after `here`.
    #[must_use]
    pub fn and_coming(self, tier: u16, here: Nanos) -> Self {
        Self { coming: Some((tier, here)), ..self }
    }

    /// The same once what is on its way is there.
    #[must_use]
    pub fn arrived(self) -> Self {
        let coming = self.coming.map_or(0, |(tier, _)| 1 << tier);
        Self { resident: self.resident | coming, coming: None }
    }

    /// As `tier` sees it.
    pub fn in_tier(self, tier: u16) -> Presence {
        match self.coming {
            _ if self.resident >> tier & 1 == 1 => Presence::Resident,
            Some((to, here)) if to == tier => Presence::Arriving(here),
            _ => Presence::Absent,
        }
    }

    /// In `tier` or on its way to it.
    pub fn is_near(self, tier: u16) -> bool {
        self.in_tier(tier) != Presence::Absent
    }

    /// In any of the tiers of `mask`, one bit for each, or on its way to one.
    pub(crate) fn is_near_any(self, mask: u32) -> bool {
        let coming = self.coming.map_or(0, |(tier, _)| 1 << tier);
        (self.resident | coming) & mask != 0
    }

    /// Where it is on its way to, and how long it takes.
    pub fn coming(self) -> Option<(u16, Nanos)> {
        self.coming
    }
}

/// One expert the layer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkItem {
    /// Number in the layer.
    pub expert: u16,
    /// Tokens routed to it: its load, at least 1.
    pub tokens: u32,
    pub at: Whereabouts,
}

impl WorkItem {
    /// As the first tier sees it.
    pub fn presence(&self) -> Presence {
        self.at.in_tier(0)
    }

    /// Whether the first tier can have it without a further load.
    pub fn is_near(&self) -> bool {
        self.at.is_near(0)
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
    /// How long each tier's link is still busy with an earlier load; none for idle ones.
    pub links_free_in: &'a [Nanos],
}

impl LayerWork<'_> {
    /// How long the link of `tier` is still busy with an earlier load.
    pub fn link_free_in(&self, tier: u16) -> Nanos {
        self.links_free_in.get(usize::from(tier)).copied().unwrap_or_default()
    }

    /// Where an item is best waited for: in a tier that has it, at home, or not decided here.
    ///
    /// An expert on its way is waited for unless its home unit, asked now, would be done sooner;
    /// it must not be loaded a second time.
    pub fn waits_at(&self, item: &WorkItem) -> Waits {
        // The furthest tier that has it: what is in a device is there to be computed there.
        let tiers = (0..self.costs.tiers.len() as u16).rev();
        let mut has_it = tiers.filter(|&tier| item.at.in_tier(tier) == Presence::Resident);
        if let Some(tier) = has_it.next() {
            return Waits::Tier(tier);
        }
        let Some((tier, here)) = item.at.coming() else { return Waits::Anywhere };
        let there = here + self.costs.tier_time(tier, item.tokens, Share::WHOLE);
        let home = self.costs.home_time(item.tokens, Share::WHOLE);
        if home < there { Waits::Home } else { Waits::Tier(tier) }
    }
}

/// The answer of [`LayerWork::waits_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// A tier has it or will have it soon.
    Tier(u16),
    /// Its bytes are on their way but too far; only its home unit may compute it.
    Home,
    /// Its bytes are at home: computed there, or loaded.
    Anywhere,
}

/// Who computes what, in which order, and what comes over which link. Indices are positions in
/// [`LayerWork::items`].
///
/// Every item is in `compute` of one tier, in `home`, or in both with a share: then it is split.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerPlan {
    /// For the home lanes, first come first served on each.
    pub home: Vec<u16>,
    pub tiers: Vec<TierPlan>,
    /// The part a tier's unit takes of a split item (at most one item is split).
    pub split: Option<(u16, Share)>,
}

/// What one tier does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TierPlan {
    /// On its unit, best first; one that is not there yet is skipped until it is.
    pub compute: Vec<u16>,
    /// Over its link, in order. What has to pass other tiers is in their lists too.
    pub load: Vec<u16>,
}

impl LayerPlan {
    /// An empty plan for a machine of `tiers`.
    pub fn of(tiers: usize) -> Self {
        Self { tiers: vec![TierPlan::default(); tiers], ..Self::default() }
    }

    /// Empties the plan and keeps its memory.
    pub fn clear(&mut self, tiers: usize) {
        self.home.clear();
        self.tiers.resize_with(tiers, TierPlan::default);
        for tier in &mut self.tiers {
            tier.compute.clear();
            tier.load.clear();
        }
        self.split = None;
    }

    /// The part of `item` a tier's unit takes, when the item is in one's `compute`.
    pub fn tier_share(&self, item: u16) -> Share {
        match self.split {
            Some((split, share)) if split == item => share,
            _ => Share::WHOLE,
        }
    }
}
