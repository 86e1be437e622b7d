//! What is simulated: a model's shape and its routing, from flags.

use crate::args::{Sim, SyntheticArgs, WasteArgs};
use crate::commands::trace::open;
use anyhow::{Context, Result, bail};
use motley_model::{ModelSpec, Role, Sizes, SpecTensor};
use motley_sim::fewer::fewer_experts;
use motley_sim::shape::{Dense, ModelShape};
use motley_sim::synth::{Synth, SynthParams};
use motley_trace::{Trace, TraceHeader};
use std::path::Path;

/// The model when nothing is said.
pub(super) const DEFAULT_SHAPE: &str = "qwen3-30b-a3b";
/// How much likelier the heaviest expert of a token is kept than the mean; as in recorded traces.
const WEIGHT_TILT: f64 = 0.3;

/// Name of the output matrix in every architecture.
const OUTPUT: &str = "output.weight";

/// A model and its routing.
pub(super) struct Subject {
    pub(super) shape: ModelShape,
    pub(super) trace: Trace,
    /// Where the routing is from, in a few words.
    pub(super) routing: String,
    /// What had to be taken for granted.
    pub(super) note: Option<String>,
}

impl Subject {
    /// As asked for, approximations included.
    pub(super) fn gather(sim: &Sim, seed: u64) -> Result<Self> {
        let mut subject = Self::as_it_is(sim, seed)?;
        if let Some(used) = sim.approximate.experts {
            subject.trace = fewer_experts(subject.trace, used)?;
            subject.shape.k = used;
        }
        Ok(subject)
    }

    fn as_it_is(sim: &Sim, seed: u64) -> Result<Self> {
        let asked = shape(sim)?;
        let Some(path) = sim.trace.first() else {
            let shape = match asked {
                Some(shape) => shape,
                None => ModelShape::find(DEFAULT_SHAPE, sim.bits)?,
            };
            let trace = made(&shape, &sim.synthetic, seed)?;
            return Ok(Self {
                shape,
                trace,
                routing: format!("made routing, seed {seed}"),
                note: None,
            });
        };
        let trace = read(path)?;
        let (shape, note) = shape_of_trace(asked, &trace.header, sim.bits)?;
        Ok(Self { shape, trace, routing: format!("routing of {}", path.display()), note })
    }
}

/// A whole trace from a file.
pub(crate) fn read(path: &Path) -> Result<Trace> {
    let waste = WasteArgs { experts: None, name: None };
    let mut source = open(path, &waste)?;
    let trace = Trace::collect(source.as_mut()).with_context(|| path.display().to_string())?;
    if trace.visits.is_empty() {
        bail!("{}: the trace has a header and no visits", path.display());
    }
    Ok(trace)
}

/// Made routing for a model of this shape.
pub(super) fn made(shape: &ModelShape, args: &SyntheticArgs, seed: u64) -> Result<Trace> {
    if args.prefill == 0 && args.tokens == 0 {
        bail!("nothing to simulate: --prefill and --tokens are both 0");
    }
    let params = SynthParams {
        model: shape.name.clone(),
        layers: shape.layers,
        experts: shape.experts,
        k: shape.k,
        prompt_tokens: args.prefill,
        decode_tokens: args.tokens,
        zipf_skew: args.skew,
        repeat: args.repeat,
        recall: args.recall,
        layer_correlation: args.correlation,
        weight_tilt: WEIGHT_TILT,
    };
    Ok(Trace::collect(&mut Synth::new(params, seed)?)?)
}

/// The shape asked for, if one was.
pub(super) fn shape(sim: &Sim) -> Result<Option<ModelShape>> {
    if !(1.0..=64.0).contains(&sim.bits) {
        bail!("--bits {} is not in 1 to 64", sim.bits);
    }
    match (&sim.model, &sim.model_shape) {
        (Some(path), _) => Ok(Some(shape_of_file(path)?)),
        (None, Some(name)) => Ok(Some(ModelShape::find(name, sim.bits)?)),
        (None, None) => Ok(None),
    }
}

/// The shape of a GGUF file.
pub(crate) fn shape_of_file(path: &Path) -> Result<ModelShape> {
    let (spec, _) = ModelSpec::open(path)?;
    if !spec.is_moe() {
        bail!("{}: a dense model has no experts to place", path.display());
    }
    let sizes = Sizes::of(&spec);
    let layers = spec.expert_layers().count() as u16;
    let (hidden, width) = (spec.shape.hidden as u32, spec.expert_width as u32);
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut shape = ModelShape::find(
        &format!("{layers}x{}x{}:{hidden}x{width}", spec.experts, spec.used),
        motley_sim::shape::DEFAULT_BITS,
    )?;
    shape.name = spec.name.clone().unwrap_or_else(stem);
    shape.expert.bytes = sizes.routed_bytes / u64::from(layers) / u64::from(spec.experts);
    // A model without an output matrix uses its embedding as one.
    let has_output = spec.tensors.iter().any(|tensor| tensor.name == OUTPUT);
    let is_head = |tensor: &SpecTensor| match has_output {
        true => tensor.name == OUTPUT,
        false => tensor.role == Role::Embedding,
    };
    let elsewhere =
        |role| matches!(role, Role::Embedding | Role::Routed { .. } | Role::Predictor { .. });
    let ends = dense_of(&spec, is_head);
    let rest = dense_of(&spec, |tensor| !is_head(tensor) && !elsewhere(tensor.role));
    let part = 1.0 / f64::from(layers);
    shape.dense_layer = Dense { weights: rest.weights * part, bytes: rest.bytes * part };
    shape.ends = ends;
    Ok(shape)
}

fn dense_of(spec: &ModelSpec, wanted: impl Fn(&SpecTensor) -> bool) -> Dense {
    let mut sum = Dense::default();
    for tensor in spec.tensors.iter().filter(|tensor| wanted(tensor)) {
        sum.weights += tensor.elements() as f64;
        sum.bytes += tensor.range.len_bytes as f64;
    }
    sum
}

/// The shape for a trace: as asked, else a ready model with its layers and experts, else a
/// middling expert and a note that says so.
fn shape_of_trace(
    asked: Option<ModelShape>,
    header: &TraceHeader,
    bits: f64,
) -> Result<(ModelShape, Option<String>)> {
    let TraceHeader { layers, experts, k, .. } = *header;
    if let Some(shape) = asked {
        if shape.experts != experts {
            bail!(
                "the trace has {layers} layers × {experts} experts, but {} has {} × {}; \
                 give the model it was recorded from",
                shape.name,
                shape.layers,
                shape.experts
            );
        }
        return Ok((ModelShape { layers, k, ..shape }, None));
    }
    if let Some(ready) = ModelShape::with_grid(layers, experts, bits) {
        let note = format!("expert sizes of {}; --model or --model-shape for others", ready.name);
        return Ok((ModelShape { k, name: header.model.clone(), ..ready }, Some(note)));
    }
    let guessed = ModelShape::find(&format!("{layers}x{experts}x{k}:2048x768"), bits)?;
    let note = "the size of its experts is not known: taken as 2048 × 768; give --model".to_owned();
    Ok((ModelShape { name: header.model.clone(), ..guessed }, Some(note)))
}
