//! What one slot holds, and how many slots fit into a budget. Arithmetic on a model's
//! header; touches no device.

use motley_model::gguf::GgmlType;
use motley_model::{LayerExperts, Matrix, ModelSpec, TensorPart};

/// One tensor of a slot: a matrix, or the row of its bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotPart {
    pub(crate) matrix: Matrix,
    pub(crate) part: TensorPart,
    pub(crate) ty: GgmlType,
    /// Elements of a row.
    pub(crate) row: u64,
    /// Rows; 1 for a bias.
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// All tensors of a slot. Layers quantised alike have equal shapes and share slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotShape {
    pub(crate) parts: Vec<SlotPart>,
}

impl SlotShape {
    /// Of the experts of `layer`; `None` when a tensor of theirs is no matrix or row.
    pub(crate) fn of(spec: &ModelSpec, layer: &LayerExperts) -> Option<Self> {
        let lives_in_slot = |part| matches!(part, TensorPart::Weight | TensorPart::Bias);
        let tensors = layer.tensors.iter().filter(|tensor| lives_in_slot(tensor.part));
        let part = |tensor: &motley_model::ExpertTensor| {
            let dims = &spec.tensors.get(tensor.tensor)?.dims;
            let (row, rows) = match (tensor.part, dims.as_slice()) {
                (TensorPart::Weight, &[row, rows, _]) => (row, rows),
                (TensorPart::Bias, &[row, _]) => (row, 1),
                _ => return None,
            };
            let (matrix, part, ty) = (tensor.matrix, tensor.part, tensor.ty);
            Some(SlotPart { matrix, part, ty, row, rows, bytes: tensor.stride_bytes })
        };
        let parts = tensors.map(part).collect::<Option<Vec<_>>>()?;
        (!parts.is_empty()).then_some(Self { parts })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    pub(crate) fn index_of(&self, matrix: Matrix, part: TensorPart) -> Option<usize> {
        self.parts.iter().position(|p| (p.matrix, p.part) == (matrix, part))
    }
}

/// Layers whose experts have one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeClass {
    pub(crate) shape: SlotShape,
    pub(crate) layers: Vec<u32>,
    /// Experts of all its layers.
    pub(crate) experts: u32,
}

/// The shapes of the layers of a model that are served, in the order of their first layers.
pub(crate) fn classes(spec: &ModelSpec, is_served: &dyn Fn(u32) -> bool) -> Vec<ShapeClass> {
    let mut classes: Vec<ShapeClass> = Vec::new();
    for layer in spec.layers.iter().flatten().filter(|layer| is_served(layer.layer)) {
        let Some(shape) = SlotShape::of(spec, layer) else { continue };
        match classes.iter_mut().find(|class| class.shape == shape) {
            Some(class) => {
                class.layers.push(layer.layer);
                class.experts += layer.experts;
            }
            None => {
                let layers = vec![layer.layer];
                classes.push(ShapeClass { shape, layers, experts: layer.experts });
            }
        }
    }
    classes
}

/// Slots of each class within `budget_bytes`: shares in proportion to the classes' bytes,
/// never more slots than experts.
pub(crate) fn slots_within(classes: &[ShapeClass], budget_bytes: u64) -> Vec<u32> {
    let bytes = |class: &ShapeClass| u128::from(class.shape.bytes()) * u128::from(class.experts);
    let total = classes.iter().map(bytes).sum::<u128>().max(1);
    let slots = |class: &ShapeClass| {
        let share = u128::from(budget_bytes) * bytes(class) / total;
        (share / u128::from(class.shape.bytes().max(1))).min(class.experts.into()) as u32
    };
    classes.iter().map(slots).collect()
}

/// Bytes that the rows of one computation need at most in all operations together: the
/// input, three products with their biases, what stands between, and the result.
pub(crate) fn workspace_row_bytes(classes: &[ShapeClass]) -> u64 {
    let widest = |class: &ShapeClass| {
        let weights = class.shape.parts.iter().filter(|part| part.part == TensorPart::Weight);
        weights.map(|part| part.row.max(part.rows)).max().unwrap_or(0)
    };
    let width = classes.iter().map(widest).max().unwrap_or(0);
    9 * width * size_of::<f32>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(bytes: u64, experts: u32) -> ShapeClass {
        let part = SlotPart {
            matrix: Matrix::Up,
            part: TensorPart::Weight,
            ty: GgmlType::I8,
            row: bytes,
            rows: 1,
            bytes,
        };
        ShapeClass { shape: SlotShape { parts: vec![part] }, layers: vec![0], experts }
    }

    #[test]
    fn shares_follow_bytes_and_stay_inside_the_budget() {
        let classes = [class(100, 10), class(300, 10)];
        assert_eq!(slots_within(&classes, 2000), [5, 5]);
        assert_eq!(slots_within(&classes, 4000), [10, 10]);
        assert_eq!(slots_within(&classes, u64::MAX), [10, 10]);
        assert_eq!(slots_within(&classes, 399), [0, 0]);
        assert_eq!(slots_within(&classes, 0), [0, 0]);
    }

    #[test]
    fn a_workspace_row_holds_the_widest_matrix_nine_times() {
        assert_eq!(workspace_row_bytes(&[class(100, 1), class(300, 1)]), 9 * 300 * 4);
    }
}
