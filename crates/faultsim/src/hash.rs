//! The one hash everything here is made of: known bytes, known answers.

/// SplitMix64's finaliser.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Words of this many bytes are taken from bytes that are longer than a page, one per so many.
const SPARSE_BYTES: usize = 248;

/// A fingerprint of `bytes`: of every word when they are few, of some and the last when not.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let step = if bytes.len() <= 4096 { 8 } else { SPARSE_BYTES };
    let word = |at: usize| {
        let end = (at + 8).min(bytes.len());
        bytes[at..end].iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte))
    };
    let starts = (0..bytes.len()).step_by(step).chain(bytes.len().checked_sub(8));
    starts.fold(bytes.len() as u64, |sum, at| mix(sum ^ word(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_changes_the_fingerprint() {
        let mut bytes: Vec<u8> = (0..100).collect();
        let before = fingerprint(&bytes);
        bytes[99] ^= 1;
        assert_ne!(fingerprint(&bytes), before);
        assert_ne!(fingerprint(&bytes[..99]), fingerprint(&bytes));
    }
}
