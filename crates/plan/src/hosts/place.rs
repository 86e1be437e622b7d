//! Every expert on one host, as far as there is room: expert by expert, as EPLB packs them, so that
//! hosts compute at once; or whole layers, which go over the cable fewer times.

use std::cmp::Reverse;

use motley_sched::remote::ExpertSet;
use motley_trace::ExpertGrid;

use super::{Host, LayerLoads, all_experts, weight};

/// What each host has: the most used first, each to the host that would be done first in its layer and
/// has room. `uses` are counts, dense by grid index; of experts with the same count the first of every
/// layer come first, so that room runs out in all layers alike. Where all hosts together have too
/// little room, the least used are nobody's.
pub fn by_use(grid: ExpertGrid, hosts: &[Host], uses: &[u64]) -> Vec<ExpertSet> {
    let mut order: Vec<_> = all_experts(grid).collect();
    order.sort_by_key(|key| (Reverse(uses[grid.index(*key)]), key.expert));
    let mut loads = LayerLoads::new(grid, hosts.len());
    let mut room: Vec<u32> = hosts.iter().map(|host| host.slots).collect();
    let mut placed = vec![ExpertSet::default(); hosts.len()];
    for key in order {
        let own = weight(uses[grid.index(key)]);
        let done_at = |host: usize| (loads.of(key.layer, host) + own) / hosts[host].speed;
        let with_room = (0..hosts.len()).filter(|&host| room[host] > 0);
        let first = with_room
            .min_by(|&a, &b| done_at(a).total_cmp(&done_at(b)).then(room[b].cmp(&room[a])));
        let Some(host) = first else { break };
        room[host] -= 1;
        loads.add(key.layer, host, own);
        placed[host].insert(usize::from(key.layer), key.expert);
    }
    placed
}

/// What each host has when neighbouring layers stay together. What is left when no host has room for
/// a whole layer is divided over the room that remains; then the last layers are nobody's.
pub fn by_layers(grid: ExpertGrid, hosts: &[Host]) -> Vec<ExpertSet> {
    let experts = u32::from(grid.experts);
    let counts = layer_counts(grid, hosts);
    let mut placed = vec![ExpertSet::default(); hosts.len()];
    let mut layers = 0..usize::from(grid.layers);
    for (set, &count) in placed.iter_mut().zip(&counts) {
        let own = layers.by_ref().take(count as usize);
        *set = ExpertSet::of_layers(own, 0..grid.experts);
    }
    let left = |(host, count): (&Host, &u32)| host.slots - count * experts;
    let mut room: Vec<u32> = hosts.iter().zip(&counts).map(left).collect();
    for layer in layers {
        for expert in 0..grid.experts {
            let Some(host) = room.iter().position(|&room| room > 0) else { return placed };
            room[host] -= 1;
            placed[host].insert(layer, expert);
        }
    }
    placed
}

/// How many whole layers each host has: one by one to whoever would be done first.
fn layer_counts(grid: ExpertGrid, hosts: &[Host]) -> Vec<u32> {
    let experts = u32::from(grid.experts).max(1);
    let mut counts = vec![0; hosts.len()];
    for _ in 0..grid.layers {
        let done_at = |host: usize| f64::from(counts[host] + 1) / hosts[host].speed;
        let fits = |host: &usize| (counts[*host] + 1) * experts <= hosts[*host].slots;
        let first =
            (0..hosts.len()).filter(fits).min_by(|&a, &b| done_at(a).total_cmp(&done_at(b)));
        let Some(host) = first else { break };
        counts[host] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use motley_trace::ExpertKey;
    use proptest::prelude::*;

    use super::*;

    fn even(slots: &[u32]) -> Vec<Host> {
        slots.iter().map(|&slots| Host { slots, speed: 1.0 }).collect()
    }

    /// The hosts that have a key.
    fn owners(placed: &[ExpertSet], key: ExpertKey) -> Vec<usize> {
        let has = |host: &usize| placed[*host].contains(usize::from(key.layer), key.expert);
        (0..placed.len()).filter(has).collect()
    }

    #[test]
    fn neighbouring_layers_stay_together() {
        let grid = ExpertGrid { layers: 6, experts: 4 };
        let hosts = [Host { slots: 24, speed: 2.0 }, Host { slots: 24, speed: 1.0 }];
        let placed = by_layers(grid, &hosts);
        let of = |layer| owners(&placed, ExpertKey::new(layer, 3));
        assert_eq!([0, 1, 2, 3, 4, 5].map(of), [[0], [0], [0], [0], [1], [1]]);
        // Two layers and a half each: the third is divided, the last one is nobody's.
        let placed = by_layers(grid, &even(&[10, 10]));
        assert_eq!(owners(&placed, ExpertKey::new(4, 1)), [0]);
        assert_eq!(owners(&placed, ExpertKey::new(4, 2)), [1]);
        assert!(owners(&placed, ExpertKey::new(5, 0)).is_empty());
    }

    #[test]
    fn the_most_used_of_a_layer_are_apart_and_a_fast_host_has_more() {
        let grid = ExpertGrid { layers: 1, experts: 6 };
        let uses = [50, 50, 20, 20, 5, 5];
        let placed = by_use(grid, &even(&[6, 6]), &uses);
        assert_ne!(owners(&placed, ExpertKey::new(0, 0)), owners(&placed, ExpertKey::new(0, 1)));
        assert_eq!((placed[0].count(), placed[1].count()), (3, 3));
        let hosts = [Host { slots: 6, speed: 4.0 }, Host { slots: 6, speed: 1.0 }];
        let placed = by_use(grid, &hosts, &uses);
        assert!(placed[0].count() > placed[1].count());
    }

    #[test]
    fn experts_used_alike_are_divided_in_every_layer_and_so_is_missing_room() {
        let grid = ExpertGrid { layers: 3, experts: 8 };
        // As fast as the other, with room for a quarter.
        let placed = by_use(grid, &even(&[18, 6]), &[0; 24]);
        let of = |layer| {
            let has = |expert: &u16| placed[1].contains(layer, *expert);
            (0..8).filter(has).count()
        };
        assert_eq!([0, 1, 2].map(of), [2, 2, 2]);
    }

    /// The least that the busiest host can have, by trying everything.
    fn best(weights: &[f64], loads: &mut [f64]) -> f64 {
        let Some((first, rest)) = weights.split_first() else {
            return loads.iter().copied().fold(0.0, f64::max);
        };
        let mut least = f64::INFINITY;
        for host in 0..loads.len() {
            loads[host] += first;
            least = least.min(best(rest, loads));
            loads[host] -= first;
        }
        least
    }

    fn hosts() -> impl Strategy<Value = Vec<Host>> {
        let host = (0_u32..40, 0.1..4.0f64).prop_map(|(slots, speed)| Host { slots, speed });
        prop::collection::vec(host, 1..6)
    }

    proptest! {
        #[test]
        fn what_fits_is_placed_once_and_nobody_has_more_than_room_for(
            hosts in hosts(),
            layers in 1_u16..5,
            uses in prop::collection::vec(0_u64..1000, 4 * 16),
            profiled in any::<bool>(),
        ) {
            let grid = ExpertGrid { layers, experts: 16 };
            let placed =
                if profiled { by_use(grid, &hosts, &uses) } else { by_layers(grid, &hosts) };
            for (host, own) in hosts.iter().zip(&placed) {
                prop_assert!(own.count() <= host.slots);
            }
            let once: Vec<_> = all_experts(grid).filter(|&key| owners(&placed, key).len() == 1).collect();
            let room: u32 = hosts.iter().map(|host| host.slots).sum();
            prop_assert_eq!(once.len(), (room as usize).min(grid.len()));
            prop_assert_eq!(placed.iter().map(ExpertSet::count).sum::<u32>(), once.len() as u32);
            if profiled {
                let used = |key: &ExpertKey| uses[grid.index(*key)];
                let least = once.iter().map(used).min().unwrap_or(0);
                let mut nobodys = all_experts(grid).filter(|&key| owners(&placed, key).is_empty());
                prop_assert!(room == 0 || nobodys.all(|key| used(&key) <= least));
            }
        }

        #[test]
        fn with_room_for_all_the_busiest_has_at_most_four_thirds_of_the_least_possible(
            uses in prop::collection::vec(0_u64..100, 1..8),
            workers in 1_usize..4,
        ) {
            let grid = ExpertGrid { layers: 1, experts: uses.len() as u16 };
            let placed = by_use(grid, &even(&vec![8; workers]), &uses);
            let load = |own: &ExpertSet| -> f64 {
                let has = |expert: &u16| own.contains(0, *expert);
                (0..grid.experts).filter(has).map(|expert| weight(uses[usize::from(expert)])).sum()
            };
            let busiest = placed.iter().map(load).fold(0.0, f64::max);
            let weights: Vec<f64> = uses.iter().map(|&uses| weight(uses)).collect();
            let least = best(&weights, &mut vec![0.0; workers]);
            prop_assert!(busiest <= least * 4.0 / 3.0 + 1e-9, "{busiest} {least}");
        }
    }
}
