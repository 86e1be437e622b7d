//! Any bytes as a frame of a head or a worker: refused, or a frame of exactly these bytes. Once with
//! the header they begin with, and once as the payload of a kind that their first byte names, which
//! is how most inputs come past the header.
#![no_main]

use libfuzzer_sys::fuzz_target;
use motley_wire::frame::{Frame, FrameHeader, HEADER_BYTES, Kind, MAX_PAIRS, MAX_WIDTH};

fuzz_target!(|bytes: &[u8]| {
    if let Some((header, payload)) = bytes.split_first_chunk::<HEADER_BYTES>()
        && let Ok(parsed) = FrameHeader::parse(header)
    {
        assert!(parsed.length <= parsed.kind.max_payload_bytes());
        check(&parsed, payload);
        check(&parsed, &payload[..parsed.length.min(payload.len())]);
    }
    if let Some((kind, payload)) = bytes.split_first() {
        let kind = Kind::ALL[usize::from(*kind) % Kind::ALL.len()];
        check(&FrameHeader { kind, length: payload.len(), block: 1 }, payload);
    }
});

fn check(header: &FrameHeader, payload: &[u8]) {
    let Ok(frame) = Frame::decode(header, payload) else { return };
    let mut again = Vec::new();
    frame.encode(header.block, &mut again).expect("a frame that was taken");
    let (first, rest) = again.split_first_chunk().expect("a header");
    assert_eq!(FrameHeader::parse(first).as_ref(), Ok(header));
    assert_eq!(rest, payload);
    if let Frame::Rows(rows) = &frame {
        let width = rows.width as usize;
        let pairs = rows.experts.len();
        assert!((1..=MAX_WIDTH).contains(&width) && (1..=MAX_PAIRS).contains(&pairs));
        let hidden_rows = rows.hidden.len() / width;
        assert!(rows.places.iter().all(|place| (*place as usize) < hidden_rows));
    }
}
