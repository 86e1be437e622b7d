//! The header of the mixture: which dense tensor is copied, multiplied or gets a router.

use super::request::Request;
use anyhow::{Context, Result, bail, ensure};
use motley_model::gguf::{GgmlType, GgufHeader, MetaValue, Metadata, TensorDesc, TensorInfo};

/// The three matrices of a gated FFN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FfnMatrix {
    /// `(ff, hidden)`: a neuron is a row.
    Gate,
    /// `(ff, hidden)`: a neuron is a row.
    Up,
    /// `(hidden, ff)`: a neuron is a column.
    Down,
}

/// Where a new tensor's bytes come from; indices are into the dense file's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The dense tensor as it is.
    Copy {
        /// The dense tensor.
        index: usize,
    },
    /// The dense matrix once per expert, permuted.
    Experts {
        /// The dense matrix.
        index: usize,
        /// Layer.
        layer: u64,
        /// Which matrix it is.
        part: FfnMatrix,
    },
    /// Random rows, scaled by the norm before them.
    Router {
        /// Layer.
        layer: u64,
        /// The layer's norm before the FFN (F32).
        norm: usize,
    },
}

/// One tensor of the mixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTensor {
    /// Name, dimensions and type.
    pub desc: TensorDesc,
    /// Its bytes.
    pub source: Source,
}

/// Header of the mixture.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The dense metadata with the counts of experts.
    pub metadata: Metadata,
    /// Tensors in file order.
    pub tensors: Vec<NewTensor>,
}

impl Layout {
    /// The mixture of a dense model, or why there is none.
    pub fn new(dense: &GgufHeader, request: &Request) -> Result<Self> {
        check_model(dense, request)?;
        let mut metadata = dense.metadata.clone();
        metadata.insert("llama.expert_count", u32::try_from(request.experts)?);
        metadata.insert("llama.expert_used_count", u32::try_from(request.topk)?);
        let mut tensors = Vec::new();
        for (index, info) in dense.tensors.iter().enumerate() {
            match ffn_part(&info.name) {
                None => tensors.push(copied(index, info)),
                Some((layer, part)) => {
                    check_matrix(info, part, request.block)?;
                    if part == FfnMatrix::Gate {
                        tensors.push(router(dense, layer, request.experts)?);
                    }
                    tensors.push(experts(index, info, (layer, part), request.experts));
                }
            }
        }
        let experts = |t: &&NewTensor| matches!(t.source, Source::Experts { .. });
        ensure!(tensors.iter().any(|t| experts(&t)), "it has no blk.N.ffn_gate/up/down.weight");
        Ok(Self { metadata, tensors })
    }

    /// Bytes of all tensors.
    pub fn data_bytes(&self) -> u64 {
        let bytes = |t: &NewTensor| t.desc.ty.tensor_bytes(&t.desc.dims).unwrap_or(0);
        self.tensors.iter().map(bytes).sum()
    }
}

fn check_model(dense: &GgufHeader, request: &Request) -> Result<()> {
    let Request { experts, topk, block, .. } = *request;
    ensure!((2..=512).contains(&experts), "--experts takes 2 to 512");
    ensure!((1..=experts).contains(&topk), "--topk takes 1 to --experts ({experts})");
    ensure!(block >= 1, "--block takes at least 1");
    let text = |key| dense.metadata.get(key).and_then(MetaValue::as_str);
    let number = |key| dense.metadata.get(key).and_then(MetaValue::as_u64);
    let arch = text("general.architecture").unwrap_or("unknown");
    ensure!(arch == "llama", "its architecture is {arch}; only llama is known to be exact");
    ensure!(number("llama.expert_count").unwrap_or(0) == 0, "it has experts already");
    ensure!(number("split.count").unwrap_or(1) == 1, "it is split; join it with gguf-split first");
    let bias = dense.tensors.iter().find(|t| t.name.contains(".ffn_") && t.name.ends_with(".bias"));
    if let Some(bias) = bias {
        bail!("{}: llama.cpp's llama experts have no biases", bias.name);
    }
    Ok(())
}

/// Layer and matrix of `blk.<layer>.ffn_<part>.weight`.
fn ffn_part(name: &str) -> Option<(u64, FfnMatrix)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let part = match rest {
        "ffn_gate.weight" => FfnMatrix::Gate,
        "ffn_up.weight" => FfnMatrix::Up,
        "ffn_down.weight" => FfnMatrix::Down,
        _ => return None,
    };
    Some((layer.parse().ok()?, part))
}

/// Neurons must be whole blocks, and of down the quantised blocks must not span two of them.
fn check_matrix(info: &TensorInfo, part: FfnMatrix, block: u64) -> Result<()> {
    let TensorInfo { name, dims, ty, .. } = info;
    let &[columns, rows] = dims.as_slice() else { bail!("{name} is no matrix: {dims:?}") };
    let neurons = if part == FfnMatrix::Down { columns } else { rows };
    let whole = neurons.is_multiple_of(block);
    ensure!(whole, "{name}: {neurons} neurons are not whole blocks of {block} (--block)");
    let quantised = ty.block_elements();
    if part == FfnMatrix::Down && !block.is_multiple_of(quantised) {
        bail!("{name} is {ty}, which binds {quantised} neurons together: say --block {quantised}");
    }
    Ok(())
}

fn copied(index: usize, info: &TensorInfo) -> NewTensor {
    let TensorInfo { name, dims, ty, .. } = info;
    let desc = TensorDesc { name: name.clone(), dims: dims.clone(), ty: *ty };
    NewTensor { desc, source: Source::Copy { index } }
}

fn experts(
    index: usize,
    info: &TensorInfo,
    (layer, part): (u64, FfnMatrix),
    count: u64,
) -> NewTensor {
    let name = info.name.replace(".weight", "_exps.weight");
    let dims = [info.dims.as_slice(), &[count]].concat();
    let desc = TensorDesc { name, dims, ty: info.ty };
    NewTensor { desc, source: Source::Experts { index, layer, part } }
}

fn router(dense: &GgufHeader, layer: u64, experts: u64) -> Result<NewTensor> {
    let name = format!("blk.{layer}.ffn_norm.weight");
    let found = dense.tensors.iter().enumerate().find(|(_, tensor)| tensor.name == name);
    let (norm, info) = found.with_context(|| format!("it has no {name}"))?;
    ensure!(info.ty == GgmlType::F32, "{name} is {}, not f32", info.ty);
    let dims = vec![info.dims[0], experts];
    let name = format!("blk.{layer}.ffn_gate_inp.weight");
    let desc = TensorDesc { name, dims, ty: GgmlType::F32 };
    Ok(NewTensor { desc, source: Source::Router { layer, norm } })
}
