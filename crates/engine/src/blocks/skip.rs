//! Pairs of a block that are left out (`--skip-cold`): weighs all of them by the layer's router and
//! asks who decides. Chooses nothing.
//!
//! llama.cpp sums a token's rows by the router's weights, so a row that is left out is zero. The
//! token's other rows keep their weights: scaled up to make up for it they were measured to be
//! further from the whole model (docs/decisions/0106).

use crate::blocks::gates::Gates;
use motley_ggml::{CpuUnit, ExpertBlock};
use motley_sched::{LeftOut, RoutedPairs};
use std::sync::Arc;

/// How far a score that was not chosen may be above one that was, as part of it: the router's
/// products are summed in another order here.
const SLACK: f32 = 1e-3;
/// Tokens after which a router that is mostly not understood is an error.
const TRIED_TOKENS: u64 = 64;

/// Leaves pairs out of the blocks of one session.
pub(crate) struct Skipper {
    gates: Arc<Gates>,
    logits: Vec<f32>,
    /// Scratch for group-limited routers.
    groups: Vec<(f32, usize)>,
    /// Of the block at hand, `[tokens][slots]`.
    experts: Vec<u16>,
    weights: Vec<f32>,
    left_out: Vec<bool>,
    /// Tokens looked at, and those whose experts the router would choose by what is known of it.
    tried: u64,
    understood: u64,
    sum: LeftOut,
}

/// Its router does not choose what was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "--skip-cold cannot tell which experts count little: of {tried} tokens the router chose other \
     experts than its matrix says for {}; leave it out", tried - understood
)]
pub(crate) struct NotUnderstood {
    tried: u64,
    understood: u64,
}

impl Skipper {
    pub(crate) fn new(gates: Arc<Gates>) -> Self {
        Self {
            gates,
            logits: Vec::new(),
            groups: Vec::new(),
            experts: Vec::new(),
            weights: Vec::new(),
            left_out: Vec::new(),
            tried: 0,
            understood: 0,
            sum: LeftOut::default(),
        }
    }

    /// Sets aside the pairs of `block` that `choose` names; whether there are any. A block of which
    /// rows are with others already stays whole, as one that cannot be weighed because the work
    /// was cancelled.
    pub(crate) fn leave_out(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
        choose: impl FnOnce(&RoutedPairs<'_>, &mut Vec<bool>) -> LeftOut,
    ) -> Result<bool, NotUnderstood> {
        self.left_out.clear();
        if block.has_aside() || !self.weigh(block, cpu) {
            return Ok(false);
        }
        let Self { tried, understood, .. } = *self;
        if tried >= TRIED_TOKENS && understood * 2 < tried {
            return Err(NotUnderstood { tried, understood });
        }
        let slots = block.slots();
        let layer = block.layer() as u16;
        let pairs = RoutedPairs { layer, slots, experts: &self.experts, weights: &self.weights };
        let sum = choose(&pairs, &mut self.left_out);
        self.sum.add(sum);
        let pairs = (0..).zip(&self.left_out).filter(|(_, left)| **left);
        pairs.for_each(|(pair, _): (usize, _)| block.set_aside(pair / slots, pair % slots));
        Ok(sum.pairs > 0)
    }

    /// Writes the rows that were left out, once all others are there.
    pub(crate) fn drop_rows(&self, block: &mut ExpertBlock<'_>) {
        let slots = block.slots();
        let pairs = (0..).zip(&self.left_out).filter(|(_, left)| **left);
        pairs.for_each(|(pair, _): (usize, _)| block.drop_row(pair / slots, pair % slots));
    }

    /// What was left out so far.
    pub(crate) fn sum(&self) -> LeftOut {
        self.sum
    }

    /// The weights of every pair, up to a factor for each token.
    fn weigh(&mut self, block: &ExpertBlock<'_>, cpu: &mut CpuUnit) -> bool {
        let layer = block.layer() as usize;
        let Some(rows) = self.gates.rows(layer) else { return false };
        if cpu.project(block, rows, &mut self.logits).is_err() {
            return false;
        }
        self.experts.clear();
        self.weights.clear();
        for (token, scores) in self.logits.chunks_exact_mut(self.gates.experts()).enumerate() {
            let first = self.experts.len();
            self.experts.extend((0..block.slots()).map(|slot| block.expert(token, slot) as u16));
            let chosen = &self.experts[first..];
            self.gates.score(layer, scores);
            self.weights.extend(chosen.iter().map(|&expert| scores[usize::from(expert)]));
            self.gates.bias_choice(layer, scores);
            self.gates.limit_groups(scores, &mut self.groups);
            self.tried += 1;
            match would_choose(scores, chosen) {
                true => self.understood += 1,
                false => self.weights[first..].fill(f32::NAN),
            }
        }
        true
    }
}

/// Whether no expert that was not chosen has a higher score than one that was. Scores of those that
/// were are forgotten.
fn would_choose(scores: &mut [f32], chosen: &[u16]) -> bool {
    let own = chosen.iter().map(|&expert| scores[usize::from(expert)]);
    let least = own.fold(f32::INFINITY, f32::min);
    chosen.iter().for_each(|&expert| scores[usize::from(expert)] = f32::NEG_INFINITY);
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    least >= most - SLACK * most.abs() || most == f32::NEG_INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_understood_where_the_chosen_have_the_highest_scores() {
        let scores = [0.1, 0.4, 0.3, 0.3];
        assert!(would_choose(&mut scores.clone(), &[1, 2]), "of equal ones either");
        assert!(would_choose(&mut scores.clone(), &[3, 1]));
        assert!(!would_choose(&mut scores.clone(), &[1, 0]));
        assert!(would_choose(&mut scores.clone(), &[0, 1, 2, 3]), "all of them");
    }
}
