//! Time of rows that other hosts compute: there, through their experts, and back. Not the sending.
//!
//! Bytes are those of `motley-wire`'s frames (`frame.rs`, `payload.rs`), little-endian:
//!
//! ```text
//! header    20
//! Rows      16 · expert 2 and place 2 of each pair · each hidden row once, 4 per value
//! Computed  12 · one row of each pair, 4 per value
//! ```

use serde::{Deserialize, Serialize};

/// In front of every frame.
const HEADER_BYTES: u64 = 20;
/// Phase, layer, width and counts of a request.
const ROWS_BYTES: u64 = 16;
/// Width, count and computing time of an answer.
const COMPUTED_BYTES: u64 = 12;
/// A pair's expert, and which of the hidden rows it reads.
const PAIR_BYTES: u64 = 4;
/// One value of a row.
const VALUE_BYTES: u64 = 4;

/// Bytes that ask for `pairs` of token and expert over `hidden_rows` rows of `width` values.
pub fn request_bytes(pairs: u64, hidden_rows: u64, width: u64) -> u64 {
    HEADER_BYTES + ROWS_BYTES + PAIR_BYTES * pairs + VALUE_BYTES * width * hidden_rows
}

/// Bytes that come back: a row of `width` values for each pair.
pub fn answer_bytes(pairs: u64, width: u64) -> u64 {
    HEADER_BYTES + COMPUTED_BYTES + VALUE_BYTES * width * pairs
}

/// The head's way to all other hosts: one cable, which they share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLink {
    /// A small question and its answer, encryption and wake-ups included.
    pub round_trip_us: f64,
    /// Rate of large frames, each way.
    pub gb_per_s: f64,
}

impl HostLink {
    /// Time of so many bytes on the cable, without the round trip.
    pub fn bytes_us(&self, bytes: u64) -> f64 {
        bytes as f64 / (self.gb_per_s * 1e3)
    }
}

/// What one host is asked in a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    pub request_bytes: u64,
    /// Its experts, reads from its disk included.
    pub compute_us: f64,
    pub answer_bytes: u64,
}

impl Question {
    /// The part of it that is not computing, were the cable free.
    pub fn wire_us(&self, link: &HostLink) -> f64 {
        link.round_trip_us + link.bytes_us(self.request_bytes) + link.bytes_us(self.answer_bytes)
    }
}

/// When each answer is there, from the moment the head begins to ask. Requests leave one after the
/// other; answers come in as they are ready, one after the other as well. Alone, one takes
///
/// ```text
/// round trip + request / rate + compute + answer / rate
/// ```
pub fn answered_us(link: &HostLink, questions: &[Question]) -> Vec<f64> {
    let mut sent_us = 0.0;
    let mut ready: Vec<(f64, usize)> = Vec::with_capacity(questions.len());
    for (host, question) in questions.iter().enumerate() {
        sent_us += link.bytes_us(question.request_bytes);
        ready.push((sent_us + link.round_trip_us + question.compute_us, host));
    }
    ready.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut answered = vec![0.0; questions.len()];
    let mut free_us: f64 = 0.0;
    for (ready_us, host) in ready {
        free_us = free_us.max(ready_us) + link.bytes_us(questions[host].answer_bytes);
        answered[host] = free_us;
    }
    answered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINK: HostLink = HostLink { round_trip_us: 170.0, gb_per_s: 0.25 };

    #[test]
    fn bytes_are_those_of_the_frames() {
        // Three pairs over two rows of four values: 20 + 16 + 12 + 32, and 20 + 12 + 48 back.
        assert_eq!((request_bytes(3, 2, 4), answer_bytes(3, 4)), (80, 80));
    }

    #[test]
    fn two_answers_share_the_cable_and_a_slow_host_is_last() {
        let ask = |compute_us| Question { request_bytes: 2_500, compute_us, answer_bytes: 5_000 };
        assert_eq!(answered_us(&LINK, &[ask(100.0)]), [10.0 + 170.0 + 100.0 + 20.0]);
        // The second is ready 10 later and waits for the first one's answer.
        assert_eq!(answered_us(&LINK, &[ask(100.0), ask(100.0)]), [300.0, 320.0]);
        assert_eq!(answered_us(&LINK, &[ask(900.0), ask(100.0)]), [1100.0, 310.0]);
        assert_eq!(ask(100.0).wire_us(&LINK), 200.0);
    }

    proptest! {
        #[test]
        fn nobody_is_earlier_than_alone_and_the_cable_carries_everything(
            asked in prop::collection::vec((1_u64..100_000, 0.0..1000.0f64, 1_u64..100_000), 1..9),
        ) {
            let questions: Vec<Question> = asked
                .iter()
                .map(|&(request_bytes, compute_us, answer_bytes)| {
                    Question { request_bytes, compute_us, answer_bytes }
                })
                .collect();
            let answered = answered_us(&LINK, &questions);
            for (question, at_us) in questions.iter().zip(&answered) {
                let alone = answered_us(&LINK, std::slice::from_ref(question))[0];
                prop_assert!(*at_us >= alone - 1e-6, "{at_us} {alone}");
            }
            let last = answered.iter().copied().fold(0.0, f64::max);
            let back: f64 = questions.iter().map(|q| LINK.bytes_us(q.answer_bytes)).sum();
            let slowest = questions.iter().map(|q| q.compute_us).fold(0.0, f64::max);
            let there: f64 = questions.iter().map(|q| LINK.bytes_us(q.request_bytes)).sum();
            prop_assert!(last >= LINK.round_trip_us + back);
            prop_assert!(last <= LINK.round_trip_us + there + slowest + back + 1e-6);
        }
    }
}
