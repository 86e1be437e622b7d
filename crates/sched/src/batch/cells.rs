//! A ledger of KV cells: how many are taken, and by how many sequences each. Counts
//! only; where llama.cpp keeps a cell is its own affair.

/// Cells of one KV cache. A cell shared by several sequences counts once.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    holders: Vec<u32>,
    free: Vec<u32>,
}

impl Cells {
    pub(super) fn new(cells: u32) -> Self {
        Self { holders: vec![0; cells as usize], free: (0..cells).rev().collect() }
    }

    /// A free cell, now held once.
    pub(super) fn take(&mut self) -> Option<u32> {
        let cell = self.free.pop()?;
        self.holders[cell as usize] = 1;
        Some(cell)
    }

    /// One more sequence holds `cell`.
    pub(super) fn share(&mut self, cell: u32) {
        self.holders[cell as usize] += 1;
    }

    /// One sequence fewer holds `cell`.
    pub(super) fn give(&mut self, cell: u32) {
        let holders = &mut self.holders[cell as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(cell);
        }
    }

    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
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
    fn no_cell_is_given_twice() {
        let mut cells = Cells::new(3);
        let taken: Vec<_> = std::iter::from_fn(|| cells.take()).collect();
        assert_eq!(taken.len(), 3);
        assert!(taken[0] != taken[1] && taken[1] != taken[2] && taken[0] != taken[2]);
    }
}
