//! Frames as bytes: what is encoded is decoded bit for bit, sizes are as the formulas say, and no
//! bytes whatever do more than be refused.

use motley_wire::frame::{
    Computed, Frame, FrameError, FrameHeader, HEADER_BYTES, Hello, Kind, MAX_FAILED_BYTES,
    MAX_PAIRS, MAX_PAYLOAD_BYTES, MAX_WIDTH, Rows, computed_bytes, rows_bytes,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn encoded(frame: &Frame, block: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(block, &mut bytes).expect("a frame within limits");
    bytes
}

fn decoded(bytes: &[u8]) -> Result<(u64, Frame), FrameError> {
    let (header, payload) = bytes.split_first_chunk().expect("a header");
    let header = FrameHeader::parse(header)?;
    Ok((header.block, Frame::decode(&header, payload)?))
}

/// Any bits, those of every NaN among them.
fn floats(count: usize) -> impl Strategy<Value = Vec<f32>> {
    vec(any::<u32>().prop_map(f32::from_bits), count)
}

fn rows() -> impl Strategy<Value = Rows> {
    (1..6_usize, 1..40_u32, 1..50_usize).prop_flat_map(|(hidden_rows, width, pairs)| {
        let experts = vec(0..=u32::from(u16::MAX), pairs);
        let places = vec(0..hidden_rows as u32, pairs);
        (any::<bool>(), any::<u16>(), experts, places, floats(hidden_rows * width as usize))
            .prop_map(move |(decode, layer, experts, places, hidden)| Rows {
                decode,
                layer,
                width,
                experts,
                places,
                hidden,
            })
    })
}

fn computed() -> impl Strategy<Value = Computed> {
    (1..20_usize, 1..40_u32).prop_flat_map(|(pairs, width)| {
        (floats(pairs * width as usize), any::<u32>())
            .prop_map(move |(rows, compute_us)| Computed { width, compute_us, rows })
    })
}

fn frames() -> impl Strategy<Value = Frame> {
    prop_oneof![
        any::<[u8; 32]>().prop_map(|model| Frame::Hello(Hello { model })),
        Just(Frame::Welcome),
        rows().prop_map(Frame::Rows),
        computed().prop_map(Frame::Computed),
        "\\PC{0,80}".prop_map(Frame::Failed),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(frame in frames(), block in any::<u64>()) {
        let bytes = encoded(&frame, block);
        let (of, again) = decoded(&bytes).expect("own bytes");
        prop_assert_eq!(of, block);
        prop_assert_eq!(again.kind(), frame.kind());
        // Bytes, because a NaN is not equal to itself.
        prop_assert_eq!(encoded(&again, of), bytes);
    }

    #[test]
    fn floats_keep_their_bits(computed in computed()) {
        let bytes = encoded(&Frame::Computed(computed.clone()), 1);
        let (_, Frame::Computed(again)) = decoded(&bytes).expect("own bytes") else {
            panic!("another kind")
        };
        let bits = |rows: &[f32]| rows.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&again.rows), bits(&computed.rows));
    }

    #[test]
    fn sizes_are_as_the_formulas_say(rows in rows(), computed in computed()) {
        let width = rows.width as usize;
        let expected = rows_bytes(rows.experts.len(), rows.hidden.len() / width, width);
        prop_assert_eq!(encoded(&Frame::Rows(rows), 0).len(), expected);
        let width = computed.width as usize;
        let expected = computed_bytes(computed.rows.len() / width, width);
        prop_assert_eq!(encoded(&Frame::Computed(computed), 0).len(), expected);
    }

    #[test]
    fn bytes_are_refused_or_a_frame_of_exactly_these_bytes(
        kind in 0..Kind::ALL.len(),
        payload in vec(prop_oneof![Just(0_u8), Just(1), Just(4), any::<u8>()], 0..200),
    ) {
        let header = FrameHeader { kind: Kind::ALL[kind], length: payload.len(), block: 3 };
        if let Ok(frame) = Frame::decode(&header, &payload) {
            prop_assert_eq!(&encoded(&frame, 3)[HEADER_BYTES..], &payload);
        }
    }

    #[test]
    fn a_changed_byte_never_makes_another_length_pass(
        frame in frames(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
    ) {
        let mut bytes = encoded(&frame, 5);
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok((of, again)) = decoded(&bytes) {
            prop_assert_eq!(encoded(&again, of), bytes);
        }
    }

    #[test]
    fn less_or_more_is_an_error(frame in frames(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&frame, 9);
        let (header, payload) = bytes.split_first_chunk().expect("a header");
        let header = FrameHeader::parse(header).expect("own header");
        let longer = [payload, &[0]].concat();
        prop_assert!(Frame::decode(&header, &longer).is_err());
        if payload.is_empty() {
            return Ok(());
        }
        let part = &payload[..cut.index(payload.len())];
        prop_assert!(Frame::decode(&header, part).is_err());
        // Nor when the header tells the shorter length: only texts are frames at every length.
        let shorter = FrameHeader { length: part.len(), ..header };
        if header.kind != Kind::Failed {
            prop_assert!(Frame::decode(&shorter, part).is_err());
        }
    }
}

fn header(change: impl FnOnce(&mut [u8; HEADER_BYTES])) -> Result<FrameHeader, FrameError> {
    let bytes = encoded(&Frame::Hello(Hello { model: [1; 32] }), 77);
    let mut header = *bytes.first_chunk().expect("a header");
    change(&mut header);
    FrameHeader::parse(&header)
}

#[test]
fn headers_are_checked() {
    let right = FrameHeader { kind: Kind::Hello, length: 32, block: 77 };
    assert_eq!(header(|_| {}), Ok(right));
    assert!(matches!(header(|bytes| bytes[0] = b'X'), Err(FrameError::Magic(_))));
    assert_eq!(header(|bytes| bytes[4] = 2), Err(FrameError::Version(2)));
    assert_eq!(header(|bytes| bytes[5] = 0), Err(FrameError::Kind(0)));
    assert_eq!(header(|bytes| bytes[5] = 6), Err(FrameError::Kind(6)));
    assert_eq!(header(|bytes| bytes[6] = 1), Err(FrameError::Reserved));
    assert_eq!(header(|bytes| bytes[7] = 1), Err(FrameError::Reserved));
    let long = FrameError::Long { kind: Kind::Hello, bytes: 33, most: 32 };
    assert_eq!(header(|bytes| bytes[8] = 33), Err(long));
    let rows_of = |length: u32| {
        header(|bytes| {
            bytes[5] = Kind::Rows as u8;
            bytes[8..12].copy_from_slice(&length.to_le_bytes());
        })
    };
    assert!(rows_of(MAX_PAYLOAD_BYTES as u32).is_ok());
    for length in [MAX_PAYLOAD_BYTES as u32 + 1, u32::MAX] {
        assert!(matches!(rows_of(length), Err(FrameError::Long { .. })));
    }
}

fn small() -> Rows {
    Rows {
        decode: true,
        layer: 3,
        width: 2,
        experts: vec![7, 9],
        places: vec![0, 1],
        hidden: vec![1.0; 4],
    }
}

#[test]
fn rows_against_a_limit_become_no_bytes() {
    type Change = fn(&mut Rows);
    let changes: [(&str, Change); 8] = [
        ("row 2 of 2", |rows| rows.places[1] = 2),
        ("0 pairs", |rows| (rows.experts, rows.places) = (vec![], vec![])),
        ("2 experts for 1 places", |rows| rows.places.truncate(1)),
        ("0 floats of a row", |rows| rows.width = 0),
        ("no rows of 3", |rows| rows.width = 3),
        ("65537 floats of a row", |rows| rows.width = MAX_WIDTH as u32 + 1),
        ("expert 65536", |rows| rows.experts[0] = 65_536),
        ("0 hidden rows", |rows| rows.hidden.clear()),
    ];
    for (words, change) in changes {
        let mut rows = small();
        change(&mut rows);
        let mut bytes = vec![1, 2, 3];
        let error = Frame::Rows(rows).encode(0, &mut bytes).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(bytes, [1, 2, 3], "what was there stays");
    }
    let many = Rows { experts: vec![0; MAX_PAIRS + 1], places: vec![0; MAX_PAIRS + 1], ..small() };
    assert!(Frame::Rows(many).encode(0, &mut Vec::new()).is_err());
    let large = Computed { width: 4096, compute_us: 0, rows: vec![0.0; 4097 * 4096] };
    let error = Frame::Computed(large).encode(0, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, FrameError::Long { kind: Kind::Computed, .. }), "{error}");
}

#[test]
fn rows_of_a_stranger_are_checked_the_same() {
    let right = encoded(&Frame::Rows(small()), 0);
    assert_eq!(decoded(&right), Ok((0, Frame::Rows(small()))));
    let at = HEADER_BYTES;
    // Offset, value: the flag, the byte beside it, width, pairs, hidden rows, the last place.
    for (offset, value) in
        [(at, 2), (at + 1, 1), (at + 4, 3), (at + 8, 3), (at + 12, 1), (at + 22, 2)]
    {
        let mut bytes = right.clone();
        bytes[offset] = value;
        decoded(&bytes).expect_err("a byte that must not be");
    }
    // Counts whose product overflows.
    let mut bytes = right.clone();
    bytes[at + 4..at + 16].fill(0xff);
    assert!(matches!(decoded(&bytes), Err(FrameError::Length { .. })));
    // No pairs and no rows, with lengths that add up.
    let mut nothing = vec![0; 16];
    nothing[4] = 1;
    let header = FrameHeader { kind: Kind::Rows, length: 16, block: 0 };
    assert!(matches!(Frame::decode(&header, &nothing), Err(FrameError::Count { count: 0, .. })));
}

#[test]
fn texts_are_utf_8_and_short() {
    let header = FrameHeader { kind: Kind::Failed, length: 2, block: 0 };
    assert_eq!(Frame::decode(&header, b"\xff\xfe"), Err(FrameError::Text));
    let bytes = encoded(&Frame::Failed("ß".repeat(MAX_FAILED_BYTES)), 0);
    assert_eq!(bytes.len(), HEADER_BYTES + MAX_FAILED_BYTES);
    assert_eq!(decoded(&bytes), Ok((0, Frame::Failed("ß".repeat(MAX_FAILED_BYTES / 2)))));
    let odd = encoded(&Frame::Failed("x".to_owned() + &"ß".repeat(MAX_FAILED_BYTES)), 0);
    assert_eq!(odd.len(), HEADER_BYTES + MAX_FAILED_BYTES - 1);
}

#[test]
fn a_welcome_says_nothing_more() {
    assert_eq!(encoded(&Frame::Welcome, 4).len(), HEADER_BYTES);
    let longer = FrameHeader { kind: Kind::Welcome, length: 1, block: 4 };
    assert!(matches!(Frame::decode(&longer, &[0]), Err(FrameError::Long { most: 0, .. })));
}

#[test]
fn formulas_have_no_end() {
    assert_eq!(rows_bytes(8, 1, 4096), 20 + 16 + 32 + 16_384);
    assert_eq!(computed_bytes(8, 4096), 20 + 12 + 131_072);
    assert_eq!(rows_bytes(usize::MAX, usize::MAX, usize::MAX), usize::MAX);
    assert_eq!(computed_bytes(usize::MAX, 2), usize::MAX);
}
