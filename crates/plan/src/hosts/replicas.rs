//! Copies of the most used experts in the room that placing has left. During a run rows go to the copy
//! whose host has fewest (`motley_sched::remote::share_out`), and a lost host costs less.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use motley_sched::remote::ExpertSet;
use motley_trace::{ExpertGrid, ExpertKey};

use super::{Host, LayerLoads, all_experts, weight};

/// Adds copies to `placed` until no room is left or every used expert is everywhere: each next one of
/// the expert with the highest load per copy, on the host with the least load in its layer that
/// lacks it (EPLB). Experts that no host of `placed` has stay where they are.
pub fn replicate(grid: ExpertGrid, hosts: &[Host], uses: &[u64], placed: &mut [ExpertSet]) {
    let left = |(host, own): (&Host, &ExpertSet)| host.slots.saturating_sub(own.count());
    let mut room: Vec<u32> = hosts.iter().zip(&*placed).map(left).collect();
    let mut loads = LayerLoads::new(grid, hosts.len());
    let mut waiting = BinaryHeap::new();
    for key in all_experts(grid) {
        let (copies, uses) = (owners(placed, key), uses[grid.index(key)]);
        let each = weight(uses) / copies.len().max(1) as f64;
        copies.iter().for_each(|&host| loads.add(key.layer, host, each));
        if !copies.is_empty() && uses > 0 {
            waiting.push(Copied { each, copies: copies.len(), key });
        }
    }
    while let Some(Copied { each, copies, key }) = waiting.pop() {
        let has = |host: usize| placed[host].contains(usize::from(key.layer), key.expert);
        let load = |host: usize| loads.of(key.layer, host) / hosts[host].speed;
        let open = (0..hosts.len()).filter(|&host| room[host] > 0 && !has(host));
        let Some(host) = open.min_by(|&a, &b| load(a).total_cmp(&load(b))) else { continue };
        let less = each * copies as f64 / (copies + 1) as f64;
        owners(placed, key).iter().for_each(|&host| loads.add(key.layer, host, less - each));
        loads.add(key.layer, host, less);
        room[host] -= 1;
        placed[host].insert(usize::from(key.layer), key.expert);
        waiting.push(Copied { each: less, copies: copies + 1, key });
    }
}

fn owners(placed: &[ExpertSet], key: ExpertKey) -> Vec<usize> {
    let has = |host: &usize| placed[*host].contains(usize::from(key.layer), key.expert);
    (0..placed.len()).filter(has).collect()
}

/// An expert with the load of each of its copies.
#[derive(Debug, Clone, Copy)]
struct Copied {
    each: f64,
    copies: usize,
    key: ExpertKey,
}

impl Ord for Copied {
    /// By load; of equals the first in the model is greater.
    fn cmp(&self, other: &Self) -> Ordering {
        self.each.total_cmp(&other.each).then(other.key.cmp(&self.key))
    }
}

impl PartialOrd for Copied {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Copied {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Copied {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::by_use;
    use super::*;

    #[test]
    fn the_hottest_is_copied_to_the_idlest_until_its_copies_are_like_the_others() {
        let grid = ExpertGrid { layers: 1, experts: 3 };
        let hosts = [4, 2, 1].map(|slots| Host { slots, speed: 1.0 });
        let uses = [90, 40, 10];
        let mut placed = by_use(grid, &hosts, &uses);
        assert_eq!(placed.iter().map(ExpertSet::count).collect::<Vec<_>>(), [1, 1, 1]);
        replicate(grid, &hosts, &uses, &mut placed);
        // 90 → 45 each on the second, the last is full; 40 goes to the first, then 10.
        let of = |expert| owners(&placed, ExpertKey::new(0, expert));
        assert_eq!([0, 1, 2].map(of), [vec![0, 1], vec![0, 1], vec![0, 2]]);
    }

    #[test]
    fn what_only_others_have_and_what_nobody_used_is_not_copied() {
        let grid = ExpertGrid { layers: 1, experts: 2 };
        let hosts = [Host { slots: 2, speed: 1.0 }; 2];
        let mut placed = vec![ExpertSet::of_layers([0], 1..2), ExpertSet::default()];
        replicate(grid, &hosts, &[9, 0], &mut placed);
        assert_eq!((placed[0].count(), placed[1].count()), (1, 0));
    }

    proptest! {
        #[test]
        fn copies_fill_the_room_and_take_nothing_away(
            slots in prop::collection::vec(4_u32..40, 2..5),
            uses in prop::collection::vec(1_u64..1000, 16),
        ) {
            let grid = ExpertGrid { layers: 2, experts: 8 };
            let hosts: Vec<Host> =
                slots.iter().map(|&slots| Host { slots, speed: 1.0 }).collect();
            let before = by_use(grid, &hosts, &uses);
            let mut placed = before.clone();
            replicate(grid, &hosts, &uses, &mut placed);
            for (host, own) in hosts.iter().zip(&placed) {
                prop_assert!(own.count() <= host.slots);
            }
            let hottest = |placed: &[ExpertSet]| {
                let each = |key: ExpertKey| {
                    let copies = owners(placed, key).len();
                    if copies == 0 { 0.0 } else { weight(uses[grid.index(key)]) / copies as f64 }
                };
                all_experts(grid).map(each).fold(0.0, f64::max)
            };
            prop_assert!(hottest(&placed) <= hottest(&before));
            for key in all_experts(grid) {
                let (now, then) = (owners(&placed, key), owners(&before, key));
                prop_assert!(then.iter().all(|host| now.contains(host)));
                // Whoever has room has every expert that has a place at all.
                let full = |host: usize| placed[host].count() == hosts[host].slots;
                let lacks = (0..hosts.len()).filter(|host| !now.contains(host));
                prop_assert!(then.is_empty() || lacks.into_iter().all(full));
            }
        }
    }
}
