//! Which experts are measured: an element type in a shape. Measures nothing.

use motley_cost::calibration::CalibrationFile;
use motley_model::gguf::GgmlType;
use motley_model::{ModelSpec, Quantisation, Role, TypeShare};

/// Types that are measured without a model; others take the nearest in bits.
const TYPES: [GgmlType; 5] =
    [GgmlType::Q4_0, GgmlType::Q4_K, GgmlType::Q8_0, GgmlType::MXFP4, GgmlType::F16];
/// Width of a hidden row and width between of the fitted experts: a model of 30 B parameters.
pub(crate) const SHAPE: (u32, u32) = (2048, 768);

/// Experts of one type and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertKind {
    /// Element type of all three matrices.
    pub ty: GgmlType,
    /// Width of a hidden row, and width between.
    pub shape: (u32, u32),
}

impl ExpertKind {
    /// A model's experts in their own shape first, then its dense weights and its output matrix
    /// as experts of that shape. A model without experts has the default shape.
    pub fn of_model(spec: &ModelSpec) -> Vec<Self> {
        let quantisation = Quantisation::of(spec);
        let main = |shares: &[TypeShare]| shares.first().map(|share| share.ty);
        let output = spec.tensors.iter().find(|tensor| tensor.name == "output.weight");
        let head =
            output.or_else(|| spec.tensors.iter().find(|tensor| tensor.role == Role::Embedding));
        let types = [main(&quantisation.routed), main(&quantisation.dense), head.map(|t| t.ty)];
        let shape = match (spec.shape.hidden.try_into(), spec.expert_width.try_into()) {
            (Ok(hidden), Ok(between)) if spec.is_moe() => (hidden, between),
            _ => SHAPE,
        };
        let mut kinds: Vec<Self> = Vec::new();
        for ty in types.into_iter().flatten() {
            let kind = Self { ty, shape };
            if kind.is_whole() && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// Whether both widths divide into blocks of the type.
    fn is_whole(self) -> bool {
        let (hidden, between) = self.shape;
        [hidden, between].iter().all(|&width| self.ty.row_bytes(width.into()).is_some())
    }

    /// Whether `calibration` has measured experts of this kind on the CPU.
    pub fn is_measured_in(self, calibration: &CalibrationFile) -> bool {
        let same = |cost: &motley_cost::calibration::ExpertCost| {
            (cost.quantisation.as_str(), (cost.hidden, cost.intermediate))
                == (self.ty.name(), self.shape)
        };
        calibration.experts.iter().any(same)
    }
}

/// The default types in the default shape, and those of a model in its own.
pub(crate) fn with_defaults(of_model: &[ExpertKind]) -> Vec<ExpertKind> {
    let defaults = TYPES.into_iter().map(|ty| ExpertKind { ty, shape: SHAPE });
    let mut all: Vec<ExpertKind> = defaults.filter(|kind| !of_model.contains(kind)).collect();
    all.extend(of_model);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_experts_are_measured_beside_the_default_ones() {
        let known = ExpertKind { ty: GgmlType::Q4_0, shape: SHAPE };
        let new = ExpertKind { ty: GgmlType::Q4_1, shape: (576, 1536) };
        assert_eq!(with_defaults(&[known]).len(), TYPES.len());
        assert_eq!(with_defaults(&[known, new]).len(), TYPES.len() + 1);
    }
}
