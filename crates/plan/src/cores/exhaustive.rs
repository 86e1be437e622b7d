//! Every choice of cores, efficiency cores included: what AECS is compared with. Minutes on a
//! real machine.

use motley_cost::PowerHeuristic;
use motley_machine::Power;

use super::objective::{Objective, tried};
use super::set::{CorePool, CoreSet, Freedom};
use super::{CoreSearch, Measurement, Selection, Tried};

/// Most choices a search may have.
pub const MAX_SETS: usize = 4096;

/// More choices than anybody would measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an exhaustive search would measure more than {MAX_SETS} choices of cores; leave --exhaustive out"
)]
pub struct TooManySets;

/// The search.
#[derive(Debug, Clone)]
pub struct Exhaustive {
    heuristic: PowerHeuristic,
    objective: Objective,
    sets: Vec<CoreSet>,
    measured: Vec<Tried>,
}

impl Exhaustive {
    /// A search over all choices of `pool`.
    pub fn new(
        pool: &CorePool,
        power: Option<Power>,
        objective: Objective,
    ) -> Result<Self, TooManySets> {
        let heuristic = PowerHeuristic::new(&pool.clusters, power);
        Ok(Self { heuristic, objective, sets: all_sets(pool)?, measured: Vec::new() })
    }

    /// How many choices there are.
    pub fn choices(&self) -> usize {
        self.sets.len()
    }
}

/// Every choice of at least one core.
pub fn all_sets(pool: &CorePool) -> Result<Vec<CoreSet>, TooManySets> {
    if pool.freedom == Freedom::Threads {
        return Ok(by_threads(pool));
    }
    let mut sets = vec![Vec::new()];
    for cluster in &pool.clusters {
        let counts = cluster.cores as usize + 1;
        if sets.len().saturating_mul(counts) > MAX_SETS {
            return Err(TooManySets);
        }
        sets = sets
            .iter()
            .flat_map(|set| (0..=cluster.cores).map(move |cores| [&set[..], &[cores]].concat()))
            .collect();
    }
    let sets = sets.into_iter().map(|per_cluster| CoreSet { per_cluster });
    Ok(sets.filter(|set| set.cores() > 0).collect())
}

/// Threads fill the clusters from big to small.
fn by_threads(pool: &CorePool) -> Vec<CoreSet> {
    let all: u32 = pool.clusters.iter().map(|cluster| cluster.cores).sum();
    let fill = |threads: u32| {
        let mut left = threads;
        let take = |cores: u32, left: &mut u32| {
            let taken = cores.min(*left);
            *left -= taken;
            taken
        };
        CoreSet { per_cluster: pool.clusters.iter().map(|c| take(c.cores, &mut left)).collect() }
    };
    (1..=all.min(MAX_SETS as u32)).map(fill).collect()
}

impl CoreSearch for Exhaustive {
    fn next_to_measure(&self) -> Option<&CoreSet> {
        self.sets.get(self.measured.len())
    }

    fn report(&mut self, measurement: Measurement) {
        let Some(set) = self.next_to_measure() else { return };
        let found = tried(set, measurement, &self.heuristic);
        self.measured.push(found);
    }

    fn selection(&self) -> Option<Selection> {
        if self.measured.len() < self.sets.len() {
            return None;
        }
        let mut found = self.measured.clone();
        let speed = |tried: &Tried| tried.measured.tokens_per_s;
        // The fastest first: it sets the bar.
        found.sort_by(|a, b| speed(b).total_cmp(&speed(a)));
        self.objective.choose(&found, self.measured.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_numbers_of_choices() {
        let count = |name: &str, freedom| {
            let machine = motley_machine::find(name).unwrap();
            all_sets(&CorePool::of(&machine, freedom).unwrap()).unwrap().len()
        };
        assert_eq!(count("xiaomi-15-pro", Freedom::Affinity), 20);
        assert_eq!(count("mate-40-pro", Freedom::Affinity), 39);
        assert_eq!(count("meizu-21", Freedom::Affinity), 71);
        assert_eq!(count("iphone-12", Freedom::Threads), 6);
    }
}
