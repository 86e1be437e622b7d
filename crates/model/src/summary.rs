//! The model in brief, for people and programs (`motley inspect --json`). No rendering.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::files::ModelFiles;
use crate::gguf::GgmlType;
use crate::hparams::Shape;
use crate::role::{Matrix, TensorPart};
use crate::router::Router;
use crate::sizes::{Quantisation, Sizes};
use crate::spec::{ModelSpec, SharedExperts};

/// One file of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSummary {
    pub path: PathBuf,
    pub len_bytes: u64,
    pub tensors: usize,
}

/// The experts of one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerSummary {
    pub layer: u32,
    /// Experts a token uses.
    pub used: u32,
    pub expert_bytes: u64,
    /// Element type of each matrix.
    pub matrices: BTreeMap<Matrix, GgmlType>,
}

/// Everything `motley inspect` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Version of this form.
    pub version: u32,
    /// llama.cpp's name of the architecture.
    pub architecture: String,
    pub name: Option<String>,
    pub files: Vec<FileSummary>,
    /// Layers, widths, attention.
    pub shape: Shape,
    /// Experts per layer; 0 for a dense model.
    pub experts: u32,
    /// Experts per token and layer.
    pub used: u32,
    /// Width of one expert.
    pub expert_width: u64,
    /// Layers without experts before the first that has them.
    pub leading_dense_layers: u32,
    pub expert_layers: Vec<LayerSummary>,
    pub shared: Option<SharedExperts>,
    pub router: Option<Router>,
    pub sizes: Sizes,
    pub quantisation: Quantisation,
}

impl Summary {
    /// Sums up a model.
    pub fn new(spec: &ModelSpec, files: &ModelFiles) -> Self {
        Self {
            version: 1,
            architecture: spec.architecture.clone(),
            name: spec.name.clone(),
            files: file_summaries(files),
            shape: spec.shape.clone(),
            experts: spec.experts,
            used: spec.used,
            expert_width: spec.expert_width,
            leading_dense_layers: spec.leading_dense_layers,
            expert_layers: layer_summaries(spec),
            shared: spec.shared,
            router: spec.router.clone(),
            sizes: Sizes::of(spec),
            quantisation: Quantisation::of(spec),
        }
    }
}

fn file_summaries(files: &ModelFiles) -> Vec<FileSummary> {
    let pairs = files.paths.iter().zip(&files.headers);
    pairs
        .map(|(path, header)| FileSummary {
            path: path.clone(),
            len_bytes: header.file_len,
            tensors: header.tensors.len(),
        })
        .collect()
}

fn layer_summaries(spec: &ModelSpec) -> Vec<LayerSummary> {
    spec.expert_layers()
        .map(|layer| LayerSummary {
            layer: layer.layer,
            used: layer.used,
            expert_bytes: layer.expert_bytes(),
            matrices: layer
                .tensors
                .iter()
                .filter(|tensor| tensor.part == TensorPart::Weight)
                .map(|tensor| (tensor.matrix, tensor.ty))
                .collect(),
        })
        .collect()
}
