//! How much the head keeps of a block: rows to others take time on the cable, its own do not. One
//! number, a worker's speed as placing sees it; and how long a block then takes.

/// Least speed of a worker beside the head: it is there for its memory as well.
const LEAST: f64 = 0.05;

/// A block of one layer, as its experts are divided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Different experts that the head's GPU does not have.
    pub experts: f64,
    /// One of them at the head, and at a worker.
    pub head_us: f64,
    pub worker_us: f64,
    /// The rows of one on their way back.
    pub answer_us: f64,
    /// What no share makes shorter: the round trip, and rows on their way there.
    pub fixed_us: f64,
    pub workers: u32,
}

impl Block {
    /// When its experts are divided: all compute at once, workers `share` of them, evenly.
    pub fn divided_us(&self, share: f64) -> f64 {
        let sent = self.experts * share;
        let each_us = self.worker_us / f64::from(self.workers.max(1)) + self.answer_us;
        let there_us = if sent > 0.0 { self.fixed_us + sent * each_us } else { 0.0 };
        there_us.max((self.experts - sent) * self.head_us)
    }

    /// Its mean over whole layers, of which workers have `share`: one computes, others wait.
    pub fn whole_us(&self, share: f64) -> f64 {
        let there_us = self.fixed_us + self.experts * (self.worker_us + self.answer_us);
        share * there_us + (1.0 - share) * self.experts * self.head_us
    }
}

/// Speed of each worker beside the head's 1 with which both are done at once:
///
/// ```text
/// h · head = fixed + n · (worker / workers + answer),   h + n = experts
/// ```
pub fn worker_speed(block: &Block) -> f64 {
    let Block { experts, head_us, worker_us, answer_us, fixed_us, workers } = *block;
    let workers = f64::from(workers.max(1));
    let each_us = worker_us / workers + answer_us;
    let kept = (fixed_us + experts * each_us) / (head_us + each_us).max(f64::MIN_POSITIVE);
    let sent = (experts - kept).max(0.0);
    (sent / workers / kept.max(f64::MIN_POSITIVE)).max(LEAST)
}

/// Hidden rows that travel to all workers together: a worker gets a token's row if it has one of its
/// `used` experts, and hosts have about the same.
pub fn rows_there(streams: u32, used: u32, workers: u32) -> f64 {
    let workers = f64::from(workers);
    let has_none = (1.0 - 1.0 / (workers + 1.0)).powf(f64::from(used));
    workers * f64::from(streams) * (1.0 - has_none)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Block = Block {
        experts: 8.0,
        head_us: 200.0,
        worker_us: 200.0,
        answer_us: 50.0,
        fixed_us: 300.0,
        workers: 2,
    };

    #[test]
    fn head_and_workers_are_done_at_once() {
        // h · 200 = 300 + (8 − h) · 150: h = 30 / 7, and the others have 13 / 7 each.
        assert!((worker_speed(&BLOCK) - 13.0 / 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_free_cable_makes_hosts_equal_and_a_slow_one_leaves_the_head_alone() {
        let free = Block { answer_us: 0.0, fixed_us: 0.0, ..BLOCK };
        assert!((worker_speed(&free) - 1.0).abs() < 1e-9);
        let slow = Block { fixed_us: 2000.0, ..BLOCK };
        assert_eq!(worker_speed(&slow), LEAST);
        let fast = Block { worker_us: 50.0, ..free };
        assert!((worker_speed(&fast) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_divided_block_is_as_long_as_its_slowest_part_and_whole_layers_take_turns() {
        // Four here, 4 · 200; four there, 300 + 4 · (100 + 50).
        assert_eq!(BLOCK.divided_us(0.5), 900.0);
        assert_eq!(BLOCK.divided_us(0.0), 1600.0);
        // Half of the layers 1600, the others 300 + 8 · 250.
        assert_eq!(BLOCK.whole_us(0.5), 1950.0);
    }

    #[test]
    fn few_experts_of_a_token_are_with_few_of_many_workers() {
        // One worker and the head: a token of two experts has none there one time in four.
        assert!((rows_there(16, 2, 1) - 12.0).abs() < 1e-9);
        assert!(rows_there(1, 4, 8) < 4.0);
        assert!(rows_there(1, 64, 8) > 7.9);
    }
}
