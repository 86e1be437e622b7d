//! Every architecture, generated and read back by the model reader: the features that set it
//! apart are there.

use super::{Arch, Preset, Request, generate};
use crate::gguf_source::Tokenizer;
use motley_model::{Gating, ModelSpec};
use proptest::prelude::*;

fn spec_of(request: &Request) -> ModelSpec {
    let folder = tempfile::tempdir().expect("a folder");
    let tokenizer = Tokenizer::for_tests(&["a", "b", "c", "d"]);
    let out = folder.path().join("model.gguf");
    let report = generate(request, &tokenizer, &out, &mut |_| {}).expect("generates");
    ModelSpec::open(&report.path).expect("a model").0
}

/// What sets an architecture apart.
#[derive(Debug, PartialEq)]
struct Features {
    gating: Gating,
    normalised: bool,
    grouped: bool,
    selection_bias: bool,
    logit_bias: bool,
    shared: bool,
    shared_gate: bool,
    leading_dense_layers: u32,
}

const PLAIN: Features = Features {
    gating: Gating::Softmax,
    normalised: true,
    grouped: false,
    selection_bias: false,
    logit_bias: false,
    shared: false,
    shared_gate: false,
    leading_dense_layers: 0,
};

fn expected(arch: Arch) -> Features {
    match arch {
        Arch::Qwen3moe | Arch::Llama | Arch::Phimoe | Arch::Granitemoe | Arch::Gemma4 => PLAIN,
        Arch::Olmoe => Features { normalised: false, ..PLAIN },
        Arch::Qwen2moe => Features { normalised: false, shared: true, shared_gate: true, ..PLAIN },
        Arch::Qwen35moe => Features { shared: true, shared_gate: true, ..PLAIN },
        Arch::Granitehybrid => Features { shared: true, ..PLAIN },
        Arch::Glm4moe => Features {
            gating: Gating::Sigmoid,
            selection_bias: true,
            shared: true,
            leading_dense_layers: 1,
            ..PLAIN
        },
        Arch::MinimaxM2 => Features { gating: Gating::Sigmoid, selection_bias: true, ..PLAIN },
        Arch::GptOss => {
            Features { gating: Gating::SoftmaxWeight, normalised: false, logit_bias: true, ..PLAIN }
        }
        Arch::Deepseek2 | Arch::Deepseek32 => Features {
            gating: Gating::Sigmoid,
            grouped: true,
            selection_bias: true,
            shared: true,
            leading_dense_layers: 1,
            ..PLAIN
        },
        Arch::Qwen3 => unreachable!("no experts"),
    }
}

#[test]
fn each_architecture_has_what_sets_it_apart() {
    for arch in Arch::ALL {
        let spec = spec_of(&Request::of_preset(Preset::Test(*arch)));
        let router = spec.router.as_ref().expect("a router");
        let features = Features {
            gating: router.gating,
            normalised: router.normalised,
            grouped: router.groups.is_some(),
            selection_bias: router.selection_bias,
            logit_bias: router.logit_bias,
            shared: spec.shared.is_some(),
            shared_gate: spec.shared.is_some_and(|shared| shared.gated),
            leading_dense_layers: spec.leading_dense_layers,
        };
        assert_eq!(features, expected(*arch), "{arch}");
        assert_eq!((spec.experts, spec.used, spec.expert_width), (16, 4, 256), "{arch}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_shape_reads_back(
        arch in proptest::sample::select(Arch::ALL),
        layers in 2u64..5,
        half_heads in 1u64..4,
        groups in 1u64..4,
        ff in proptest::sample::select(vec![32u64, 96, 256]),
        topk in 1u64..4,
    ) {
        let mut request = Request::of_preset(Preset::Test(arch));
        let shape = &mut request.shape;
        (shape.layers, shape.ff, shape.topk, shape.experts) = (layers, ff, topk, 8 * groups);
        shape.heads = 2 * half_heads;
        shape.kv_heads = if arch == Arch::Olmoe { shape.heads } else { 2 };
        shape.hidden = shape.heads * shape.head_dim;
        let spec = spec_of(&request);
        prop_assert_eq!(u64::from(spec.shape.layers), layers);
        prop_assert_eq!(u64::from(spec.experts), 8 * groups);
        prop_assert_eq!(u64::from(spec.used), topk);
        prop_assert_eq!(spec.expert_width, ff);
    }
}
