//! AECS: stage 1 finds the fastest choice (A2), stage 2 measures the candidates that grow from it
//! (A4) and takes the cheapest that is fast enough (A1). A state machine; measures nothing.

use std::collections::VecDeque;

use motley_cost::PowerHeuristic;
use motley_machine::Power;

use super::objective::{Objective, tried};
use super::set::{CorePool, CoreSet};
use super::tree::candidates;
use super::{CoreSearch, Measurement, Selection, Tried};

/// The search. Each choice is measured once, also when both stages name it.
#[derive(Debug, Clone)]
pub struct Aecs {
    pool: CorePool,
    heuristic: PowerHeuristic,
    objective: Objective,
    measured: Vec<Tried>,
    stage: Stage,
}

#[derive(Debug, Clone)]
enum Stage {
    /// Adding cores while that helps: the fastest so far, and what is measured now.
    Fastest { best: Option<CoreSet>, now: CoreSet },
    /// Measuring candidates: all of them, and those still to come.
    Tree { tree: Vec<CoreSet>, waiting: VecDeque<CoreSet> },
}

impl Aecs {
    /// A search over `pool`, whose machine draws `power` where that is known.
    pub fn new(pool: CorePool, power: Option<Power>, objective: Objective) -> Self {
        let heuristic = PowerHeuristic::new(&pool.clusters, power);
        let now = pool.one_big_core();
        let stage = Stage::Fastest { best: None, now };
        Self { pool, heuristic, objective, measured: Vec::new(), stage }
    }

    /// The candidates of stage 2; `None` during stage 1.
    pub fn candidates(&self) -> Option<&[CoreSet]> {
        match &self.stage {
            Stage::Fastest { .. } => None,
            Stage::Tree { tree, .. } => Some(tree),
        }
    }

    fn find(&self, set: &CoreSet) -> Option<&Tried> {
        self.measured.iter().find(|tried| tried.set == *set)
    }

    fn speed(&self, set: &CoreSet) -> f64 {
        self.find(set).map_or(0.0, |tried| tried.measured.tokens_per_s)
    }

    /// A2: goes on from the faster of the two, or begins stage 2.
    fn after_stage_one(&self, best: Option<&CoreSet>, now: &CoreSet) -> Stage {
        if let Some(best) = best.filter(|best| self.speed(now) <= self.speed(best)) {
            return self.tree_from(best);
        }
        match self.pool.one_more(now) {
            Some(more) => Stage::Fastest { best: Some(now.clone()), now: more },
            None => self.tree_from(now),
        }
    }

    fn tree_from(&self, root: &CoreSet) -> Stage {
        let tree = candidates(&self.pool, root);
        let waiting = tree.iter().filter(|set| self.find(set).is_none()).cloned().collect();
        Stage::Tree { tree, waiting }
    }
}

impl CoreSearch for Aecs {
    fn next_to_measure(&self) -> Option<&CoreSet> {
        match &self.stage {
            Stage::Fastest { now, .. } => Some(now),
            Stage::Tree { waiting, .. } => waiting.front(),
        }
    }

    fn report(&mut self, measurement: Measurement) {
        let Some(set) = self.next_to_measure() else { return };
        let found = tried(set, measurement, &self.heuristic);
        self.measured.push(found);
        let next = match &mut self.stage {
            Stage::Tree { waiting, .. } => {
                waiting.pop_front();
                return;
            }
            Stage::Fastest { best, now } => (best.take(), now.clone()),
        };
        self.stage = self.after_stage_one(next.0.as_ref(), &next.1);
    }

    fn selection(&self) -> Option<Selection> {
        let tree = self.candidates().filter(|_| self.next_to_measure().is_none())?;
        let found: Option<Vec<Tried>> = tree.iter().map(|set| self.find(set).cloned()).collect();
        self.objective.choose(&found?, self.measured.len())
    }
}
