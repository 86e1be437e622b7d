//! The headline averages of the reproductions stay where the documents say they are.

use motley_sim::reproduce::{Figure, gpu_ndp, hybrimoe};

fn within(figures: &[Figure], what: &str, limit: f64) {
    let figure = figures.iter().find(|figure| figure.what == what).expect("a known figure");
    let off = figure.difference();
    assert!(off.abs() <= limit, "{what}: paper {}, ours {}", figure.paper, figure.ours);
}

#[test]
fn hybrimoe_averages_are_within_fifteen_percent() {
    let figures = hybrimoe::figures(hybrimoe::ASSUMED).expect("a reproduction");
    for what in ["decode, average", "prefill, average", "decode, all", "prefill, all"] {
        within(&figures, what, 0.15);
    }
}

#[test]
fn gpu_ndp_decode_averages_are_within_fifteen_percent() {
    let figures = gpu_ndp::figures(gpu_ndp::Assumptions::default()).expect("a reproduction");
    for what in ["decode TP", "decode TP+LB", "decode all", "end to end / MoNDE, average"] {
        within(&figures, what, 0.15);
    }
    within(&figures, "prefill TP+LB", 0.16);
}
