//! The headline averages of the reproductions stay where the documents say they are.

use motley_reproduce::aecs::phones::{PHONES, Phone};
use motley_reproduce::{Figure, aecs, gpu_ndp, hybrimoe, machines, npumoe};
use motley_trace::Phase;

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
    let figures = gpu_ndp::figures(gpu_ndp::ASSUMED).expect("a reproduction");
    for what in
        ["decode TP", "decode TP+LB", "decode all", "end to end / MoNDE, average (abstract)"]
    {
        within(&figures, what, 0.15);
    }
    within(&figures, "prefill TP+LB", 0.16);
}

#[test]
fn aecs_finds_every_published_choice_and_keeps_it_under_energy_noise() {
    let figures = aecs::figures(aecs::ASSUMED).expect("a reproduction");
    let ours = |what: &str| figures.iter().find(|figure| figure.what == what).unwrap().ours;
    assert_eq!(ours("phones with the published choice"), 7.0);
    assert_eq!(ours("phones with the exhaustive choice"), 7.0);
    assert!(ours("candidates, most") <= 9.0);
    assert_eq!((ours("exhaustive, least of Android"), ours("exhaustive, most")), (20.0, 71.0));
    // Six numbers of threads on the iPhones: not in the source's 20 to 71.
    assert_eq!(ours("exhaustive, least of all phones"), 6.0);
    assert_eq!(ours("optimal with heuristic, worst phone, %"), 100.0);
    assert!(ours("optimal without, worst phone, %") < 95.0);
    // The stricter counts stay in the table: a tie on one phone, and a bar that is itself noisy.
    assert!(ours("the very same set, worst phone, %") < 70.0);
    assert!(ours("optimal, speed noisy too, worst phone, %") < 70.0);
}

#[test]
fn npumoe_groups_and_residency_gain_as_published() {
    let figures = npumoe::figures(npumoe::ASSUMED).expect("a reproduction");
    let near = |what: &str, most: f64| {
        let figure = figures.iter().find(|figure| figure.what == what).unwrap();
        assert!(figure.difference().abs() < most, "{figure:?}");
    };
    near("padded, mean of 4 datasets, %", 0.15);
    near("all over groups, time", 0.05);
    near("groups over tiers, energy", 0.05);
    near("experts of one layer, ms", 0.15);
    // These two are known to deviate; the document says why.
    near("all over base, time", 0.30);
    near("groups over base, energy", 0.50);
    let padded = figures.iter().find(|figure| figure.what.starts_with("padded")).unwrap();
    assert_eq!(format!("{:.2}", padded.paper), "35.25");
    let fit = npumoe::costs::DeviceCosts::fit();
    assert!(fit.residuals.worst_relative < 0.1, "{fit:?}");
}

#[test]
fn machines_reach_the_goal_for_prefill_and_what_decode_allows() {
    let rows = machines::rows(machines::ASSUMED, machines::Pairs::Shared).expect("a comparison");
    let named: Vec<_> = rows.iter().map(|row| (row.machine.as_str(), row.model)).collect();
    assert_eq!(
        named,
        [
            ("laptop-8gb-gpu", "Qwen3-30B-A3B Q4_K_M"),
            ("laptop-8gb-gpu", "DeepSeek-V2-Lite Q4_K_M"),
            ("desktop-24gb-gpu", "gpt-oss-120b MXFP4"),
            ("workstation-2gpu", "gpt-oss-120b MXFP4"),
        ]
    );
    for row in &rows {
        for speeds in row.prefill.iter().chain([&row.decode]) {
            let gain = speeds.gain().expect("the pinned policy runs");
            assert!(gain > 1.0 && speeds.ours > speeds.static_split, "{row:?}");
            assert!(speeds.ours <= speeds.all_near * 1.001, "{row:?}");
        }
    }
    let figures = machines::figures_of(&rows);
    let ours = |what: &str| figures.iter().find(|figure| figure.what == what).unwrap().ours;
    assert!(ours("prefill over pinned experts") >= 1.33);
    // The goal of 1.7 is above what even a GPU with all experts would give, and above what every
    // lane at work with perfect predictions would.
    let decode = ours("decode over pinned experts");
    for most in ["decode, had the GPU all experts", "decode, all lanes busy, all predicted"] {
        let most = ours(most);
        assert!(decode > 1.05 && decode < most && most < 1.7, "{decode} {most}");
    }
    for row in &rows {
        let lanes = row.lanes.expect("experts are shared");
        for system in [lanes.pinned, lanes.ours, lanes.parts] {
            assert!(system.token_ms >= lanes.bound.token_ms, "{row:?}");
            let gpu_ms = system.dense_ms + system.gpu_ms;
            assert!(gpu_ms.max(system.cpu_ms).max(system.link_ms) <= system.token_ms, "{row:?}");
        }
        assert!(row.decode.hit_rate <= lanes.bound.most_hits, "{row:?}");
    }
}

#[test]
fn the_page_on_npumoe_states_the_imbalance_of_its_routing() {
    let routing = npumoe::routing::Routing::new(npumoe::routing::PHI, npumoe::ASSUMED, 1024);
    let found = format!("r_l then is {:.2}", routing.profile.mean_imbalance(Phase::Prefill));
    assert!(npumoe::assumed().iter().any(|entry| entry.reason.contains(&found)), "{found}");
}

#[test]
fn aecs_models_miss_the_published_point_by_what_the_page_says() {
    let off = |phone: &Phone| phone.fit(aecs::ASSUMED).expect("a model").off_published().1;
    let xiaomi = PHONES.iter().find(|phone| phone.machine == "xiaomi-15-pro").expect("a phone");
    assert_eq!(format!("{:+.1}", 100.0 * off(xiaomi)), "+10.5");
    assert!(PHONES.iter().all(|phone| off(phone).abs() <= off(xiaomi)));
}
