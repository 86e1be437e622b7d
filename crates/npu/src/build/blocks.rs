//! Experts of four bits: `MatMulNBits` takes one matrix, so rows are split by expert and
//! joined again. Blocks of 32, zero at 8, one scale: what GGUF's Q4_0 is, with neighbours in
//! one byte. Nothing is rounded on the way.
//!
//! ```text
//! rows [G·C, H] ─ split ─┬─ expert 0 [C, H] ─ gate, up ─ activation ─ down ─┬─ join [G·C, H]
//!                        └─ expert 1 …                                      ┘
//! ```

use super::builder::{Builder, INPUT, MICROSOFT_DOMAIN, OUTPUT};
use crate::spec::{BLOCK, ExpertShape};
use crate::weights::{ExpertWeights, Matrix, PACKED_BYTES, packed, scale};
use ort::editor::{Node, ONNX_DOMAIN};
use ort::operator::Attribute;

/// Bits of a weight.
const BITS: i64 = 4;

pub(super) fn body(builder: &mut Builder<'_>, experts: &[&ExpertWeights]) -> ort::Result<()> {
    let ExpertShape { hidden, inner } = builder.spec.shape;
    let mut results = Vec::with_capacity(experts.len());
    for (at, (expert, rows)) in experts.iter().zip(split(builder)?).enumerate() {
        let biases = expert.biases.as_ref();
        let entry = [inner, hidden];
        let gate = (&expert.gate, biases.map(|b| &b.gate[..]));
        let gate = product(builder, &rows, (&format!("gate.{at}"), entry), gate)?;
        let up = (&expert.up, biases.map(|b| &b.up[..]));
        let up = product(builder, &rows, (&format!("up.{at}"), entry), up)?;
        let between = builder.activation(&gate, &up)?;
        let down = (&expert.down, biases.map(|b| &b.down[..]));
        let name = format!("down.{at}");
        results.push(product(builder, &between, (&name, [hidden, inner]), down)?);
    }
    let axis = Attribute::new("axis", 0_i64)?;
    builder.graph.add_node(Node::new("Concat", ONNX_DOMAIN, "join", results, [OUTPUT], [axis])?)
}

/// The rows of each expert.
fn split(builder: &mut Builder<'_>) -> ort::Result<Vec<String>> {
    let spec = builder.spec;
    let parts: Vec<String> = (0..spec.experts).map(|at| format!("rows.{at}")).collect();
    builder.integers("parts", &vec![spec.capacity as i64; spec.experts])?;
    let axis = Attribute::new("axis", 0_i64)?;
    let node = Node::new("Split", ONNX_DOMAIN, "split", [INPUT, "parts"], &parts, [axis])?;
    builder.graph.add_node(node)?;
    Ok(parts)
}

/// `rows` times a matrix `(outputs, inputs)` in blocks, plus its bias where there is one.
fn product(
    builder: &mut Builder<'_>,
    rows: &str,
    (name, [outputs, inputs]): (&str, [usize; 2]),
    (matrix, bias): (&Matrix, Option<&[f32]>),
) -> ort::Result<String> {
    let [count, blocks] = [outputs as i64, (inputs / BLOCK) as i64];
    let scales = format!("{name}.scales");
    let shape = [count, blocks, PACKED_BYTES as i64];
    builder.bytes(name, &shape, matrix.blocks().flat_map(packed))?;
    builder.floats(&scales, &[count * blocks], matrix.blocks().map(scale))?;
    let output = builder.fresh("MatMulNBits");
    let attributes = [
        Attribute::new("K", inputs as i64)?,
        Attribute::new("N", count)?,
        Attribute::new("bits", BITS)?,
        Attribute::new("block_size", BLOCK as i64)?,
    ];
    let given = [rows, name, &scales];
    let node = Node::new("MatMulNBits", MICROSOFT_DOMAIN, &output, given, [&output], attributes)?;
    builder.graph.add_node(node)?;
    let Some(bias) = bias else { return Ok(output) };
    let biases = format!("{name}.bias");
    builder.floats(&biases, &[1, count], bias.iter().copied())?;
    builder.node("Add", &[&output, &biases])
}
