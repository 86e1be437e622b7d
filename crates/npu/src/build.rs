//! A spec and weights as an ONNX graph, by ONNX Runtime's own model editor: no protobuf.

use crate::spec::{Activation, GraphSpec, Precision};
use crate::weights::{ExpertWeights, transposed};
use half::f16;
use ort::editor::{Graph, Model, Node, ONNX_DOMAIN, Opset};
use ort::memory::Allocator;
use ort::operator::Attribute;
use ort::value::{Outlet, Shape, SymbolicDimensions, Tensor, TensorElementType, ValueType};

/// Operators used here have not changed since.
const OPSET: u32 = 17;
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
    builder.body(experts)?;
    let mut model = Model::new([Opset::new(ONNX_DOMAIN, OPSET)?])?;
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

struct Builder<'s> {
    graph: Graph,
    spec: &'s GraphSpec,
    nodes: usize,
}

impl Builder<'_> {
    fn body(&mut self, experts: &[&ExpertWeights]) -> ort::Result<()> {
        let spec = self.spec;
        let (hidden, inner) = (spec.shape.hidden, spec.shape.inner);
        let [groups, capacity] = [spec.experts, spec.capacity].map(|size| size as i64);
        let rows = match spec.precision {
            Precision::F32 => INPUT.to_owned(),
            Precision::F16 => self.cast(INPUT, "half", FLOAT16)?,
        };
        let rows = self.reshape(&rows, "split", &[groups, capacity, hidden as i64])?;
        let columns = |pick: fn(&ExpertWeights) -> &[f32], rows: usize| {
            experts.iter().flat_map(move |expert| transposed(pick(expert), rows))
        };
        self.weight("gate", [hidden, inner], columns(|e| &e.gate, inner))?;
        self.weight("up", [hidden, inner], columns(|e| &e.up, inner))?;
        self.weight("down", [inner, hidden], columns(|e| &e.down, hidden))?;
        self.biases(experts)?;
        let gate = self.product(&rows, "gate")?;
        let up = self.product(&rows, "up")?;
        let between = self.activation(gate, up)?;
        let result = self.product(&between, "down")?;
        let result = self.reshape(&result, "join", &[spec.rows() as i64, hidden as i64])?;
        match spec.precision {
            Precision::F32 => {
                let node = Node::new("Identity", ONNX_DOMAIN, "out", [&result], [OUTPUT], [])?;
                self.graph.add_node(node)
            }
            Precision::F16 => self.cast(&result, OUTPUT, FLOAT).map(drop),
        }
    }

    fn biases(&mut self, experts: &[&ExpertWeights]) -> ort::Result<()> {
        if !self.spec.biased {
            return Ok(());
        }
        let (hidden, inner) = (self.spec.shape.hidden, self.spec.shape.inner);
        let biases = || experts.iter().filter_map(|expert| expert.biases.as_ref());
        self.weight("gate.bias", [1, inner], biases().flat_map(|b| b.gate.iter().copied()))?;
        self.weight("up.bias", [1, inner], biases().flat_map(|b| b.up.iter().copied()))?;
        self.weight("down.bias", [1, hidden], biases().flat_map(|b| b.down.iter().copied()))
    }

    /// `rows` times a matrix of every expert, plus its bias where there is one.
    fn product(&mut self, rows: &str, matrix: &str) -> ort::Result<String> {
        let product = self.node("MatMul", &[rows, matrix])?;
        if !self.spec.biased {
            return Ok(product);
        }
        self.node("Add", &[&product, &format!("{matrix}.bias")])
    }

    fn activation(&mut self, gate: String, up: String) -> ort::Result<String> {
        match self.spec.activation {
            Activation::SwiGlu => {
                let sigmoid = self.node("Sigmoid", &[&gate])?;
                let silu = self.node("Mul", &[&gate, &sigmoid])?;
                self.node("Mul", &[&silu, &up])
            }
            Activation::SwiGluClamped { alpha, limit } => {
                for (name, value) in
                    [("alpha", alpha), ("top", limit), ("bottom", -limit), ("one", 1.0)]
                {
                    self.constant(name, value)?;
                }
                let gate = self.node("Min", &[&gate, "top"])?;
                let up = self.node("Min", &[&up, "top"])?;
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
        self.nodes += 1;
        let output = format!("{operator}.{}", self.nodes);
        let node = Node::new(operator, ONNX_DOMAIN, &output, inputs, [&output], [])?;
        self.graph.add_node(node)?;
        Ok(output)
    }

    fn reshape(&mut self, rows: &str, name: &str, shape: &[i64]) -> ort::Result<String> {
        let mut tensor = Tensor::<i64>::new(&Allocator::default(), [shape.len() as i64])?;
        tensor.extract_tensor_mut().1.copy_from_slice(shape);
        self.graph.add_initializer(name, tensor, false)?;
        self.node("Reshape", &[rows, name])
    }

    fn cast(&mut self, rows: &str, output: &str, to: i64) -> ort::Result<String> {
        let to = Attribute::new("to", to)?;
        let name = format!("to {output}");
        self.graph.add_node(Node::new("Cast", ONNX_DOMAIN, name, [rows], [output], [to])?)?;
        Ok(output.to_owned())
    }

    fn constant(&mut self, name: &str, value: f32) -> ort::Result<()> {
        self.add_tensor(name, vec![1], std::iter::once(value))
    }

    /// A tensor of every expert: `[G, shape]`.
    fn weight(
        &mut self,
        name: &str,
        shape: [usize; 2],
        values: impl Iterator<Item = f32>,
    ) -> ort::Result<()> {
        let shape = vec![self.spec.experts as i64, shape[0] as i64, shape[1] as i64];
        self.add_tensor(name, shape, values)
    }

    fn add_tensor(
        &mut self,
        name: &str,
        shape: Vec<i64>,
        values: impl Iterator<Item = f32>,
    ) -> ort::Result<()> {
        let allocator = Allocator::default();
        match self.spec.precision {
            Precision::F32 => {
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
