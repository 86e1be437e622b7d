//! W2 and W4: tokens in blocks of one expert each. How large, and how many suffice.

use motley_machine::Device;

/// Blocks that are tried, in tokens.
pub const BLOCKS: [u32; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// W4: the smallest block whose operations per weight byte reach what the device can do per byte
/// it reads; the largest there is when none does.
///
/// A block of `n` tokens does `2n` operations per weight of `bits` bits.
pub fn block_tokens(device: &Device, bits_per_weight: f64) -> u32 {
    let flop_per_byte = device.compute_tflops * 1e3 / device.bandwidth_gb_per_s;
    let reached = |tokens: &u32| 2.0 * f64::from(*tokens) * 8.0 / bits_per_weight >= flop_per_byte;
    BLOCKS.into_iter().find(reached).unwrap_or(BLOCKS[BLOCKS.len() - 1])
}

/// W2: blocks that hold every pair whatever the routing, `ceil(T·k/B) + (E-1)`.
pub fn blocks_needed(pairs: u64, block_tokens: u32, experts: u32) -> u64 {
    pairs.div_ceil(u64::from(block_tokens.max(1))) + u64::from(experts.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_wants_larger_blocks_than_a_cpu() {
        let machine = motley_machine::find("desktop-24gb-gpu").unwrap();
        let of = |name: &str| block_tokens(machine.device(name).unwrap(), 4.5);
        assert!(of("gpu") >= 2 * of("cpu"), "{} and {}", of("gpu"), of("cpu"));
    }

    #[test]
    fn blocks_suffice_for_the_worst_routing() {
        // Every expert but one ends in a block of a single token.
        assert_eq!(blocks_needed(512 * 8, 128, 128), 32 + 127);
        let worst: u64 = (0..127).map(|_| 1u64).chain([4096 - 127]).map(|n| n.div_ceil(128)).sum();
        assert!(worst <= blocks_needed(4096, 128, 128));
    }
}
