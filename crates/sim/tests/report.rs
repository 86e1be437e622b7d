//! The report as a whole on a small synthetic trace, and the fit on a recorded one.

use std::fs::File;
use std::io::BufReader;

use motley_sim::fit::{fit, synthesize};
use motley_sim::report::{ReportInput, cache_policy_report};
use motley_sim::synth::SynthParams;
use motley_testkit::fixtures::shared;
use motley_trace::Trace;
use motley_trace::import::bigmoe::BigmoeReader;

fn small() -> Trace {
    let params = SynthParams {
        model: "small".into(),
        layers: 3,
        experts: 16,
        k: 2,
        prompt_tokens: 10,
        decode_tokens: 60,
        zipf_skew: 0.8,
        repeat: 0.2,
        recall: 0.5,
        layer_correlation: 0.6,
        weight_tilt: 0.2,
    };
    synthesize(&params, 11).expect("valid")
}

#[test]
fn the_report_names_every_trace_and_shows_every_chart() {
    let traces = [small()];
    let input = ReportInput { traces: &traces, synthetic_tokens: 50, seed: 1 };
    let report = cache_policy_report(&input).expect("a report");
    for (file_name, svg) in &report.charts {
        assert!(report.markdown.contains(file_name.as_str()), "{file_name}");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("blend (ours)") && svg.contains("Belady"));
    }
    assert_eq!(report.charts.len(), 4);
    // Three sizes per layer, three global, three synthetic.
    let rows = report.markdown.lines().filter(|line| line.starts_with("| small"));
    assert_eq!(rows.filter(|line| line.contains(" % |")).count(), 1 + 9);
    let again = cache_policy_report(&input).expect("a report");
    assert_eq!(again.markdown, report.markdown);
}

#[test]
fn synthetic_routing_comes_close_to_a_recorded_trace() {
    let Some(path) = shared("routing_traces/bigmoe-gptoss.route.csv") else { return };
    let file = File::open(path).expect("a trace");
    let mut reader = BigmoeReader::new(BufReader::new(file)).expect("preamble");
    let fit = fit(&Trace::collect(&mut reader).expect("rows"), 1).expect("valid header");
    let (real, synthetic) = (fit.recorded, fit.synthetic);
    let pairs = [
        (real.imbalance, synthetic.imbalance),
        (real.token_reuse, synthetic.token_reuse),
        (real.working_set, synthetic.working_set),
        (real.layer_lift, synthetic.layer_lift),
        (real.lru_hits_25, synthetic.lru_hits_25),
        (real.lru_hits_50, synthetic.lru_hits_50),
    ];
    for (real, synthetic) in pairs {
        assert!((real - synthetic).abs() < 0.2 * real, "{real} {synthetic} in {fit:?}");
    }
}
