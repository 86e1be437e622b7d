//! A spec and weights as an ONNX graph, by ONNX Runtime's own model editor: no protobuf.
//! What the body of a graph is follows from the form of its weights:
//!
//! * `builder`: a graph under construction.
//! * `batched`: numbers; one product per matrix, whatever the number of experts.
//! * `blocks`: four bits; one product per matrix and expert, in one graph all the same.

mod batched;
mod blocks;
mod builder;

pub(crate) use builder::{INPUT, OUTPUT};

use crate::spec::{GraphSpec, Precision};
use crate::weights::ExpertWeights;
use builder::{Builder, MICROSOFT_DOMAIN};
use ort::editor::{Graph, Model, ONNX_DOMAIN, Opset};
use ort::value::{Outlet, Shape, SymbolicDimensions, TensorElementType, ValueType};

/// Operators used here have not changed since.
const OPSET: u32 = 17;
/// Version of ONNX Runtime's own operators.
const MICROSOFT_OPSET: u32 = 1;

/// The graph of `spec` with these experts in order.
pub(crate) fn model(spec: &GraphSpec, experts: &[&ExpertWeights]) -> ort::Result<Model> {
    let mut builder = Builder { graph: Graph::new()?, spec, nodes: 0 };
    let rows = [spec.rows() as i64, spec.shape.hidden as i64];
    builder.graph.set_inputs([outlet(INPUT, rows)])?;
    builder.graph.set_outputs([outlet(OUTPUT, rows)])?;
    builder.constants()?;
    let mut opsets = vec![Opset::new(ONNX_DOMAIN, OPSET)?];
    match spec.precision {
        Precision::F32 | Precision::F16 => batched::body(&mut builder, experts)?,
        Precision::Q4 => {
            opsets.push(Opset::new(MICROSOFT_DOMAIN, MICROSOFT_OPSET)?);
            blocks::body(&mut builder, experts)?;
        }
    }
    let mut model = Model::new(opsets)?;
    model.set_graph(builder.graph)?;
    Ok(model)
}

fn outlet(name: &str, shape: [i64; 2]) -> Outlet {
    let ty = ValueType::Tensor {
        ty: TensorElementType::Float32,
        shape: Shape::new(shape),
        dimension_symbols: SymbolicDimensions::empty(2),
    };
    Outlet::new(name, ty)
}
