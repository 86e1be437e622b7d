//! The rows of a block, grouped by expert and cut into pieces. Holds no bytes.

use super::Cut;
use crate::seam::block::{ExpertBlock, MAX_MATRICES};
use std::ffi::c_void;
use std::ptr::null_mut;

/// Pieces of a rearranged expert have so many times the rows from which rearranging pays: it is
/// done again for each.
const REARRANGED_ROWS: usize = 4;

/// Some rows of one expert, computed together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) expert: u32,
    /// Its rows are `rows` of [`Jobs::rows`] from here.
    pub(super) first: usize,
    pub(super) rows: usize,
    /// Whether its expert has rows enough for rearranged weights. By all rows of the block: whatever
    /// else is ready changes no bit.
    pub(super) rearranges: bool,
    /// Where the expert's matrices begin, in the block's order.
    pub(super) weights: [*mut c_void; MAX_MATRICES],
}

/// Pieces in the order in which they are taken up; grows to the largest block seen.
#[derive(Default)]
pub(super) struct Jobs {
    /// (token, slot), expert after expert.
    rows: Vec<(u32, u32)>,
    jobs: Vec<Job>,
    /// By expert: rows, then where the next one goes.
    places: Vec<usize>,
}

/// An expert number the block's weights do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnknownExpert(pub(super) u32);

impl Jobs {
    /// Groups all rows of `block` whose expert `wanted` knows, in pieces as `cut` says.
    /// Largest pieces first, so that threads end together.
    pub(super) fn collect(
        &mut self,
        block: &ExpertBlock<'_>,
        experts: usize,
        wanted: impl Fn(u32) -> bool,
        cut: Cut,
    ) -> Result<(), UnknownExpert> {
        self.group(block.rows(), experts, wanted)?;
        self.cut(cut);
        Ok(())
    }

    /// The same of the given rows.
    pub(super) fn collect_rows(
        &mut self,
        block: &ExpertBlock<'_>,
        experts: usize,
        rows: &[(usize, usize)],
        cut: Cut,
    ) -> Result<(), UnknownExpert> {
        let with_expert =
            |&(token, slot): &(usize, usize)| (token, slot, block.expert(token, slot));
        self.group(rows.iter().map(with_expert), experts, |_| true)?;
        self.cut(cut);
        Ok(())
    }

    pub(super) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    pub(super) fn jobs_mut(&mut self) -> &mut [Job] {
        &mut self.jobs
    }

    /// Whether some expert's weights are to be rearranged.
    pub(super) fn rearranges(&self) -> bool {
        self.jobs.iter().any(|job| job.rearranges)
    }

    /// (token, slot) of a piece's rows.
    pub(super) fn rows(&self, job: &Job) -> &[(u32, u32)] {
        &self.rows[job.first..job.first + job.rows]
    }

    /// Rows by expert: counted, then put in their places.
    fn group(
        &mut self,
        rows: impl Iterator<Item = (usize, usize, u32)> + Clone,
        experts: usize,
        wanted: impl Fn(u32) -> bool,
    ) -> Result<(), UnknownExpert> {
        self.places.clear();
        self.places.resize(experts, 0);
        let mut count = 0;
        for (_, _, expert) in rows.clone().filter(|row| wanted(row.2)) {
            *self.places.get_mut(expert as usize).ok_or(UnknownExpert(expert))? += 1;
            count += 1;
        }
        self.jobs.clear();
        let mut first = 0;
        for (expert, place) in self.places.iter_mut().enumerate().filter(|(_, rows)| **rows > 0) {
            let rows = std::mem::replace(place, first);
            let weights = [null_mut(); MAX_MATRICES];
            let expert = expert as u32;
            self.jobs.push(Job { expert, first, rows, rearranges: false, weights });
            first += rows;
        }
        self.rows.clear();
        self.rows.resize(count, (0, 0));
        for (token, slot, expert) in rows.filter(|row| wanted(row.2)) {
            let place = &mut self.places[expert as usize];
            self.rows[*place] = (token as u32, slot as u32);
            *place += 1;
        }
        Ok(())
    }

    /// Equal pieces, none smaller than asked: a remainder of few rows would read all weights again.
    fn cut(&mut self, Cut { block_rows, rearrange_from }: Cut) {
        let block_rows = (block_rows as usize).max(1);
        let from = rearrange_from.map_or(usize::MAX, |from| (from as usize).max(1));
        let rearranged_rows = block_rows.max(from.saturating_mul(REARRANGED_ROWS));
        for index in 0..self.jobs.len() {
            let rearranges = self.jobs[index].rows >= from;
            let job = Job { rearranges, ..self.jobs[index] };
            let pieces = job.rows / if rearranges { rearranged_rows } else { block_rows };
            let pieces = pieces.max(1);
            let bounds = |piece: usize| job.rows * piece / pieces;
            self.jobs[index] = Job { rows: bounds(1), ..job };
            for piece in 1..pieces {
                let (begins, ends) = (bounds(piece), bounds(piece + 1));
                let (first, rows) = (job.first + begins, ends - begins);
                self.jobs.push(Job { first, rows, ..job });
            }
        }
        self.jobs.sort_by_key(|job| std::cmp::Reverse(job.rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(experts: &[u32], cut: Cut) -> Jobs {
        let mut jobs = Jobs::default();
        let rows = experts.iter().enumerate().map(|(token, &expert)| (token, 0, expert));
        jobs.group(rows, 8, |expert| expert != 7).unwrap();
        jobs.cut(cut);
        jobs
    }

    #[test]
    fn every_wanted_row_is_in_one_piece_of_its_expert() {
        let experts = [3, 1, 3, 3, 7, 1, 3, 3, 0];
        let jobs = grouped(&experts, Cut::of(2));
        let sizes: Vec<_> = jobs.jobs().iter().map(|job| (job.expert, job.rows)).collect();
        assert_eq!(sizes, [(3, 3), (1, 2), (3, 2), (0, 1)], "five rows in pieces of about two");
        let mut seen = Vec::new();
        for job in jobs.jobs() {
            for &(token, _) in jobs.rows(job) {
                assert_eq!(experts[token as usize], job.expert);
                seen.push(token);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 5, 6, 7, 8]);
    }

    #[test]
    fn experts_with_many_rows_are_rearranged_and_cut_less() {
        let experts: Vec<u32> = [vec![3; 17], vec![1; 2], vec![0; 1]].concat();
        let jobs = grouped(&experts, Cut { block_rows: 2, rearrange_from: Some(2) });
        let found: Vec<_> =
            jobs.jobs().iter().map(|job| (job.expert, job.rows, job.rearranges)).collect();
        assert_eq!(found, [(3, 9, true), (3, 8, true), (1, 2, true), (0, 1, false)]);
        assert!(jobs.rearranges() && !grouped(&experts, Cut::of(2)).rearranges());
    }

    #[test]
    fn an_expert_beyond_the_stack_is_an_error() {
        let mut jobs = Jobs::default();
        let rows = [(0, 0, 2), (1, 0, 8)].into_iter();
        assert_eq!(jobs.group(rows, 8, |_| true), Err(UnknownExpert(8)));
    }
}
