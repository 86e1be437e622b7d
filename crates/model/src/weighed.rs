//! Whether the weights of a token's experts follow from the rows its experts read: where they do,
//! they can be computed beside llama.cpp, and what an expert adds is known before it is computed.

use crate::gguf::GgmlType;
use crate::role::Role;
use crate::router::Gating;
use crate::spec::ModelSpec;

/// Architectures whose routers look at other rows than the experts, weigh the rows before the
/// experts (llama4), or choose by other scores than they weigh with (grovemoe).
const OTHERWISE: [&str; 5] = ["gemma4", "grovemoe", "kimi-k3", "llama4", "smallthinker"];

/// Why nobody but llama.cpp knows the weights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unweighed {
    #[error("this model has no routed experts")]
    Dense,
    #[error("a token of this model uses one expert, which always stays")]
    One,
    #[error(
        "in {architecture} models the weights of experts do not follow from the rows experts read"
    )]
    Otherwise { architecture: String },
    #[error("how {architecture} models weigh experts is not known")]
    Unknown { architecture: String },
    #[error("the router of layer {layer} is not F32")]
    Type { layer: u32 },
}

impl ModelSpec {
    /// Whether the weights of a token's experts follow from the rows they read.
    pub fn weighs_by_rows(&self) -> Result<(), Unweighed> {
        let architecture = || self.architecture.clone();
        let router = self.router.as_ref().filter(|_| self.is_moe()).ok_or(Unweighed::Dense)?;
        if self.used < 2 {
            return Err(Unweighed::One);
        }
        if OTHERWISE.contains(&self.architecture.as_str()) {
            return Err(Unweighed::Otherwise { architecture: architecture() });
        }
        if router.gating == Gating::Unknown {
            return Err(Unweighed::Unknown { architecture: architecture() });
        }
        let unreadable = |layer: &u32| !self.has_plain_router(*layer);
        match self.expert_layers().map(|experts| experts.layer).find(unreadable) {
            Some(layer) => Err(Unweighed::Type { layer }),
            None => Ok(()),
        }
    }

    fn has_plain_router(&self, layer: u32) -> bool {
        self.tensors.iter().any(|tensor| {
            tensor.role == Role::Router { layer }
                && tensor.name.ends_with("ffn_gate_inp.weight")
                && tensor.ty == GgmlType::F32
        })
    }
}
