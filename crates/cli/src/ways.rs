//! How the CPU computed routed experts, in words: what `bench` and `explain` say of a run.

use motley_trace::{PhaseRecord, RunRecord};

/// One line for each phase that was run.
pub(crate) fn ways(record: &RunRecord) -> Vec<String> {
    let layouts: Vec<_> = record.layouts.iter().map(|(layout, _)| layout.as_str()).collect();
    let layout = if layouts.is_empty() { "plain".into() } else { layouts.join(" and ") };
    let phases = [("prefill", &record.prefill), ("decode", &record.decode)];
    let run = phases.into_iter().filter(|(_, phase)| phase.tokens > 0);
    run.map(|(name, phase)| format!("{name}: {layout} layout, {}", way(phase))).collect()
}

fn way(phase: &PhaseRecord) -> &'static str {
    match (phase.blocks, phase.in_blocks) {
        (0, _) => "left to llama.cpp, counted as dense layers",
        (_, 0) => "whole (MUL_MAT_ID)",
        (all, some) if some < all => "blocks of one expert where they have rows enough",
        _ => "blocks of one expert",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_its_words() {
        let of = |blocks, in_blocks| {
            way(&PhaseRecord { tokens: 1, blocks, in_blocks, ..PhaseRecord::default() })
        };
        assert_eq!(of(4, 4), "blocks of one expert");
        assert_eq!(of(4, 0), "whole (MUL_MAT_ID)");
        assert!(of(4, 1).contains("where") && of(0, 0).starts_with("left to llama.cpp"));
    }
}
