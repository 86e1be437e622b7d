//! Who has which experts: the head in its own memories, its workers in theirs. Put together from
//! placing and copies.

use motley_sched::remote::ExpertSet;
use motley_trace::ExpertGrid;

use super::{Host, place, replicate};

/// A model and the hosts that share it.
#[derive(Debug, Clone, Copy)]
pub struct Division<'a> {
    /// Layers with experts only.
    pub grid: ExpertGrid,
    /// The head's memories: its GPUs as one where they have experts, its CPU last.
    pub head: &'a [Host],
    pub workers: &'a [Host],
    /// How often each expert was used before, dense by grid index; `None` where nobody counted.
    pub uses: Option<&'a [u64]>,
    /// Whether room that is left over has copies.
    pub replicas: bool,
}

impl Division<'_> {
    /// What each worker keeps; the head has the others.
    pub fn kept(&self) -> Vec<ExpertSet> {
        let Self { grid, head, workers, uses, replicas } = *self;
        let rooms = self.rooms();
        let mut kept = place(grid, &rooms, uses).split_off(head.len());
        if let (Some(uses), true) = (uses, replicas) {
            replicate(grid, workers, uses, &mut kept);
        }
        kept
    }

    /// Experts for each host. What memories do not hold together, every CPU reads from its own disk.
    fn rooms(&self) -> Vec<Host> {
        let gpus = self.head.len().saturating_sub(1);
        let mut hosts = [self.head, self.workers].concat();
        let on_gpus: u32 = hosts[..gpus].iter().map(|host| host.slots).sum();
        let room: u32 = hosts[gpus..].iter().map(|host| host.slots).sum();
        let left = (self.grid.len() as u32).saturating_sub(on_gpus);
        let scale = f64::from(left) / f64::from(room.max(1));
        for host in hosts[gpus..].iter_mut().filter(|_| scale > 1.0) {
            host.slots = (f64::from(host.slots) * scale).ceil() as u32;
        }
        hosts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: ExpertGrid = ExpertGrid { layers: 4, experts: 8 };

    fn host(slots: u32) -> Host {
        Host { slots, speed: 1.0 }
    }

    fn kept(head: &[Host], workers: &[Host], uses: Option<&[u64]>) -> Vec<u32> {
        let division = Division { grid: GRID, head, workers, uses, replicas: false };
        division.kept().iter().map(ExpertSet::count).collect()
    }

    #[test]
    fn everybody_has_a_share_by_room_and_what_fits_nowhere_is_divided_as_well() {
        let even = [1; 32];
        assert_eq!(kept(&[host(16)], &[host(16)], Some(&even)), [16]);
        // A quarter of the model in memory: each reads as many again from its disk.
        assert_eq!(kept(&[host(4)], &[host(4)], Some(&even)), [16]);
        assert_eq!(kept(&[host(2)], &[host(6)], Some(&even)), [24]);
        // Whole layers where nobody counted.
        assert_eq!(kept(&[host(16)], &[host(8), host(8)], None), [8, 8]);
    }

    #[test]
    fn a_gpu_takes_the_most_used_and_has_no_disk() {
        let mut uses = [1; 32];
        uses[..4].fill(100);
        let gpu = Host { slots: 4, speed: 50.0 };
        assert_eq!(kept(&[gpu, host(14)], &[host(14)], Some(&uses)), [14]);
        assert_eq!(kept(&[gpu, host(7)], &[host(7)], Some(&uses)), [14]);
    }

    #[test]
    fn room_that_is_left_has_copies() {
        let uses: Vec<u64> = (0..32).collect();
        let workers = [host(32), host(32)];
        let division = Division {
            grid: GRID,
            head: &[host(0)],
            workers: &workers,
            uses: Some(&uses),
            replicas: true,
        };
        // The one that nobody used has none.
        let counts: Vec<u32> = division.kept().iter().map(ExpertSet::count).collect();
        assert_eq!(counts.iter().sum::<u32>(), 63);
    }
}
