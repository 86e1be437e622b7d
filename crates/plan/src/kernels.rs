//! How the CPU computes routed experts (W2, W4): in which layout their weights lie, and whether a
//! block is one `MUL_MAT_ID` or blocks of one expert's rows. Decided from measured curves; where
//! nothing was measured, from what was found on other machines.

use motley_cost::calibration::{CalibrationFile as Table, ExpertCost, KernelWay, WeightLayout};
use motley_model::gguf::GgmlType;
use serde::{Deserialize, Serialize};

/// Rows per expert from which blocks were faster wherever they were measured, for machines on which
/// nobody did.
const TYPICAL_FROM_ROWS: f64 = 4.0;
/// A block of one expert, where nobody measured.
const TYPICAL_BLOCK_ROWS: u32 = 128;
/// Bounds of one: below, weights are read too often; above, threads do not end together.
const BLOCK_ROWS: (u32, u32) = (32, 512);
/// Part of the best speed a block must reach (W4's knee).
const KNEE: f64 = 0.95;
/// How much faster another layout than the one before must be: noise decides below it.
const LAYOUT_GAIN: f64 = 1.02;
/// Most tokens that are looked at.
const MOST_TOKENS: u32 = 8192;

/// What a run does with its experts on the CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpertKernels {
    /// Layout of experts in memory by element type; others lie plain.
    pub layouts: Vec<TypeLayout>,
    /// Rows of an expert, on average, from which blocks are faster; `None` for never. Experts
    /// that can only be computed in blocks always are.
    pub blocks_from_rows: Option<f64>,
    /// Rows of one block, about: an expert with twice as many has several.
    pub block_rows: u32,
    /// Rows of an expert from which plain weights are rearranged for the CPU's kernels, each time
    /// anew; `None` for never. In blocks.
    #[serde(default)]
    pub rearranged_from_rows: Option<u32>,
}

/// A type and its layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeLayout {
    /// ggml's name of the type.
    pub quantisation: String,
    pub layout: WeightLayout,
}

/// Layouts this machine computes experts of one type in; plain is always one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedLayouts {
    pub ty: GgmlType,
    /// With the bytes that all experts of the type take in it.
    pub layouts: Vec<(WeightLayout, u64)>,
}

impl OfferedLayouts {
    /// Layouts that need at most `spare_bytes` more than the file's order.
    fn within(&self, spare_bytes: u64) -> impl Iterator<Item = WeightLayout> {
        let plain = self.bytes(WeightLayout::Plain);
        let fits = move |(_, bytes): &&(WeightLayout, u64)| *bytes <= plain + spare_bytes;
        self.layouts.iter().filter(fits).map(|(layout, _)| *layout)
    }

    fn bytes(&self, layout: WeightLayout) -> u64 {
        let found = self.layouts.iter().find(|(offered, _)| *offered == layout);
        found.map_or(0, |(_, bytes)| *bytes)
    }
}

/// What decides: curves, and how often each part of them is used.
pub(crate) struct KernelFacts<'f> {
    pub(crate) table: Option<&'f Table>,
    pub(crate) threads: u32,
    /// Weights of one matrix.
    pub(crate) width: f64,
    /// Types of the routed experts with the layouts there are, the type with most bytes first.
    pub(crate) offered: &'f [OfferedLayouts],
    /// Memory there is beyond the model as it is in the file; some layouts are larger.
    pub(crate) spare_bytes: u64,
    /// Experts of a layer, and those of one token.
    pub(crate) experts: (u32, u32),
    /// Tokens of a chunk, of the prompt and of the answer that are expected.
    pub(crate) tokens: (u32, u32, u32),
}

impl Default for ExpertKernels {
    /// Plain, in blocks where an expert has several rows.
    fn default() -> Self {
        Self {
            layouts: Vec::new(),
            blocks_from_rows: Some(TYPICAL_FROM_ROWS),
            block_rows: TYPICAL_BLOCK_ROWS,
            rearranged_from_rows: None,
        }
    }
}

impl ExpertKernels {
    /// The file's order and `MUL_MAT_ID`, as the bare engine computes (`--exact`).
    pub fn exact() -> Self {
        Self { blocks_from_rows: None, ..Self::default() }
    }

    /// Layout of experts of that type in memory.
    pub fn layout(&self, ty: GgmlType) -> WeightLayout {
        let found = self.layouts.iter().find(|found| found.quantisation == ty.name());
        found.map_or(WeightLayout::Plain, |found| found.layout)
    }

    /// Whether some blocks are computed expert by expert.
    pub(crate) fn has_blocks(&self) -> bool {
        self.blocks_from_rows.is_some() || self.layouts.iter().any(|ty| ty.layout.is_apart())
    }

    /// The fewest tokens whose experts have enough rows for blocks when each chooses `used` of
    /// `experts` by chance; `u32::MAX` for never.
    pub fn from_tokens(&self, experts: u32, used: u32) -> u32 {
        let Some(from) = self.blocks_from_rows else { return u32::MAX };
        let enough = |tokens: u32| {
            let (experts, rows) = (f64::from(experts), f64::from(tokens) * f64::from(used));
            rows >= from * distinct(experts, used, tokens)
        };
        // More tokens never mean fewer rows for an expert.
        let (mut least, mut most) = (1, MOST_TOKENS + 1);
        while least < most {
            let middle = least.midpoint(most);
            if enough(middle) { most = middle } else { least = middle + 1 }
        }
        if least > MOST_TOKENS { u32::MAX } else { least }
    }

    /// For experts that stay in the file's order.
    pub(crate) fn in_file_order(facts: &KernelFacts<'_>) -> Self {
        let plain = |offered: &OfferedLayouts| TypeLayout {
            quantisation: offered.ty.name().into(),
            layout: WeightLayout::Plain,
        };
        Self::with(facts, facts.offered.iter().map(plain).collect())
    }

    /// For experts in memory: each type in its fastest layout for the expected mix.
    pub(crate) fn in_memory(facts: &KernelFacts<'_>) -> Self {
        let mut spare_bytes = facts.spare_bytes;
        let fastest = |offered: &OfferedLayouts| {
            let layout = facts.fastest(offered, spare_bytes);
            let grown = offered.bytes(layout).saturating_sub(offered.bytes(WeightLayout::Plain));
            spare_bytes = spare_bytes.saturating_sub(grown);
            TypeLayout { quantisation: offered.ty.name().into(), layout }
        };
        Self::with(facts, facts.offered.iter().map(fastest).collect())
    }

    fn with(facts: &KernelFacts<'_>, layouts: Vec<TypeLayout>) -> Self {
        let Some(main) = layouts.first() else { return Self::default() };
        let knee = facts.curves(main).blocks.and_then(knee);
        let rearranged_from_rows = facts.rearranged_from(&layouts);
        // A layer may have several types: blocks begin where none of them is slower. Experts
        // apart have no other way and need no crossing.
        let mut whole = layouts.iter().filter(|ty| !ty.layout.is_apart());
        let rearranges = rearranged_from_rows.is_some();
        let latest = |most: f64, ty| Some(most.max(facts.blocks_from(ty, rearranges)?));
        Self {
            blocks_from_rows: whole.try_fold(0.0, latest),
            block_rows: knee.unwrap_or(TYPICAL_BLOCK_ROWS),
            rearranged_from_rows,
            layouts,
        }
    }
}

/// Experts of one type and layout in both ways, as far as they were measured.
struct Curves<'t> {
    whole: Option<&'t ExpertCost>,
    blocks: Option<&'t ExpertCost>,
    /// Of experts that lie plain.
    rearranged: Option<&'t ExpertCost>,
}

impl KernelFacts<'_> {
    fn curves(&self, TypeLayout { quantisation, layout }: &TypeLayout) -> Curves<'_> {
        let of = |way| {
            let table = self.table?;
            let found = table.expert_near(quantisation, *layout, way, self.threads, self.width)?;
            (found.layout == *layout && found.way == way).then_some(found)
        };
        Curves {
            whole: of(KernelWay::Whole),
            blocks: of(KernelWay::Blocks),
            rearranged: of(KernelWay::Rearranged),
        }
    }

    /// Rows from which rearranging pays for every type that lies plain and can be rearranged;
    /// `None` where it does not for one, where no type can, and where nobody measured.
    fn rearranged_from(&self, layouts: &[TypeLayout]) -> Option<u32> {
        let is_plain = |ty: &&TypeLayout| ty.layout == WeightLayout::Plain;
        let mut from = None;
        for ty in layouts.iter().filter(is_plain).filter(|ty| self.is_rearranged(ty)) {
            let curves = self.curves(ty);
            let rows = pays_from(curves.blocks?, curves.rearranged?)?;
            from = Some(from.map_or(rows, |before: u32| before.max(rows)));
        }
        from
    }

    /// Whether this machine has another layout for the type.
    fn is_rearranged(&self, ty: &TypeLayout) -> bool {
        let same = |offered: &&OfferedLayouts| offered.ty.name() == ty.quantisation;
        self.offered.iter().find(same).is_some_and(|offered| offered.layouts.len() > 1)
    }

    /// Rows from which blocks are faster for one type, some of them rearranged where that pays; `None`
    /// for never.
    fn blocks_from(&self, ty: &TypeLayout, rearranges: bool) -> Option<f64> {
        let Curves { whole: Some(whole), blocks: Some(blocks), rearranged } = self.curves(ty)
        else {
            return Some(TYPICAL_FROM_ROWS);
        };
        match rearranged.filter(|_| rearranges) {
            Some(rearranged) => crossing(whole, &blocks.faster(rearranged)),
            None => crossing(whole, blocks),
        }
    }

    /// The layout with the shortest time for a prompt and its answer; the most specialised one
    /// where nobody measured.
    fn fastest(&self, offered: &OfferedLayouts, spare_bytes: u64) -> WeightLayout {
        let timed = |layout| {
            let ty = TypeLayout { quantisation: offered.ty.name().into(), layout };
            Some((layout, self.us(&self.curves(&ty))?))
        };
        let times: Vec<_> = offered.within(spare_bytes).filter_map(timed).collect();
        let best = times
            .iter()
            .copied()
            .reduce(|best, next| if next.1 * LAYOUT_GAIN < best.1 { next } else { best });
        let specialised = offered.within(spare_bytes).max();
        best.map(|(layout, _)| layout).or(specialised).unwrap_or(WeightLayout::Plain)
    }

    /// Time of the expected mix in one layer; `None` where nothing was measured.
    fn us(&self, curves: &Curves<'_>) -> Option<f64> {
        let (chunk, prompt, answer) = self.tokens;
        let (experts, used) = (f64::from(self.experts.0.max(1)), self.experts.1);
        let of = |tokens: u32| {
            let met = distinct(experts, used, tokens).max(1.0);
            let rows = f64::from(tokens) * f64::from(used) / met;
            let one = |cost: &&ExpertCost| cost.block_us + met * cost.measured_us(rows);
            let ways = [curves.whole, curves.blocks, curves.rearranged];
            ways.iter().flatten().map(one).reduce(f64::min)
        };
        let chunks = f64::from(prompt) / f64::from(chunk.max(1));
        Some(chunks * of(chunk.max(1))? + f64::from(answer) * of(1)?)
    }
}

/// Different experts that `tokens` tokens meet when each chooses `used` of `experts` by chance.
fn distinct(experts: f64, used: u32, tokens: u32) -> f64 {
    let missed = 1.0 - f64::from(used) / experts.max(1.0);
    experts * (1.0 - missed.max(0.0).powi(tokens as i32))
}

/// Rows from which blocks are never slower again.
fn crossing(whole: &ExpertCost, blocks: &ExpertCost) -> Option<f64> {
    let both = whole.measured.iter().filter_map(|point| {
        let other = blocks.measured.iter().find(|other| other.tokens == point.tokens)?;
        Some((point.tokens, other.took_us <= point.took_us))
    });
    let points: Vec<_> = both.collect();
    let slower = points.iter().rposition(|(_, faster)| !faster);
    let first = slower.map_or(0, |index| index + 1);
    points.get(first).map(|(rows, _)| f64::from(*rows))
}

/// Rows from which `rearranged` is never slower than `blocks` again: where lines between measured
/// points cross, since rearranging costs the same for any number of rows.
fn pays_from(blocks: &ExpertCost, rearranged: &ExpertCost) -> Option<u32> {
    let first = crossing(blocks, rearranged)? as u32;
    let before = blocks.measured.iter().map(|point| point.tokens).filter(|&rows| rows < first);
    let pays = |rows: &u32| {
        rearranged.measured_us(f64::from(*rows)) <= blocks.measured_us(f64::from(*rows))
    };
    let last_slower = before.max().unwrap_or(first);
    (last_slower..=first).find(pays)
}

/// The fewest rows that reach most of the best speed.
fn knee(blocks: &ExpertCost) -> Option<u32> {
    let speed = |index: usize| {
        let point = blocks.measured.get(index)?;
        Some(f64::from(point.tokens) / point.took_us.max(f64::MIN_POSITIVE))
    };
    let speeds: Vec<f64> = (0..blocks.measured.len()).filter_map(speed).collect();
    let best = speeds.iter().copied().fold(0.0, f64::max);
    let index = speeds.iter().position(|speed| *speed >= KNEE * best)?;
    let rows = blocks.measured.get(index)?.tokens;
    Some(rows.clamp(BLOCK_ROWS.0, BLOCK_ROWS.1))
}

#[cfg(test)]
mod tests;
