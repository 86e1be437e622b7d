//! A graph under construction: nodes and constants by name. Which ones, the bodies say.

use crate::spec::{Activation, GraphSpec, Precision};
use half::f16;
use ort::editor::{Graph, Node, ONNX_DOMAIN};
use ort::memory::Allocator;
use ort::operator::Attribute;
use ort::value::Tensor;

/// ONNX Runtime's own operators.
pub(super) const MICROSOFT_DOMAIN: &str = "com.microsoft";
/// ONNX's numbers for the types of a cast.
pub(super) const FLOAT: i64 = 1;
pub(super) const FLOAT16: i64 = 10;
/// Name of the graph's input.
pub(crate) const INPUT: &str = "rows";
/// Name of the graph's output.
pub(crate) const OUTPUT: &str = "result";

/// A graph under construction; values are known by name.
pub(super) struct Builder<'s> {
    pub(super) graph: Graph,
    pub(super) spec: &'s GraphSpec,
    pub(super) nodes: usize,
}

impl Builder<'_> {
    /// Numbers the activation needs, once for all experts.
    pub(super) fn constants(&mut self) -> ort::Result<()> {
        let Activation::SwiGluClamped { alpha, limit } = self.spec.activation else {
            return Ok(());
        };
        for (name, value) in [("alpha", alpha), ("top", limit), ("bottom", -limit), ("one", 1.0)] {
            self.floats(name, &[1], std::iter::once(value))?;
        }
        Ok(())
    }

    pub(super) fn activation(&mut self, gate: &str, up: &str) -> ort::Result<String> {
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

    pub(super) fn node(&mut self, operator: &str, inputs: &[&str]) -> ort::Result<String> {
        let output = self.fresh(operator);
        let node = Node::new(operator, ONNX_DOMAIN, &output, inputs, [&output], [])?;
        self.graph.add_node(node)?;
        Ok(output)
    }

    /// A name nothing has yet.
    pub(super) fn fresh(&mut self, operator: &str) -> String {
        self.nodes += 1;
        format!("{operator}.{}", self.nodes)
    }

    pub(super) fn reshape(&mut self, rows: &str, name: &str, shape: &[i64]) -> ort::Result<String> {
        self.integers(name, shape)?;
        self.node("Reshape", &[rows, name])
    }

    pub(super) fn cast(&mut self, rows: &str, output: &str, to: i64) -> ort::Result<String> {
        let to = Attribute::new("to", to)?;
        let name = format!("to {output}");
        self.graph.add_node(Node::new("Cast", ONNX_DOMAIN, name, [rows], [output], [to])?)?;
        Ok(output.to_owned())
    }

    pub(super) fn integers(&mut self, name: &str, values: &[i64]) -> ort::Result<()> {
        let mut tensor = Tensor::<i64>::new(&Allocator::default(), [values.len() as i64])?;
        tensor.extract_tensor_mut().1.copy_from_slice(values);
        self.graph.add_initializer(name, tensor, false)
    }

    pub(super) fn bytes(
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
    pub(super) fn floats(
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
