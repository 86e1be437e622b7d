//! What tests of several modules run on: a small synthetic trace, and the record of a run.

use motley_trace::{PhaseRecord, RunRecord, StreamingRecord, Trace};

use crate::synth::{Synth, SynthParams};

/// Synthetic routing of a small model.
pub(crate) fn trace() -> Trace {
    let params = SynthParams {
        model: "synthetic".into(),
        layers: 4,
        experts: 16,
        k: 4,
        prompt_tokens: 32,
        decode_tokens: 64,
        zipf_skew: 0.7,
        repeat: 0.2,
        recall: 0.5,
        layer_correlation: 0.5,
        weight_tilt: 0.0,
    };
    Trace::collect(&mut Synth::new(params, 7).unwrap()).unwrap()
}

/// A run bound by its disk.
pub(crate) fn record() -> RunRecord {
    let phase = |tokens, blocks, experts, expert_tokens| PhaseRecord {
        tokens,
        blocks,
        experts,
        expert_tokens,
        time_s: 2.0,
        blocks_s: 1.6,
        compute_s: 0.2,
        stall_s: 1.2,
        disk_bytes: 800_000_000,
        disk_busy_s: 1.4,
        ..PhaseRecord::default()
    };
    RunRecord {
        motley_run: 1,
        model: "synthetic".into(),
        expert_layers: 4,
        expert_bytes: 1_000_000,
        threads: 2,
        memory_bytes: Some(40_000_000),
        shared: None,
        workers: Vec::new(),
        layouts: Vec::new(),
        streaming: Some(StreamingRecord {
            policy: "lru".into(),
            prefetch: "none".into(),
            cache_slots: 16,
            cache_slots_least: None,
            skip_cold: None,
            staging_slots: 1,
            prefetch_slots: 0,
            loads_in_flight: 64,
            guesses_in_flight: 1,
            predicted: None,
        }),
        speculation: None,
        sampling_s: 0.0,
        energy: None,
        prefill: phase(32, 4, 60, 512),
        decode: phase(64, 256, 1024, 1024),
    }
}
