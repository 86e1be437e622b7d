//! The model as the rest of Motley sees it: shape, router, tensors with roles, experts with places.
//! Built from validated headers; opens files only through `files`.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use crate::embedding::Embedding;
use crate::error::{ModelError, SpecError};
use crate::experts::{ExpertTensor, FileRange, LayerExperts};
use crate::files::ModelFiles;
use crate::gguf::{GgmlType, GgufHeader, GgufLimits, MetaValue};
use crate::hparams::{MAX_EXPERTS, Shape};
use crate::keys::Keys;
use crate::role::{Matrix, Role, TensorPart};
use crate::router::Router;
use crate::sampling::SamplingHints;

/// One tensor with its place and purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecTensor {
    pub name: String,
    /// Dimensions, fastest first.
    pub dims: Vec<u64>,
    pub ty: GgmlType,
    pub range: FileRange,
    pub role: Role,
}

impl SpecTensor {
    /// Number of weights.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }
}

/// Experts that every token uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SharedExperts {
    /// How many a layer has; they are stored as one wide network.
    pub count: u64,
    /// Width of that network.
    pub width: u64,
    /// Whether a gate weighs their output (qwen2moe).
    pub gated: bool,
}

/// A model: everything that can be known without reading its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// llama.cpp's name of the architecture.
    pub architecture: String,
    /// The model's own name, if it has one.
    pub name: Option<String>,
    /// Layers, widths, attention.
    pub shape: Shape,
    /// Experts per layer (E); 0 for a dense model.
    pub experts: u32,
    /// Most experts a token uses in a layer (k); 0 for a dense model.
    pub used: u32,
    /// Most it was trained to use, where it uses fewer ([`ModelSpec::with_experts_used`]).
    pub fewer_of: Option<u32>,
    /// Width of one routed expert's network; 0 for a dense model.
    pub expert_width: u64,
    pub shared: Option<SharedExperts>,
    /// Layers without experts before the first that has them.
    pub leading_dense_layers: u32,
    /// The router; `None` for a dense model.
    pub router: Option<Router>,
    /// How conversations are written out for it, in Jinja's words.
    pub chat_template: Option<String>,
    /// How a query and a text are written out for it, where it ranks.
    pub rerank_template: Option<String>,
    /// What it makes of texts in place of answers, if it was made for that.
    pub embedding: Option<Embedding>,
    /// How its makers want tokens chosen.
    pub sampling: SamplingHints,
    /// Every tensor, files in order; the same indices as in the virtual layout's extents.
    pub tensors: Vec<SpecTensor>,
    /// Per layer, its routed experts if it has them; as long as there are layers.
    pub layers: Vec<Option<LayerExperts>>,
}

impl ModelSpec {
    /// Opens a model: a single file or any shard of a split one.
    pub fn open(path: &Path) -> Result<(Self, ModelFiles), ModelError> {
        let files = ModelFiles::open(path, &GgufLimits::default())?;
        let spec = Self::from_headers(&files.headers)
            .map_err(|source| ModelError::Spec { path: path.to_owned(), source })?;
        Ok((spec, files))
    }

    /// Describes the model whose files have these headers.
    pub fn from_headers(headers: &[GgufHeader]) -> Result<Self, SpecError> {
        let metadata = &headers.first().ok_or(SpecError::Empty)?.metadata;
        let keys = Keys::new(metadata)?;
        let shape = Shape::read(&keys)?;
        let tensors = collect_tensors(headers, shape.layers)?;
        let declared = keys.bounded("expert_count", MAX_EXPERTS)?.unwrap_or(0);
        if let Some(old) = tensors.iter().find(|t| matches!(t.role, Role::OldExpert { .. })) {
            return Err(SpecError::OldFormat { tensor: old.name.clone() });
        }
        let layers = collect_experts(&keys, &tensors, &shape, declared)?;
        let routed = || layers.iter().flatten();
        let experts = if routed().next().is_some() { declared } else { 0 };
        let router = if experts > 0 { Some(read_router(&keys, experts, &tensors)?) } else { None };
        let text = |key: &str| metadata.get(key).and_then(MetaValue::as_str).map(str::to_owned);
        let name = text("general.name");
        let leading = layers.iter().take_while(|layer| layer.is_none()).count() as u32;
        Ok(Self {
            architecture: keys.architecture.to_owned(),
            name,
            experts,
            used: routed().map(|layer| layer.used).max().unwrap_or(0),
            fewer_of: None,
            expert_width: routed().map(|layer| width(layer, &tensors)).max().unwrap_or(0),
            shared: read_shared(&keys, &tensors)?,
            leading_dense_layers: if experts > 0 { leading } else { shape.layers },
            router,
            chat_template: text("tokenizer.chat_template"),
            rerank_template: text("tokenizer.chat_template.rerank"),
            embedding: Embedding::read(&keys, has_classifier(&tensors)),
            sampling: SamplingHints::read(metadata),
            shape,
            tensors,
            layers,
        })
    }

    /// Whether the model has routed experts.
    pub fn is_moe(&self) -> bool {
        self.experts > 0
    }

    /// The routed experts of `layer`, if it has any.
    pub fn layer(&self, layer: u32) -> Option<&LayerExperts> {
        self.layers.get(layer as usize)?.as_ref()
    }

    /// Layers with routed experts, in order.
    pub fn expert_layers(&self) -> impl Iterator<Item = &LayerExperts> {
        self.layers.iter().flatten()
    }
}

/// Whether it has what scores texts are made with.
fn has_classifier(tensors: &[SpecTensor]) -> bool {
    tensors.iter().any(|tensor| ["cls.weight", "cls.output.weight"].contains(&&*tensor.name))
}

fn collect_tensors(headers: &[GgufHeader], layers: u32) -> Result<Vec<SpecTensor>, SpecError> {
    let mut names = HashSet::new();
    let mut all = headers.iter().flat_map(|header| &header.tensors);
    if let Some(twice) = all.find(|tensor| !names.insert(tensor.name.as_str())) {
        return Err(SpecError::Duplicate { tensor: twice.name.clone() });
    }
    let mut tensors = Vec::new();
    for (file, header) in headers.iter().enumerate() {
        tensors.extend(header.tensors.iter().map(|tensor| SpecTensor {
            name: tensor.name.clone(),
            dims: tensor.dims.clone(),
            ty: tensor.ty,
            range: FileRange { file, offset: tensor.file_offset, len_bytes: tensor.len_bytes },
            role: Role::of(&tensor.name, layers),
        }));
    }
    Ok(tensors)
}

fn collect_experts(
    keys: &Keys<'_>,
    tensors: &[SpecTensor],
    shape: &Shape,
    experts: u32,
) -> Result<Vec<Option<LayerExperts>>, SpecError> {
    let mut layers: Vec<Option<LayerExperts>> = (0..shape.layers).map(|_| None).collect();
    for (index, tensor) in tensors.iter().enumerate() {
        let Role::Routed { layer, matrix, part } = tensor.role else { continue };
        let slot = &mut layers[layer as usize];
        if slot.is_none() {
            let used = used_experts(keys, layer, experts)?;
            *slot = Some(LayerExperts { layer, experts, used, tensors: Vec::new() });
        }
        if let Some(layer) = slot {
            check_expert_shape(tensor, experts)?;
            layer.tensors.push(ExpertTensor {
                tensor: index,
                matrix,
                part,
                ty: tensor.ty,
                file: tensor.range.file,
                base_offset: tensor.range.offset,
                stride_bytes: tensor.range.len_bytes / u64::from(experts),
            });
        }
    }
    Ok(layers)
}

fn check_expert_shape(tensor: &SpecTensor, experts: u32) -> Result<(), SpecError> {
    let whole = tensor.dims.last() == Some(&u64::from(experts))
        && experts > 0
        && tensor.range.len_bytes.is_multiple_of(u64::from(experts));
    if whole {
        return Ok(());
    }
    let (name, dims) = (tensor.name.clone(), tensor.dims.clone());
    Err(SpecError::ExpertShape { tensor: name, dims, experts })
}

fn used_experts(keys: &Keys<'_>, layer: u32, experts: u32) -> Result<u32, SpecError> {
    let used = keys.per_layer("expert_used_count", layer)?.unwrap_or(0);
    if used == 0 || used > u64::from(experts) {
        return Err(SpecError::Used { layer, used, experts });
    }
    Ok(used as u32)
}

/// Width of a layer's experts: the input width of their down matrix.
fn width(layer: &LayerExperts, tensors: &[SpecTensor]) -> u64 {
    let down = |t: &&ExpertTensor| t.matrix == Matrix::Down && t.part == TensorPart::Weight;
    let tensor = layer.tensors.iter().find(down).map(|down| &tensors[down.tensor]);
    tensor.and_then(|tensor| tensor.dims.first().copied()).unwrap_or(0)
}

fn read_router(keys: &Keys<'_>, experts: u32, tensors: &[SpecTensor]) -> Result<Router, SpecError> {
    let router = |tensor: &&SpecTensor| matches!(tensor.role, Role::Router { .. });
    let has = |test: fn(&str) -> bool| tensors.iter().filter(router).any(|t| test(&t.name));
    Ok(Router {
        selection_bias: has(|name| name.contains("exp_probs_b")),
        logit_bias: has(|name| name.ends_with("ffn_gate_inp.bias")),
        ..Router::read(keys, experts)?
    })
}

fn read_shared(
    keys: &Keys<'_>,
    tensors: &[SpecTensor],
) -> Result<Option<SharedExperts>, SpecError> {
    let shared = || tensors.iter().filter(|t| matches!(t.role, Role::Shared { .. }));
    let down = shared().find(|tensor| tensor.name.ends_with("ffn_down_shexp.weight"));
    let Some(down) = down else { return Ok(None) };
    Ok(Some(SharedExperts {
        count: keys.count("expert_shared_count")?.filter(|count| *count > 0).unwrap_or(1),
        width: down.dims.first().copied().unwrap_or(0),
        gated: shared().any(|tensor| tensor.name.contains("ffn_gate_inp_shexp")),
    }))
}
