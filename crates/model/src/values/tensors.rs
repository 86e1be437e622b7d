//! Element types of vectors: norms and biases are added to and multiplied with rows of F32, and no
//! such operation takes blocks or integers.

use super::error::ValueError;
use crate::gguf::{GgmlType, GgufHeader};

pub(super) fn check(headers: &[GgufHeader]) -> Result<(), ValueError> {
    let tensors = headers.iter().flat_map(|header| &header.tensors);
    for tensor in tensors.filter(|tensor| is_vector(&tensor.name, &tensor.dims)) {
        if !matches!(tensor.ty, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16) {
            let (tensor, ty) = (tensor.name.clone(), tensor.ty);
            return Err(ValueError::TensorType { tensor, ty });
        }
    }
    Ok(())
}

/// A norm's weight or any bias.
fn is_vector(name: &str, dims: &[u64]) -> bool {
    dims.len() == 1 && (name.ends_with("norm.weight") || name.ends_with(".bias"))
}
