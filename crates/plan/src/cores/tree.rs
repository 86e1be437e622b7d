//! A4: the candidates that grow from the fastest choice, at most two steps away.
//!
//! | step | what changes | at level |
//! |---|---|---|
//! | a | the smallest core is dropped | 1 |
//! | b | the two smallest are dropped | 1 |
//! | c | one core is swapped for a smaller one of another selected cluster | 1, 2 |
//! | d | a whole selected cluster is swapped for an unselected one of smaller cores | 1, 2 |
//!
//! Efficiency cores are left out: the source's example applies a, b and c to its root, and d
//! would apply too if they were not. A d that leaves a single core is left out as well: the
//! same example has five candidates, not six, and one smaller core alone is never nearly as
//! fast. Where only the number of threads can be chosen, a alone remains.

use super::set::{CorePool, CoreSet, Freedom};

/// Most candidates; real machines have three to ten.
pub const MAX_CANDIDATES: usize = 64;

/// The root and everything that grows from it, without repetition, level by level.
pub fn candidates(pool: &CorePool, root: &CoreSet) -> Vec<CoreSet> {
    let mut found = vec![root.clone()];
    let mut first: Vec<CoreSet> = root.without_smallest(1).into_iter().collect();
    if pool.freedom == Freedom::Affinity {
        first.extend(root.without_smallest(2));
        first.extend(swaps(pool, root));
    }
    for set in &first {
        add(&mut found, set.clone());
    }
    if pool.freedom == Freedom::Affinity {
        first.iter().flat_map(|set| swaps(pool, set)).for_each(|set| add(&mut found, set));
    }
    found
}

fn add(found: &mut Vec<CoreSet>, set: CoreSet) {
    if found.len() < MAX_CANDIDATES && !found.contains(&set) {
        found.push(set);
    }
}

/// Steps c and d from `set`, for every pair of a bigger and a smaller considered cluster.
fn swaps<'a>(pool: &'a CorePool, set: &'a CoreSet) -> impl Iterator<Item = CoreSet> + 'a {
    let count = pool.considered();
    let pairs = (0..count).flat_map(move |big| (big + 1..count).map(move |small| (big, small)));
    pairs.filter(|(big, _)| set.uses(*big)).filter_map(|(big, small)| {
        if set.uses(small) {
            swap_core(pool, set, big, small)
        } else {
            swap_all(pool, set, big, small)
        }
    })
}

fn swap_core(pool: &CorePool, set: &CoreSet, big: usize, small: usize) -> Option<CoreSet> {
    let mut swapped = set.clone();
    swapped.per_cluster[big] -= 1;
    swapped.per_cluster[small] += 1;
    (swapped.per_cluster[small] <= pool.clusters[small].cores).then_some(swapped)
}

fn swap_all(pool: &CorePool, set: &CoreSet, big: usize, small: usize) -> Option<CoreSet> {
    let mut swapped = set.clone();
    swapped.per_cluster.swap(big, small);
    let fits = swapped.per_cluster[small] <= pool.clusters[small].cores;
    (fits && swapped.cores() > 1).then_some(swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(machine: &str, freedom: Freedom, root: &[u32]) -> Vec<Vec<u32>> {
        let pool = CorePool::of(&motley_machine::find(machine).unwrap(), freedom).unwrap();
        let found = candidates(&pool, &CoreSet { per_cluster: root.to_vec() });
        found.into_iter().map(|set| set.per_cluster).collect()
    }

    #[test]
    fn the_published_example_has_five_candidates() {
        let found = tree("mate-40-pro", Freedom::Affinity, &[1, 2, 0]);
        assert_eq!(found, [[1, 2, 0], [1, 1, 0], [1, 0, 0], [0, 3, 0], [0, 2, 0]]);
    }

    #[test]
    fn a_whole_cluster_is_swapped() {
        assert!(tree("honor-v30-pro", Freedom::Affinity, &[2, 0, 0]).contains(&vec![0, 2, 0]));
        assert!(tree("meizu-21", Freedom::Affinity, &[1, 1, 0, 0]).contains(&vec![1, 0, 1, 0]));
    }

    #[test]
    fn threads_can_only_be_fewer() {
        assert_eq!(tree("iphone-15", Freedom::Threads, &[2, 0]), [[2, 0], [1, 0]]);
        assert_eq!(tree("two-core-24gb", Freedom::Affinity, &[2]), [[2], [1]]);
        assert_eq!(tree("two-core-24gb", Freedom::Affinity, &[1]), [[1]]);
    }
}
