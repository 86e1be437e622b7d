//! What stays free of every memory: the one table of reserves. Everything that divides memory,
//! in a run, in a plan and in a simulation, takes its reserve from here.
//!
//! | memory | stays free | for |
//! |---|---|---|
//! | RAM of a machine | the larger of [`RAM_BYTES`] and [`RAM_SHARE`], at most an eighth | other programs |
//! | RAM of a control group | [`RAM_SHARE`], at most [`RAM_BYTES`] | it is ours alone: a sliver |
//! | a GPU | [`DEVICE_SHARE`] of what is free | drivers and fragments |
//! | experts on a GPU | [`DEVICE_ROWS_SHARE`] | rows on their way, and results |
//! | a GPU in a what-if | [`UNKNOWN_DENSE_SHARE`] | dense weights whose size no record tells |
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

/// Most of a device's memory for experts that rows and results take.
pub const DEVICE_ROWS_SHARE: f64 = 1.0 / 8.0;
/// Part of a device left to dense weights and KV cache where their size is not known.
pub const UNKNOWN_DENSE_SHARE: f64 = 0.2;

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

/// What rows and results may take of a device's memory for experts.
pub fn device_rows(expert_bytes: u64) -> u64 {
    (expert_bytes as f64 * DEVICE_ROWS_SHARE) as u64
}

/// What may be used for experts of a device beside dense weights of unknown size.
pub fn beside_unknown_dense(device_bytes: u64) -> u64 {
    (device_bytes as f64 * (1.0 - UNKNOWN_DENSE_SHARE)) as u64
}

fn share(ceiling_bytes: u64) -> u64 {
    (ceiling_bytes as f64 * RAM_SHARE) as u64
}
