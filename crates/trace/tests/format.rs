//! The format from outside: round trips, refusals with their line, arbitrary bytes.

use motley_trace::record::FORMAT_VERSION;
use motley_trace::{
    Phase, Summary, Trace, TraceError, TraceHeader, TraceReader, TraceWriter, Visit, VisitSource,
};
use proptest::prelude::*;

const HEADER: &str = r#"{"motley_trace":1,"model":"m","layers":2,"experts":4,"k":2}"#;

fn read(text: &str) -> Result<Trace, TraceError> {
    Trace::collect(&mut TraceReader::new(text.as_bytes())?)
}

fn refusal(lines: &[&str]) -> String {
    read(&lines.join("\n")).expect_err("must be refused").to_string()
}

#[test]
fn a_line_means_what_the_table_says() {
    let line = r#"{"p":3,"l":1,"f":"p","t":[5,6],"e":[0,1,3,2],"w":[0.5,0.5,1,0]}"#;
    let trace = read(&[HEADER, line].join("\n")).expect("valid");
    let visit = &trace.visits[0];
    assert_eq!((visit.pass, visit.layer, visit.phase), (3, 1, Phase::Prefill));
    assert_eq!(visit.rows(2).collect::<Vec<_>>(), [&[0, 1][..], &[3, 2][..]]);
    assert_eq!(visit.weights, [0.5, 0.5, 1.0, 0.0]);
    assert_eq!(visit.sequence(1), 0);
}

#[test]
fn refusals_name_line_and_field() {
    let ok = r#"{"p":1,"l":0,"t":[0],"e":[0,1]}"#;
    let cases = [
        (r#"{"p":1,"l":2,"t":[0],"e":[0,1]}"#, "line 3: field `l` is 2, the limit is 1"),
        (r#"{"p":1,"l":0,"t":[0],"e":[0,4]}"#, "line 3: field `e` is 4, the limit is 3"),
        (r#"{"p":1,"l":0,"t":[0],"e":[1,1]}"#, "line 3: expert 1 is chosen twice by one token"),
        (r#"{"p":1,"l":0,"t":[0],"e":[0]}"#, "line 3: field `e` has 1 entries, expected 2"),
        (r#"{"p":0,"l":0,"t":[0],"e":[0,1]}"#, "line 3: pass 0 comes after pass 1"),
        (r#"{"p":1,"l":0,"t":[],"e":[]}"#, "line 3: field `t` is 0, the limit is 65536"),
    ];
    for (line, expected) in cases {
        assert_eq!(refusal(&[HEADER, ok, line]), expected);
    }
    assert!(refusal(&[HEADER, ok, "", "nonsense"]).starts_with("line 4: "));
    // Beyond an f32: serde_json itself refuses it when built with exact conversion of floats.
    let beyond = refusal(&[HEADER, ok, r#"{"p":1,"l":0,"t":[0],"e":[0,1],"w":[1e39,0]}"#]);
    let refused = ["field `w` holds a number that is not finite", "not the record expected"];
    assert!(refused.iter().any(|words| beyond == format!("line 3: {words}")), "{beyond}");
}

#[test]
fn headers_outside_the_limits_are_refused() {
    assert!(matches!(read(""), Err(TraceError::Truncated { line: 1, .. })));
    let cases = [
        (r#"{"motley_trace":2,"model":"m","layers":2,"experts":4,"k":2}"#, "version 2"),
        (r#"{"motley_trace":1,"model":"m","layers":0,"experts":4,"k":2}"#, "`layers` is 0"),
        (r#"{"motley_trace":1,"model":"m","layers":2,"experts":4,"k":5}"#, "`k` is 5"),
    ];
    for (header, expected) in cases {
        let message = refusal(&[header]);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn an_endless_line_is_refused_within_bounded_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    assert!(matches!(TraceReader::new(endless), Err(TraceError::LineTooLong { line: 1, .. })));
}

#[test]
fn the_summary_counts_what_a_person_counts() {
    // One layer of four experts, k = 2: {0,1}, {1,2}, {1,2}, {0,3}.
    let text = [
        r#"{"motley_trace":1,"model":"m","layers":1,"experts":4,"k":2}"#,
        r#"{"p":0,"l":0,"t":[0],"e":[0,1]}"#,
        r#"{"p":1,"l":0,"t":[1],"e":[1,2]}"#,
        r#"{"p":2,"l":0,"t":[2],"e":[2,1]}"#,
        r#"{"p":3,"l":0,"t":[3],"e":[0,3]}"#,
    ];
    let trace = read(&text.join("\n")).expect("valid");
    let summary = Summary::collect(&mut trace.source()).expect("in memory");
    assert_eq!(summary.popularity, [[2, 3, 2, 1]]);
    assert_eq!(summary.imbalance, [3.0 / 2.0]);
    assert_eq!(summary.token_reuse, 3.0 / 6.0);
    assert_eq!(summary.first_choices, 4);
    assert_eq!(summary.reuse_distance[..2], [3, 1]);
    let windows: Vec<f64> = summary.working_sets[..3].iter().map(|set| set.experts).collect();
    assert_eq!(windows, [2.0, 3.5, 4.0]);
    assert_eq!(trace.middle_pass(), 2);
    assert_eq!(trace.before(2).visits.len(), 2);
}

fn header() -> impl Strategy<Value = TraceHeader> {
    (1_u16..5, 1_u16..9).prop_flat_map(|(layers, experts)| {
        (1..=experts).prop_map(move |k| TraceHeader {
            version: FORMAT_VERSION,
            model: "generated".into(),
            layers,
            experts,
            k,
        })
    })
}

fn visit(header: TraceHeader) -> impl Strategy<Value = Visit> {
    let experts: Vec<u16> = (0..header.experts).collect();
    let row = proptest::sample::subsequence(experts, usize::from(header.k)).prop_shuffle();
    let rows = proptest::collection::vec(row, 1..4);
    (0..header.layers, rows, any::<bool>(), any::<bool>()).prop_flat_map(
        move |(layer, rows, prefill, scored)| {
            let tokens = rows.len();
            let scores = if scored { tokens * usize::from(header.experts) } else { 0 };
            let weights = proptest::collection::vec(0.0_f32..1.0, rows.concat().len());
            let scores = proptest::collection::vec(-50.0_f32..50.0, scores);
            (weights, scores).prop_map(move |(weights, scores)| Visit {
                pass: 7,
                layer,
                phase: if prefill { Phase::Prefill } else { Phase::Decode },
                sequences: if prefill { vec![3; tokens] } else { Vec::new() },
                positions: (0..tokens as u32).collect(),
                experts: rows.concat(),
                weights,
                scores,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_written_is_read_again(
        (header, visits) in header().prop_flat_map(|header| {
            (Just(header.clone()), proptest::collection::vec(visit(header), 0..6))
        })
    ) {
        let mut writer = TraceWriter::new(Vec::new(), header.clone()).expect("valid header");
        for visit in &visits {
            writer.write_visit(visit).expect("valid visit");
        }
        let text = writer.finish().expect("memory");
        let mut reader = TraceReader::new(text.as_slice()).expect("own header");
        prop_assert_eq!(reader.header(), &header);
        prop_assert_eq!(Trace::collect(&mut reader).expect("own lines").visits, visits);
    }

    #[test]
    fn arbitrary_lines_are_read_or_refused(text in "[ -~\n]{0,200}", header in any::<bool>()) {
        let text = if header { format!("{HEADER}\n{text}") } else { text };
        if let Ok(trace) = read(&text) {
            prop_assert!(trace.visits.iter().all(|visit| visit.check(&trace.header).is_ok()));
        }
    }
}
