//! Router matrices of all layers, read from the model's files: what the router of this
//! layer thinks of experts it did not choose (H3), and what the router of the next one
//! would choose for the rows there are (H2). The choice itself stays llama.cpp's.

use motley_ggml::Rows;
use motley_model::gguf::GgmlType;
use motley_model::{Gating, Groups, ModelSpec, OpenedFile, Role, SpecTensor, read_exact_at};
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// Why router matrices could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: reading {tensor} failed", path.display())]
pub struct GatesError {
    pub path: PathBuf,
    pub tensor: String,
    pub source: io::Error,
}

/// The routers of a model, layer after layer in one matrix.
#[derive(Debug)]
pub(crate) struct Gates {
    /// `[rows][width]`: the experts of one layer are consecutive rows.
    weights: Vec<f32>,
    /// Added to a row's logit; empty when no layer has any.
    logit_bias: Vec<f32>,
    /// Added to a row's score for the choice only.
    selection_bias: Vec<f32>,
    /// By layer: its first row. `None` without routed experts or with a router that is not F32.
    first_row: Vec<Option<usize>>,
    width: usize,
    experts: usize,
    used: usize,
    gating: Gating,
    groups: Option<Groups>,
}

impl Gates {
    /// Reads the routers of `spec` from its files.
    pub(crate) fn read(spec: &ModelSpec, files: &[OpenedFile]) -> Result<Self, GatesError> {
        let mut gates = Self::empty(spec);
        for (layer, tensor) in routers(spec) {
            let matrix = read_f32(tensor, &files[tensor.range.file])?;
            if matrix.len() != gates.experts * gates.width {
                continue;
            }
            gates.first_row[layer as usize] = Some(gates.weights.len() / gates.width);
            gates.weights.extend(matrix);
            gates.logit_bias.extend(gates.bias(spec, files, layer, "ffn_gate_inp.bias")?);
            gates.selection_bias.extend(gates.bias(spec, files, layer, "exp_probs_b.bias")?);
        }
        Ok(gates)
    }

    fn empty(spec: &ModelSpec) -> Self {
        Self {
            weights: Vec::new(),
            logit_bias: Vec::new(),
            selection_bias: Vec::new(),
            first_row: vec![None; spec.layers.len()],
            width: spec.shape.hidden as usize,
            experts: spec.experts as usize,
            used: spec.used as usize,
            gating: spec.router.as_ref().map_or(Gating::Unknown, |router| router.gating),
            groups: spec.router.as_ref().and_then(|router| router.groups),
        }
    }

    /// One value per expert; zeros when the model has no such tensor.
    fn bias(
        &self,
        spec: &ModelSpec,
        files: &[OpenedFile],
        layer: u32,
        ending: &str,
    ) -> Result<Vec<f32>, GatesError> {
        let named = |tensor: &&SpecTensor| {
            tensor.role == Role::Router { layer } && tensor.name.ends_with(ending)
        };
        let bias = match spec.tensors.iter().find(named).filter(|t| t.ty == GgmlType::F32) {
            Some(tensor) => read_f32(tensor, &files[tensor.range.file])?,
            None => Vec::new(),
        };
        Ok(if bias.len() == self.experts { bias } else { vec![0.0; self.experts] })
    }

    /// Experts of a layer.
    pub(crate) fn experts(&self) -> usize {
        self.experts
    }

    /// Experts a token uses.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Of at most `most` layers from `first` on, those whose routers are known and lie one after the
    /// other.
    pub(crate) fn known_from(&self, first: usize, most: usize) -> Range<usize> {
        let row = |layer: usize| self.first_row.get(layer).copied().flatten();
        let follows = |layer: &usize| {
            let before = row(first).map(|row| row + (layer - first) * self.experts);
            before.is_some() && row(*layer) == before
        };
        first..first + (first..first + most).take_while(follows).count()
    }

    /// The router of `layer`.
    pub(crate) fn rows(&self, layer: usize) -> Option<Rows<'_>> {
        self.rows_of(layer..layer + 1)
    }

    /// The routers of layers that lie one after the other, as one matrix.
    pub(crate) fn rows_of(&self, layers: Range<usize>) -> Option<Rows<'_>> {
        let first = (*self.first_row.get(layers.start)?)?;
        let end = first + self.experts * layers.len();
        let weights = self.weights.get(first * self.width..end * self.width)?;
        Some(Rows { weights, width: self.width })
    }

    /// One token's logits of `layer` into the scores its experts are weighed by.
    pub(crate) fn score(&self, layer: usize, logits: &mut [f32]) {
        let Some(Some(first)) = self.first_row.get(layer) else { return };
        let bias = &self.logit_bias[*first..];
        logits.iter_mut().zip(bias).for_each(|(logit, bias)| *logit += bias);
        match self.gating {
            Gating::Sigmoid => logits.iter_mut().for_each(|l| *l = 1.0 / (1.0 + (-*l).exp())),
            Gating::SqrtSoftplus => logits.iter_mut().for_each(|l| *l = l.exp().ln_1p().sqrt()),
            Gating::Softmax | Gating::SoftmaxWeight | Gating::Unknown => softmax(logits),
        }
    }

    /// One token's scores of `layer` into what the choice goes by.
    pub(crate) fn bias_choice(&self, layer: usize, scores: &mut [f32]) {
        let Some(Some(first)) = self.first_row.get(layer) else { return };
        let bias = &self.selection_bias[*first..];
        scores.iter_mut().zip(bias).for_each(|(score, bias)| *score += bias);
    }

    /// One token's scores with those of groups that do not take part at the least there is (W1):
    /// a group counts as much as its best two experts. Nothing where the router has no groups.
    pub(crate) fn limit_groups(&self, scores: &mut [f32], ranked: &mut Vec<(f32, usize)>) {
        let Some(Groups { count, used }) = self.groups.filter(|groups| groups.count > 1) else {
            return;
        };
        let size = scores.len() / count as usize;
        if size == 0 {
            return;
        }
        ranked.clear();
        ranked.extend(scores.chunks_exact(size).map(best_two).zip(0..));
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        for &(_, group) in ranked.iter().skip(used as usize) {
            scores[group * size..][..size].fill(f32::NEG_INFINITY);
        }
    }
}

/// The sum of the two highest scores.
fn best_two(scores: &[f32]) -> f32 {
    let (mut first, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for &score in scores {
        if score > first {
            (first, second) = (score, first);
        } else if score > second {
            second = score;
        }
    }
    if scores.len() > 1 { first + second } else { first }
}

/// Router matrices that can be used, by layer.
fn routers(spec: &ModelSpec) -> impl Iterator<Item = (u32, &SpecTensor)> {
    spec.tensors.iter().filter_map(|tensor| match tensor.role {
        Role::Router { layer }
            if tensor.name.ends_with("ffn_gate_inp.weight") && tensor.ty == GgmlType::F32 =>
        {
            Some((layer, tensor))
        }
        _ => None,
    })
}

fn read_f32(tensor: &SpecTensor, file: &OpenedFile) -> Result<Vec<f32>, GatesError> {
    let failed =
        |source| GatesError { path: file.path().into(), tensor: tensor.name.clone(), source };
    let mut bytes = vec![0; tensor.range.len_bytes as usize];
    read_exact_at(file.file(), &mut bytes, tensor.range.offset).map_err(failed)?;
    motley_store::forget_cached(file.file());
    let floats = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    Ok(floats.collect())
}

fn softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::MIN, f32::max);
    logits.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
    let sum: f32 = logits.iter().sum();
    logits.iter_mut().for_each(|logit| *logit /= sum);
}
