//! Experts of numbers: G of them are one tensor per matrix, so a graph is three products.

use super::builder::{Builder, FLOAT, FLOAT16, INPUT, OUTPUT};
use crate::spec::Precision;
use crate::weights::{ExpertWeights, transposed};
use ort::editor::{Node, ONNX_DOMAIN};

pub(super) fn body(builder: &mut Builder<'_>, experts: &[&ExpertWeights]) -> ort::Result<()> {
    let spec = builder.spec;
    let (hidden, inner) = (spec.shape.hidden, spec.shape.inner);
    let [groups, capacity] = [spec.experts, spec.capacity].map(|size| size as i64);
    let rows = match spec.precision {
        Precision::F16 => builder.cast(INPUT, "half", FLOAT16)?,
        Precision::F32 | Precision::Q4 => INPUT.to_owned(),
    };
    let rows = builder.reshape(&rows, "split", &[groups, capacity, hidden as i64])?;
    let columns = |pick: fn(&ExpertWeights) -> &[f32], rows: usize| {
        experts.iter().flat_map(move |expert| transposed(pick(expert), rows))
    };
    weight(builder, "gate", [hidden, inner], columns(|e| e.gate.floats(), inner))?;
    weight(builder, "up", [hidden, inner], columns(|e| e.up.floats(), inner))?;
    weight(builder, "down", [inner, hidden], columns(|e| e.down.floats(), hidden))?;
    biases(builder, experts)?;
    let gate = product(builder, &rows, "gate")?;
    let up = product(builder, &rows, "up")?;
    let between = builder.activation(&gate, &up)?;
    let result = product(builder, &between, "down")?;
    let result = builder.reshape(&result, "join", &[spec.rows() as i64, hidden as i64])?;
    match spec.precision {
        Precision::F16 => builder.cast(&result, OUTPUT, FLOAT).map(drop),
        Precision::F32 | Precision::Q4 => {
            let node = Node::new("Identity", ONNX_DOMAIN, "out", [&result], [OUTPUT], [])?;
            builder.graph.add_node(node)
        }
    }
}

fn biases(builder: &mut Builder<'_>, experts: &[&ExpertWeights]) -> ort::Result<()> {
    if !builder.spec.biased {
        return Ok(());
    }
    let (hidden, inner) = (builder.spec.shape.hidden, builder.spec.shape.inner);
    let biases = || experts.iter().filter_map(|expert| expert.biases.as_ref());
    weight(builder, "gate.bias", [1, inner], biases().flat_map(|b| b.gate.iter().copied()))?;
    weight(builder, "up.bias", [1, inner], biases().flat_map(|b| b.up.iter().copied()))?;
    weight(builder, "down.bias", [1, hidden], biases().flat_map(|b| b.down.iter().copied()))
}

/// `rows` times a matrix of every expert, plus its bias where there is one.
fn product(builder: &mut Builder<'_>, rows: &str, matrix: &str) -> ort::Result<String> {
    let product = builder.node("MatMul", &[rows, matrix])?;
    if !builder.spec.biased {
        return Ok(product);
    }
    builder.node("Add", &[&product, &format!("{matrix}.bias")])
}

/// A tensor of every expert: `[G, shape]`.
fn weight(
    builder: &mut Builder<'_>,
    name: &str,
    shape: [usize; 2],
    values: impl Iterator<Item = f32>,
) -> ort::Result<()> {
    let shape = [builder.spec.experts as i64, shape[0] as i64, shape[1] as i64];
    builder.floats(name, &shape, values)
}
