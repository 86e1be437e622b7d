//! Who has which experts: the head in its own memories, its workers in theirs. Put together from
//! placing and copies.

use motley_sched::remote::ExpertSet;
use motley_trace::ExpertGrid;

use super::{Block, Host, by_layers, by_use, replicate};

/// A model and the hosts that share it.
#[derive(Debug, Clone, Copy)]
pub struct Division<'a> {
    /// Layers with experts only.
    pub grid: ExpertGrid,
    /// The head's memories: its GPUs as one where they have experts, its CPU last.
    pub head: &'a [Host],
    pub workers: &'a [Host],
    pub uses: Uses<'a>,
    /// Whether room that is left over has copies.
    pub replicas: bool,
}

/// What is known of how often experts are used.
#[derive(Debug, Clone, Copy)]
pub enum Uses<'a> {
    /// Counts of a profile, dense by grid index.
    Counted(&'a [u64]),
    /// Nobody counted. The block, with the slowest of the workers, says whether to divide every layer
    /// or to keep layers whole.
    Unknown(Block),
}

impl Division<'_> {
    /// What each worker keeps; the head has the others. Copies go by use, so there are none where
    /// nobody counted.
    pub fn kept(&self) -> Vec<ExpertSet> {
        let Self { grid, head, workers, uses, replicas } = *self;
        let rooms = self.rooms();
        match uses {
            Uses::Counted(uses) => {
                let mut kept = by_use(grid, &rooms, uses).split_off(head.len());
                if replicas {
                    replicate(grid, workers, uses, &mut kept);
                }
                kept
            }
            Uses::Unknown(block) => {
                let alike = vec![0; grid.len()];
                let divided = by_use(grid, &rooms, &alike).split_off(head.len());
                let whole = by_layers(grid, &rooms).split_off(head.len());
                let [divided_share, whole_share] = [&divided, &whole].map(|kept| self.share(kept));
                let is_faster = block.divided_us(divided_share) < block.whole_us(whole_share);
                if is_faster { divided } else { whole }
            }
        }
    }

    /// Part of all experts that workers have.
    fn share(&self, kept: &[ExpertSet]) -> f64 {
        let there: u32 = kept.iter().map(ExpertSet::count).sum();
        f64::from(there) / (self.grid.len() as f64).max(1.0)
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

    const BLOCK: Block = Block {
        experts: 4.0,
        head_us: 100.0,
        worker_us: 100.0,
        answer_us: 10.0,
        fixed_us: 50.0,
        workers: 1,
    };

    fn kept(head: &[Host], workers: &[Host], uses: Uses<'_>) -> Vec<u32> {
        let division = Division { grid: GRID, head, workers, uses, replicas: false };
        division.kept().iter().map(ExpertSet::count).collect()
    }

    #[test]
    fn everybody_has_a_share_by_room_and_what_fits_nowhere_is_divided_as_well() {
        let even = [1; 32];
        assert_eq!(kept(&[host(16)], &[host(16)], Uses::Counted(&even)), [16]);
        // A quarter of the model in memory: each reads as many again from its disk.
        assert_eq!(kept(&[host(4)], &[host(4)], Uses::Counted(&even)), [16]);
        assert_eq!(kept(&[host(2)], &[host(6)], Uses::Counted(&even)), [24]);
        assert_eq!(kept(&[host(16)], &[host(8), host(8)], Uses::Unknown(BLOCK)), [8, 8]);
    }

    #[test]
    fn where_nobody_counted_every_layer_is_divided_unless_the_cable_is_slow() {
        let layers = |fixed_us: f64| {
            let division = Division {
                grid: GRID,
                head: &[host(16)],
                workers: &[host(16)],
                uses: Uses::Unknown(Block { fixed_us, ..BLOCK }),
                replicas: true,
            };
            let kept = division.kept();
            let of = |layer| (0..8).filter(|&expert| kept[0].contains(layer, expert)).count();
            [0, 1, 2, 3].map(of)
        };
        assert_eq!(layers(50.0), [4, 4, 4, 4]);
        // A round trip in two layers of four costs less than in all.
        assert_eq!(layers(2000.0), [0, 0, 8, 8]);
    }

    #[test]
    fn a_gpu_takes_the_most_used_and_has_no_disk() {
        let mut uses = [1; 32];
        uses[..4].fill(100);
        let gpu = Host { slots: 4, speed: 50.0 };
        assert_eq!(kept(&[gpu, host(14)], &[host(14)], Uses::Counted(&uses)), [14]);
        assert_eq!(kept(&[gpu, host(7)], &[host(7)], Uses::Counted(&uses)), [14]);
    }

    #[test]
    fn room_that_is_left_has_copies() {
        let uses: Vec<u64> = (0..32).collect();
        let workers = [host(32), host(32)];
        let division = Division {
            grid: GRID,
            head: &[host(0)],
            workers: &workers,
            uses: Uses::Counted(&uses),
            replicas: true,
        };
        // The one that nobody used has none.
        let counts: Vec<u32> = division.kept().iter().map(ExpertSet::count).collect();
        assert_eq!(counts.iter().sum::<u32>(), 63);
    }
}
