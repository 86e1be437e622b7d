//! Which of a model's quantisations a machine should have, by their names and sizes alone: nothing
//! of them is here yet. Where one runs from is `decide`'s to say, once its header is known.
//!
//! A model that stays in memory decodes many times faster than one read from disk, and the time of
//! a token is the bytes it reads; so the usual four bits where they stay in memory, else the largest
//! that does and still has three bits. Where none does, four bits again: experts are read from disk
//! then whatever is chosen, and fewer bits cost more quality than they save.

use crate::headroom::PROCESS_BYTES;
use motley_model::format_bytes;

/// What a session takes beside weights and the process, while no header is known: the KV cache and
/// buffers of a few thousand tokens.
const SESSION_BYTES: u64 = 512 << 20;
/// Fewest bits that are chosen because they fit.
const LEAST_BITS: u32 = 3;
/// The usual ones, best first.
const USUAL: [&str; 12] = [
    "Q4_K_M",
    "UD-Q4_K_XL",
    "Q4_K_L",
    "Q4_K_S",
    "MXFP4_MOE",
    "MXFP4",
    "UD-Q4_K_M",
    "IQ4_NL",
    "IQ4_XS",
    "Q4_0",
    "Q4_1",
    "UD-IQ4_XS",
];

/// A quantisation that can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered<'a> {
    /// `Q4_K_M`.
    pub name: &'a str,
    pub bytes: u64,
}

/// One of those offered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub index: usize,
    pub why: String,
}

/// Chooses among `offers` for a machine with `room_bytes` of memory; `None` among none.
pub fn choose(offers: &[Offered<'_>], room_bytes: Option<u64>) -> Option<Choice> {
    let usual = usual(offers)?;
    let Some(room) = room_bytes else {
        return Some(Choice { index: usual, why: "the usual one".to_owned() });
    };
    let shown = format_bytes(room);
    if stays(&offers[usual], SESSION_BYTES + PROCESS_BYTES, room) {
        let why = format!("the usual one, and it stays in memory ({shown})");
        return Some(Choice { index: usual, why });
    }
    let fitting = |offer: &Offered<'_>| {
        let enough = bits(offer.name).is_some_and(|bits| bits >= LEAST_BITS);
        enough && stays(offer, SESSION_BYTES + PROCESS_BYTES, room)
    };
    Some(match largest(offers, fitting) {
        Some(index) => Choice { index, why: format!("the largest that stays in memory ({shown})") },
        None => Choice {
            index: usual,
            why: format!("the usual one; none with {LEAST_BITS} bits stays in memory ({shown})"),
        },
    })
}

/// The largest other one that would stay in memory, where `beside_bytes` are needed beside weights:
/// a smaller one if the chosen one does not stay, else a larger one.
pub fn better_fit(
    offers: &[Offered<'_>],
    chosen: usize,
    beside_bytes: u64,
    room_bytes: u64,
) -> Option<usize> {
    let own = offers.get(chosen)?;
    let chosen_stays = stays(own, beside_bytes, room_bytes);
    largest(offers, |offer| {
        stays(offer, beside_bytes, room_bytes) && (!chosen_stays || offer.bytes > own.bytes)
    })
}

fn stays(offer: &Offered<'_>, beside_bytes: u64, room_bytes: u64) -> bool {
    offer.bytes.saturating_add(beside_bytes) <= room_bytes
}

fn largest(offers: &[Offered<'_>], is: impl Fn(&Offered<'_>) -> bool) -> Option<usize> {
    let found = (0..offers.len()).filter(|index| is(&offers[*index]));
    found.max_by_key(|index| offers[*index].bytes)
}

/// The first usual one; else the smallest with four bits or more, else the largest.
fn usual(offers: &[Offered<'_>]) -> Option<usize> {
    let named = |name: &&str| offers.iter().position(|offer| offer.name == *name);
    let by_size = |index: &usize| offers[*index].bytes;
    let enough = |index: &usize| bits(offers[*index].name).is_none_or(|bits| bits >= 4);
    USUAL
        .iter()
        .find_map(named)
        .or_else(|| (0..offers.len()).filter(enough).min_by_key(by_size))
        .or_else(|| (0..offers.len()).max_by_key(by_size))
}

/// Bits of a weight, as the name has them: 4 of `IQ4_XS`, 16 of `BF16`.
fn bits(name: &str) -> Option<u32> {
    let name = name.strip_prefix("UD-").unwrap_or(name);
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn repo() -> [Offered<'static>; 6] {
        let sizes = [("UD-IQ1_S", 8), ("Q2_K", 11), ("Q3_K_M", 14), ("Q4_K_M", 18), ("Q8_0", 32)];
        let [a, b, c, d, e] = sizes.map(|(name, gib)| Offered { name, bytes: gib * GIB });
        [a, b, c, d, e, Offered { name: "BF16", bytes: 61 * GIB }]
    }

    fn chosen(room_gib: u64) -> &'static str {
        let choice = choose(&repo(), Some(room_gib * GIB)).expect("one");
        repo()[choice.index].name
    }

    #[test]
    fn four_bits_where_they_stay_and_where_nothing_does() {
        assert_eq!((chosen(64), chosen(20)), ("Q4_K_M", "Q4_K_M"));
        assert_eq!(chosen(16), "Q3_K_M");
        // Two bits would stay in memory.
        assert_eq!(chosen(13), "Q4_K_M");
        assert_eq!(choose(&repo(), None).expect("one").index, 3);
        assert_eq!(choose(&[], Some(GIB)), None);
    }

    #[test]
    fn names_nobody_knows_are_chosen_by_size() {
        let odd = [Offered { name: "large", bytes: 9 }, Offered { name: "small", bytes: 3 }];
        assert_eq!(choose(&odd, None).expect("one").index, 1);
        let few = [Offered { name: "Q2_K", bytes: 2 }, Offered { name: "Q3_K_S", bytes: 3 }];
        assert_eq!(choose(&few, None).expect("one").index, 1);
        let all = [bits("UD-IQ2_XXS"), bits("BF16"), bits("MXFP4_MOE"), bits("model")];
        assert_eq!(all, [Some(2), Some(16), Some(4), None]);
    }

    #[test]
    fn what_fits_better_is_smaller_when_it_must_and_larger_when_it_may() {
        let better = |chosen, room| better_fit(&repo(), chosen, GIB, room * GIB);
        assert_eq!(better(3, 16), Some(2));
        assert_eq!(better(3, 40), Some(4));
        assert_eq!(better(3, 20), None);
        assert_eq!(better(3, 4), None);
    }
}
