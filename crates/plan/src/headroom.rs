//! What stays free of every memory: the one table of reserves. Everything that divides memory,
//! in a run, in a plan and in a simulation, takes its reserve from here.
//!
//! | memory | stays free | for |
//! |---|---|---|
//! | RAM of a machine | the larger of [`RAM_BYTES`] and [`RAM_SHARE`], at most an eighth | other programs |
//! | RAM of a control group | [`RAM_SHARE`], at most [`RAM_BYTES`] | it is ours alone: a sliver |
//! | a GPU | [`DEVICE_SHARE`] of what is free | drivers and fragments |
//! | inside a budget | [`PROCESS_BYTES`] | the process itself |

/// Allowance for what llama.cpp and the process take beside weights and KV cache: code,
/// vocabulary, graphs, the reader's buffers. After loading, resident memory was 55 MB
/// above the dense weights on a model with 49 k tokens; contexts come on top.
pub const PROCESS_BYTES: u64 = 192 << 20;
/// Least RAM left to other programs.
pub const RAM_BYTES: u64 = 1 << 30;
/// Part of the RAM left to other programs.
pub const RAM_SHARE: f64 = 0.08;
/// Part of a device's free memory that is left alone.
pub const DEVICE_SHARE: f64 = 1.0 / 16.0;

/// RAM left free of `ceiling_bytes` that others use too.
pub fn beside_others(ceiling_bytes: u64) -> u64 {
    // A small machine keeps an eighth rather than a gibibyte it does not have.
    share(ceiling_bytes).max(RAM_BYTES.min(ceiling_bytes / 8))
}

/// RAM left free of a control group's ceiling.
pub fn in_control_group(ceiling_bytes: u64) -> u64 {
    share(ceiling_bytes).min(RAM_BYTES)
}

/// What may be used of a device's free memory.
pub fn device_room(free_bytes: u64) -> u64 {
    free_bytes - (free_bytes as f64 * DEVICE_SHARE) as u64
}

fn share(ceiling_bytes: u64) -> u64 {
    (ceiling_bytes as f64 * RAM_SHARE) as u64
}
