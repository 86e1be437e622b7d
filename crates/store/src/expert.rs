//! One expert's slots together: gate, up and down (or gate_up and down), with biases and
//! scales where the model has them. They are leased, filled and returned as one.

use motley_model::{ExpertTensor, Matrix, TensorPart};

use crate::arena::{Arena, Filled, SlotLease};

/// The slots of one expert, all in the same state: `SlotLease` or `Filled`.
#[derive(Debug, Clone)]
pub struct ExpertSlot<S> {
    slots: Vec<(Matrix, TensorPart, S)>,
}

/// An expert being filled.
pub type ExpertLease = ExpertSlot<SlotLease>;

/// An expert that can be read.
pub type FilledExpert = ExpertSlot<Filled>;

impl<S> ExpertSlot<S> {
    /// The slot of one matrix or part of it.
    pub fn get(&self, matrix: Matrix, part: TensorPart) -> Option<&S> {
        self.slots.iter().find(|(m, p, _)| (*m, *p) == (matrix, part)).map(|(_, _, slot)| slot)
    }

    /// All slots, in the order of the layer's tensors.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Matrix, TensorPart, &S)> {
        self.slots.iter().map(|(matrix, part, slot)| (*matrix, *part, slot))
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no slot at all.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The slots alone, in order.
    pub fn into_slots(self) -> Vec<(Matrix, TensorPart, S)> {
        self.slots
    }
}

impl<S> FromIterator<(Matrix, TensorPart, S)> for ExpertSlot<S> {
    fn from_iter<I: IntoIterator<Item = (Matrix, TensorPart, S)>>(slots: I) -> Self {
        Self { slots: slots.into_iter().collect() }
    }
}

impl ExpertLease {
    /// Leases one slot per tensor, each from the arena `arena_of` names for it. All or none:
    /// when one arena is full or missing, the others get theirs back and the answer is `None`.
    pub fn from_arenas<'a>(
        tensors: &[ExpertTensor],
        mut arena_of: impl FnMut(&ExpertTensor) -> Option<&'a Arena>,
    ) -> Option<Self> {
        let lease =
            |tensor: &ExpertTensor| Some((tensor.matrix, tensor.part, arena_of(tensor)?.lease()?));
        tensors.iter().map(lease).collect()
    }
}
