//! Experts read from the model's files, as numbers. The files, because what llama.cpp
//! holds may be rearranged for the CPU.

use motley_ggml::{DequantError, dequantise};
use motley_model::{ExpertTensor, LayerExperts, Matrix, Part};
use motley_npu::{Biases, ExpertShape, ExpertWeights, GraphError};
use std::fs::File;
use std::os::unix::fs::FileExt;
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
}

/// The bytes of one expert, part by part, in the order of the layer's tensors.
pub(super) type RawExpert<'l> = Vec<(&'l ExpertTensor, Vec<u8>)>;

/// Reads `expert` of `layer`.
pub(super) fn read<'l>(
    layer: &'l LayerExperts,
    paths: &[PathBuf],
    expert: u32,
) -> Result<RawExpert<'l>, LayerError> {
    let mut parts = Vec::new();
    for (tensor, range) in layer.ranges(expert) {
        if matches!(tensor.part, Part::Scale | Part::InputScale) {
            return Err(LayerError::Scales);
        }
        let path = &paths[range.file];
        let failed = |source| LayerError::Read { path: path.clone(), source };
        let mut bytes = vec![0; range.len_bytes as usize];
        let file = File::open(path).map_err(failed)?;
        file.read_exact_at(&mut bytes, range.offset).map_err(failed)?;
        parts.push((tensor, bytes));
    }
    Ok(parts)
}

/// The widths of a layer's experts, from the sizes of one of them.
pub(super) fn shape(layer: &LayerExperts, hidden: usize) -> Result<ExpertShape, LayerError> {
    let down = layer.tensors.iter().find(|t| t.matrix == Matrix::Down && t.part == Part::Weight);
    let inner = down.and_then(|down| {
        let elements = down.stride_bytes / down.ty.block_bytes() * down.ty.block_elements();
        let whole = hidden > 0 && elements.is_multiple_of(hidden as u64);
        whole.then(|| elements as usize / hidden)
    });
    let inner = inner.filter(|inner| *inner > 0).ok_or(LayerError::Matrix(Matrix::Down))?;
    Ok(ExpertShape { hidden, inner })
}

/// The numbers of one expert.
pub(super) fn numbers(raw: &RawExpert<'_>, biased: bool) -> Result<ExpertWeights, LayerError> {
    let (gate, up) = entries(raw, Part::Weight)?;
    let down = floats(raw, Matrix::Down, Part::Weight)?;
    let biases = if biased {
        let (gate, up) = entries(raw, Part::Bias)?;
        Some(Biases { gate, up, down: floats(raw, Matrix::Down, Part::Bias)? })
    } else {
        None
    };
    Ok(ExpertWeights { gate, up, down, biases })
}

/// Gate and up, from two tensors or from the halves of one.
fn entries(raw: &RawExpert<'_>, part: Part) -> Result<(Vec<f32>, Vec<f32>), LayerError> {
    if let Ok(mut both) = floats(raw, Matrix::GateUp, part) {
        let up = both.split_off(both.len() / 2);
        return Ok((both, up));
    }
    Ok((floats(raw, Matrix::Gate, part)?, floats(raw, Matrix::Up, part)?))
}

fn floats(raw: &RawExpert<'_>, matrix: Matrix, part: Part) -> Result<Vec<f32>, LayerError> {
    let found = raw.iter().find(|(tensor, _)| tensor.matrix == matrix && tensor.part == part);
    let (tensor, bytes) = found.ok_or(LayerError::Matrix(matrix))?;
    Ok(dequantise(tensor.ty, bytes)?)
}
