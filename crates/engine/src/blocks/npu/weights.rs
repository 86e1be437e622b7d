//! Experts read from the model's files, in the form graphs take. The files, because what
//! llama.cpp holds may be rearranged for the CPU.

use motley_ggml::{DequantError, dequantise};
use motley_model::gguf::GgmlType;
use motley_model::{ExpertTensor, LayerExperts, Matrix, OpenedFile, TensorPart, read_exact_at};
use motley_npu::{Biases, ExpertShape, ExpertWeights, GraphError, GraphSpec, Precision};
use std::path::PathBuf;

/// Why a layer's experts cannot go on the device.
#[derive(Debug, thiserror::Error)]
pub(super) enum LayerError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Dequant(#[from] DequantError),
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error("the experts have no {0:?} matrix of the expected shape")]
    Matrix(Matrix),
    #[error("the experts have factors on their products")]
    Scales,
    #[error("a four-bit graph takes experts in Q4_0, and these are in {0}")]
    FourBits(GgmlType),
}

/// The bytes of one expert, part by part, in the order of the layer's tensors.
pub(super) type RawExpert<'l> = Vec<(&'l ExpertTensor, Vec<u8>)>;

/// Reads `expert` of `layer`.
pub(super) fn read<'l>(
    layer: &'l LayerExperts,
    files: &[OpenedFile],
    expert: u32,
) -> Result<RawExpert<'l>, LayerError> {
    let mut parts = Vec::new();
    for (tensor, range) in layer.ranges(expert) {
        if matches!(tensor.part, TensorPart::Scale | TensorPart::InputScale) {
            return Err(LayerError::Scales);
        }
        let file = &files[range.file];
        let failed = |source| LayerError::Read { path: file.path().into(), source };
        let mut bytes = vec![0; range.len_bytes as usize];
        read_exact_at(file.file(), &mut bytes, range.offset).map_err(failed)?;
        parts.push((tensor, bytes));
    }
    Ok(parts)
}

/// The widths of a layer's experts, from the sizes of one of them.
pub(super) fn shape(layer: &LayerExperts, hidden: usize) -> Result<ExpertShape, LayerError> {
    let down =
        layer.tensors.iter().find(|t| t.matrix == Matrix::Down && t.part == TensorPart::Weight);
    let inner = down.and_then(|down| {
        let elements = down.stride_bytes / down.ty.block_bytes() * down.ty.block_elements();
        let whole = hidden > 0 && elements.is_multiple_of(hidden as u64);
        whole.then(|| elements as usize / hidden)
    });
    let inner = inner.filter(|inner| *inner > 0).ok_or(LayerError::Matrix(Matrix::Down))?;
    Ok(ExpertShape { hidden, inner })
}

/// One expert as the graph of `spec` takes it.
pub(super) fn weights(raw: &RawExpert<'_>, spec: &GraphSpec) -> Result<ExpertWeights, LayerError> {
    let biases = if spec.biased {
        let [gate, up, down] = matrices(raw, TensorPart::Bias, floats)?;
        Some(Biases { gate, up, down })
    } else {
        None
    };
    let [gate, up, down] = match spec.precision {
        Precision::F32 | Precision::F16 => {
            matrices(raw, TensorPart::Weight, floats)?.map(motley_npu::Matrix::Floats)
        }
        Precision::Q4 => matrices(raw, TensorPart::Weight, q4_0)?.map(motley_npu::Matrix::Q4),
    };
    Ok(ExpertWeights { gate, up, down, biases })
}

/// Gate, up and down; the first two from two tensors or from the halves of one.
fn matrices<T: Clone>(
    raw: &RawExpert<'_>,
    part: TensorPart,
    read: fn(GgmlType, &[u8]) -> Result<Vec<T>, LayerError>,
) -> Result<[Vec<T>; 3], LayerError> {
    let find = |matrix: Matrix| {
        let found = raw.iter().find(|(tensor, _)| tensor.matrix == matrix && tensor.part == part);
        let (tensor, bytes) = found.ok_or(LayerError::Matrix(matrix))?;
        read(tensor.ty, bytes)
    };
    let down = find(Matrix::Down)?;
    if raw.iter().any(|(tensor, _)| tensor.matrix == Matrix::GateUp) {
        let mut gate = find(Matrix::GateUp)?;
        let up = gate.split_off(gate.len() / 2);
        return Ok([gate, up, down]);
    }
    Ok([find(Matrix::Gate)?, find(Matrix::Up)?, down])
}

fn floats(ty: GgmlType, bytes: &[u8]) -> Result<Vec<f32>, LayerError> {
    Ok(dequantise(ty, bytes)?)
}

/// The blocks as they are.
fn q4_0(ty: GgmlType, bytes: &[u8]) -> Result<Vec<u8>, LayerError> {
    if ty == GgmlType::Q4_0 { Ok(bytes.to_vec()) } else { Err(LayerError::FourBits(ty)) }
}
