//! The format: round trips, what is refused and how it is said, and hostile input.

use motley_profile::{
    Arrangement, ChosenRules, Origin, Overlap, Profile, ProfileBuilder, overlap_at,
};
use motley_trace::{ExpertKey, Phase, TraceHeader, Visit, record};
use proptest::prelude::*;

fn trace_header() -> TraceHeader {
    TraceHeader {
        version: record::FORMAT_VERSION,
        model: "tiny".into(),
        layers: 2,
        experts: 4,
        k: 2,
    }
}

fn visit(phase: Phase, layer: u16, experts: &[u16]) -> Visit {
    let positions = (0..experts.len() as u32 / 2).collect();
    Visit { layer, phase, positions, experts: experts.to_vec(), ..Visit::default() }
}

fn profile(rows: &[(Phase, u16, &[u16])], source: &str) -> Profile {
    let mut builder = ProfileBuilder::new(&trace_header());
    rows.iter()
        .for_each(|(phase, layer, experts)| builder.observe(&visit(*phase, *layer, experts)));
    let origin = Origin { sources: vec![source.into()], ..Origin::default() };
    builder.finish(origin)
}

fn example() -> Profile {
    let rows: &[(Phase, u16, &[u16])] = &[
        (Phase::Prefill, 0, &[0, 1, 0, 2]),
        (Phase::Prefill, 1, &[3, 1, 3, 2]),
        (Phase::Decode, 0, &[0, 1]),
        (Phase::Decode, 1, &[3, 0]),
    ];
    profile(rows, "a.txt")
}

fn text(profile: &Profile) -> String {
    let mut bytes = Vec::new();
    profile.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_most_used_come_layer_by_layer() {
    let rows: &[(Phase, u16, &[u16])] =
        &[(Phase::Prefill, 0, &[2, 1, 2, 1, 2, 3]), (Phase::Prefill, 1, &[0, 3, 3, 1, 3, 1])];
    let keys = [(0, 2), (1, 3), (0, 1), (1, 1), (0, 3), (1, 0), (0, 0), (1, 2)];
    let keys = keys.map(|(layer, expert)| ExpertKey::new(layer, expert));
    assert_eq!(profile(rows, "a.txt").most_used(Phase::Decode), keys);
    let unvisited = profile(&rows[1..], "a.txt").most_used(Phase::Prefill);
    assert_eq!(unvisited, [3, 1, 0, 2].map(|expert| ExpertKey::new(1, expert)));
}

#[test]
fn counts_are_kept_by_phase_and_read_back() {
    let mut profile = example();
    assert_eq!(profile.layers[0].prefill, [2, 1, 1, 0]);
    assert_eq!(profile.layers[1].decode, [1, 0, 0, 1]);
    let origin = &profile.header.origin;
    assert_eq!((origin.prefill_tokens, origin.decode_tokens), (2, 1));
    // Layer 1's expert 0 is new in decode, the other three come back.
    assert_eq!((profile.header.reuse.first, profile.header.reuse.is_known()), (1, true));
    profile.header.overlaps.push(Overlap {
        against: "b.txt".into(),
        phase: Phase::Decode,
        k: 2,
        mean: 0.5,
        median: 0.5,
    });
    assert_eq!(Profile::read(text(&profile).as_bytes()).unwrap(), profile);
}

#[test]
fn what_replay_chose_is_read_back_and_older_profiles_have_nothing_of_it() {
    let mut profile = example();
    assert!(!text(&profile).contains("chosen"), "as before");
    let arrangement =
        Arrangement { machine: "this machine".into(), from_disk: true, ram: 0.4, devices: 0.125 };
    let (policy, prefetch) = ("ram=lfu,gpu=blend".into(), "none".into());
    let chosen = ChosenRules { arrangement, policy, prefetch, gain: 0.04, tokens: 96 };
    profile.header.chosen = Some(chosen.clone());
    let good = text(&profile);
    assert_eq!(Profile::read(good.as_bytes()).unwrap(), profile);
    let cases = [
        ("\"ram\":0.4", "\"ram\":1.4", "line 1: field `chosen` has a share"),
        ("\"gain\":0.04", "\"gain\":-0.04", "line 1: field `chosen` has a share"),
        ("\"tokens\":96", "\"tokens\":999999999999999999", "line 1: field `tokens`"),
        ("ram=lfu,gpu=blend", &"x".repeat(5000), "line 1: field `name`"),
        ("\"from_disk\":true", "\"from_disk\":7", "line 1: not the record"),
    ];
    for (from, to, expected) in cases {
        let error = Profile::read(good.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} is not {expected}");
    }
    let other = |ram, machine: &str| Arrangement {
        ram,
        machine: machine.into(),
        ..chosen.arrangement.clone()
    };
    assert!(chosen.arrangement.is_like(&other(0.45, "this machine")));
    assert!(!chosen.arrangement.is_like(&other(0.6, "this machine")));
    assert!(!chosen.arrangement.is_like(&other(0.4, "laptop-8gb-gpu")));
}

#[test]
fn overlap_counts_the_common_among_the_busiest() {
    let a = example();
    let b = profile(&[(Phase::Prefill, 0, &[0, 3, 0, 3]), (Phase::Prefill, 1, &[3, 1])], "b.txt");
    let overlap = overlap_at(&a, &b, Phase::Prefill, 2).unwrap();
    // Layer 0: {0, 1} against {0, 3}; layer 1: {3, 1} against {1, 3}.
    assert_eq!((overlap.mean, overlap.median), (0.75, 0.75));
    assert_eq!(overlap.against, "b.txt");
    let same = overlap_at(&a, &a, Phase::Decode, 200).unwrap();
    assert_eq!((same.k, same.mean), (4, 1.0));
}

#[test]
fn refusals_name_line_and_field() {
    let good = text(&example());
    let cases = [
        (good.replace("\"motley_profile\":1", "\"motley_profile\":9"), "line 1: format version 9"),
        (good.replace("\"experts\":4", "\"experts\":9999"), "line 1: field `experts` is 9999"),
        (good.replace("\"k\":2", "\"k\":5"), "line 1: field `k` is 5, the limit is 4"),
        (good.replace("\"l\":1", "\"l\":0"), "line 3: field `l` is 0, the limit is 1"),
        (good.replace("[2,1,1,0]", "[2,1,1]"), "line 2: field `p` is 3, the limit is 4"),
        (good.replace("[2,1,1,0]", "[2,1,1,-1]"), "line 2: not the record"),
        (good.replace("[2,1,1,0]", "[2,1,1,999999999999999999]"), "line 2: field `p`"),
        (good.lines().take(2).collect::<Vec<_>>().join("\n"), "the file ends at line 3"),
        (String::new(), "the file ends at line 1"),
        ("x".repeat(2 << 20), "line 1 is longer than"),
    ];
    for (text, expected) in cases {
        let error = Profile::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} is not {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_files_never_panic(
        place in 0usize..600,
        bytes in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut text = text(&example()).into_bytes();
        let place = place.min(text.len());
        let end = (place + bytes.len()).min(text.len());
        text.splice(place..end, bytes);
        if let Ok(profile) = Profile::read(&text[..]) {
            prop_assert_eq!(profile.layers.len(), usize::from(profile.header.layers));
        }
    }
}
