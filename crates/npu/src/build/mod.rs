//! A spec and weights as an ONNX graph, by ONNX Runtime's own model editor: no protobuf.
//! What the body of a graph is follows from the form of its weights:
//!
//! * `batched`: numbers; one product per matrix, whatever the number of experts.
//! * `blocks`: four bits; one product per matrix and expert, in one graph all the same.

mod batched;
mod blocks;

use crate::spec::{Activation, GraphSpec, Precision};
use crate::weights::ExpertWeights;
use half::f16;
use ort::editor::{Graph, Model, Node, ONNX_DOMAIN, Opset};
use ort::memory::Allocator;
use ort::operator::Attribute;
use ort::value::{Outlet, Shape, SymbolicDimensions, Tensor, TensorElementType, ValueType};

/// Operators used here have not changed since.
const OPSET: u32 = 17;
/// ONNX Runtime's own operators, and their version.
const MICROSOFT_DOMAIN: &str = "com.microsoft";
const MICROSOFT_OPSET: u32 = 1;
/// ONNX's numbers for the types of a cast.
const FLOAT: i64 = 1;
const FLOAT16: i64 = 10;
/// Name of the graph's input.
pub(crate) const INPUT: &str = "rows";
/// Name of the graph's output.
pub(crate) const OUTPUT: &str = "result";

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

/// A graph under construction; values are known by name.
struct Builder<'s> {
    graph: Graph,
    spec: &'s GraphSpec,
    nodes: usize,
}

impl Builder<'_> {
    /// Numbers the activation needs, once for all experts.
    fn constants(&mut self) -> ort::Result<()> {
        let Activation::SwiGluClamped { alpha, limit } = self.spec.activation else {
            return Ok(());
        };
        for (name, value) in [("alpha", alpha), ("top", limit), ("bottom", -limit), ("one", 1.0)] {
            self.floats(name, &[1], std::iter::once(value))?;
        }
        Ok(())
    }

    fn activation(&mut self, gate: &str, up: &str) -> ort::Result<String> {
        match self.spec.activation {
            Activation::SwiGlu => {
                let sigmoid = self.node("Sigmoid", &[gate])?;
                let silu = self.node("Mul", &[gate, &sigmoid])?;
                self.node("Mul", &[&silu, up])
            }
            Activation::SwiGluClamped { .. } => {
                let gate = self.node("Min", &[gate, "top"])?;
                let up = self.node("Min", &[up, "top"])?;
                let up = self.node("Max", &[&up, "bottom"])?;
                let steep = self.node("Mul", &[&gate, "alpha"])?;
                let sigmoid = self.node("Sigmoid", &[&steep])?;
                let gate = self.node("Mul", &[&gate, &sigmoid])?;
                let up = self.node("Add", &[&up, "one"])?;
                self.node("Mul", &[&gate, &up])
            }
        }
    }

    fn node(&mut self, operator: &str, inputs: &[&str]) -> ort::Result<String> {
        let output = self.fresh(operator);
        let node = Node::new(operator, ONNX_DOMAIN, &output, inputs, [&output], [])?;
        self.graph.add_node(node)?;
        Ok(output)
    }

    /// A name nothing has yet.
    fn fresh(&mut self, operator: &str) -> String {
        self.nodes += 1;
        format!("{operator}.{}", self.nodes)
    }

    fn reshape(&mut self, rows: &str, name: &str, shape: &[i64]) -> ort::Result<String> {
        self.integers(name, shape)?;
        self.node("Reshape", &[rows, name])
    }

    fn cast(&mut self, rows: &str, output: &str, to: i64) -> ort::Result<String> {
        let to = Attribute::new("to", to)?;
        let name = format!("to {output}");
        self.graph.add_node(Node::new("Cast", ONNX_DOMAIN, name, [rows], [output], [to])?)?;
        Ok(output.to_owned())
    }

    fn integers(&mut self, name: &str, values: &[i64]) -> ort::Result<()> {
        let mut tensor = Tensor::<i64>::new(&Allocator::default(), [values.len() as i64])?;
        tensor.extract_tensor_mut().1.copy_from_slice(values);
        self.graph.add_initializer(name, tensor, false)
    }

    fn bytes(
        &mut self,
        name: &str,
        shape: &[i64],
        values: impl Iterator<Item = u8>,
    ) -> ort::Result<()> {
        let mut tensor = Tensor::<u8>::new(&Allocator::default(), shape.to_vec())?;
        let slots = tensor.extract_tensor_mut().1.iter_mut();
        slots.zip(values).for_each(|(slot, value)| *slot = value);
        self.graph.add_initializer(name, tensor, false)
    }

    /// A tensor of the numbers the graph computes with.
    fn floats(
        &mut self,
        name: &str,
        shape: &[i64],
        values: impl Iterator<Item = f32>,
    ) -> ort::Result<()> {
        let (allocator, shape) = (Allocator::default(), shape.to_vec());
        match self.spec.precision {
            Precision::F32 | Precision::Q4 => {
                let mut tensor = Tensor::<f32>::new(&allocator, shape)?;
                let slots = tensor.extract_tensor_mut().1.iter_mut();
                slots.zip(values).for_each(|(slot, value)| *slot = value);
                self.graph.add_initializer(name, tensor, false)
            }
            Precision::F16 => {
                let mut tensor = Tensor::<f16>::new(&allocator, shape)?;
                let slots = tensor.extract_tensor_mut().1.iter_mut();
                slots.zip(values).for_each(|(slot, value)| *slot = f16::from_f32(value));
                self.graph.add_initializer(name, tensor, false)
            }
        }
    }
}
