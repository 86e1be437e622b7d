//! A ledger of KV cells: how many are taken, by how many sequences each, and how many are needed
//! for an answer. Counts only; where llama.cpp keeps a cell is its own affair.

/// Cells of one KV cache. A cell shared by several sequences counts once.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    holders: Vec<Holders>,
    free: Vec<u32>,
    /// Cells with an active holder.
    active: u32,
}

/// Sequences that hold a cell, and those of them that answer a request.
#[derive(Debug, Clone, Copy, Default)]
struct Holders {
    all: u32,
    active: u32,
}

impl Cells {
    pub(super) fn new(cells: u32) -> Self {
        let holders = vec![Holders::default(); cells as usize];
        Self { holders, free: (0..cells).rev().collect(), active: 0 }
    }

    /// A free cell, now held by one active sequence.
    pub(super) fn take(&mut self) -> Option<u32> {
        let cell = self.free.pop()?;
        self.share(cell);
        Some(cell)
    }

    /// One more active sequence holds `cell`.
    pub(super) fn share(&mut self, cell: u32) {
        self.holders[cell as usize].all += 1;
        self.wake(cell);
    }

    /// One active sequence fewer holds `cell`.
    pub(super) fn give(&mut self, cell: u32) {
        self.rest(cell);
        let holders = &mut self.holders[cell as usize];
        holders.all -= 1;
        if holders.all == 0 {
            self.free.push(cell);
        }
    }

    /// An active holder of `cell` is kept as a prefix from now on.
    pub(super) fn rest(&mut self, cell: u32) {
        let holders = &mut self.holders[cell as usize];
        holders.active -= 1;
        self.active -= u32::from(holders.active == 0);
    }

    /// A kept holder of `cell` is active from now on.
    pub(super) fn wake(&mut self, cell: u32) {
        let holders = &mut self.holders[cell as usize];
        self.active += u32::from(holders.active == 0);
        holders.active += 1;
    }

    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Cells that answers need; the others that are taken can be had when room is needed.
    pub(super) fn active(&self) -> u32 {
        self.active
    }

    pub(super) fn total(&self) -> u32 {
        self.holders.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_cell_is_free_when_its_last_holder_leaves() {
        let mut cells = Cells::new(2);
        let cell = cells.take().unwrap();
        cells.share(cell);
        cells.give(cell);
        assert_eq!(cells.free(), 1);
        cells.give(cell);
        assert_eq!(cells.free(), 2);
    }

    #[test]
    fn a_cell_is_active_while_one_of_its_holders_is() {
        let mut cells = Cells::new(2);
        let cell = cells.take().unwrap();
        cells.share(cell);
        cells.rest(cell);
        assert_eq!((cells.active(), cells.free()), (1, 1));
        cells.rest(cell);
        assert_eq!((cells.active(), cells.free()), (0, 1), "kept, and needed by nobody");
        cells.wake(cell);
        assert_eq!(cells.active(), 1);
    }

    #[test]
    fn no_cell_is_given_twice() {
        let mut cells = Cells::new(3);
        let taken: Vec<_> = std::iter::from_fn(|| cells.take()).collect();
        assert_eq!(taken.len(), 3);
        assert!(taken[0] != taken[1] && taken[1] != taken[2] && taken[0] != taken[2]);
    }
}
