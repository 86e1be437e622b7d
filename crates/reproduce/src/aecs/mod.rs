//! Energy-centred core selection (A7): the published choices on seven phones beside those our
//! search finds on models of the same phones, with and without noise.
//!
//! Modules in reading order:
//! - [`phones`]: published figures and the models fitted to them.
//! - [`mod@search`]: searches with and without noise.
//! - [`mod@assumed`]: what the source leaves open, in words.

use std::fmt::Write as _;

use motley_plan::cores::Freedom;

use crate::bars::Bars;
use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;

pub mod assumed;
pub mod phones;
pub mod search;

pub use assumed::{ASSUMED, Assumptions, assumed};
use phones::{Fitted, PHONES, Published, set};
use search::{Searched, search};

/// Name of the document.
pub const NAME: &str = "aecs";

const TEXT: &str = include_str!("text.md");

/// The published figures with ours for one set of assumptions.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    let all = searches(open)?;
    Ok(figures_of(&all, &searches(both_noisy(open))?))
}

/// The literal reading of the source's fluctuation: every speed is off by as much as energy.
fn both_noisy(open: Assumptions) -> Assumptions {
    Assumptions { speed_noise: open.energy_noise, ..open }
}

type Pair = (Fitted, Searched);

fn searches(open: Assumptions) -> Result<Vec<Pair>, ReproduceError> {
    let one = |phone: &phones::Phone| {
        let fitted = phone.fit(open)?;
        let searched = search(&fitted, open)?;
        Ok((fitted, searched))
    };
    PHONES.iter().map(one).collect()
}

fn figures_of(all: &[Pair], noisier: &[Pair]) -> Vec<Figure> {
    let published = |(fitted, searched): &&Pair| searched.found == set(fitted.phone.aecs.set);
    let best = |(_, searched): &&Pair| searched.found == searched.best;
    let (least, most) = (f64::min, f64::max);
    let of_android = |(fitted, _): &&Pair| fitted.phone.freedom == Freedom::Affinity;
    let android: Vec<f64> =
        all.iter().filter(of_android).map(|(_, searched)| searched.all as f64).collect();
    let sizes = all.iter().map(|(_, searched)| searched.all as f64);
    let candidates = || all.iter().map(|(_, searched)| searched.candidates as f64);
    let among = |pairs: &[Pair], of: fn(&Searched) -> f64, pick: fn(f64, f64) -> f64| {
        pairs.iter().map(|(_, searched)| 100.0 * of(searched)).reduce(pick).unwrap_or(0.0)
    };
    let over = |of, pick| among(all, of, pick);
    let figure = |what, paper, ours| Figure { what, paper, ours };
    vec![
        figure(
            "phones with the published choice",
            7.0,
            all.iter().filter(published).count() as f64,
        ),
        figure("phones with the exhaustive choice", 7.0, all.iter().filter(best).count() as f64),
        figure("candidates, least", 4.0, candidates().reduce(least).unwrap_or(0.0)),
        figure("candidates, most", 9.0, candidates().reduce(most).unwrap_or(0.0)),
        figure("exhaustive, least of all phones", 20.0, sizes.reduce(least).unwrap_or(0.0)),
        figure(
            "exhaustive, least of Android",
            20.0,
            android.iter().copied().reduce(least).unwrap_or(0.0),
        ),
        figure("exhaustive, most", 71.0, android.iter().copied().reduce(most).unwrap_or(0.0)),
        figure("optimal with heuristic, worst phone, %", 100.0, over(|s| s.with.agreed, least)),
        figure("the very same set, worst phone, %", 100.0, over(|s| s.with.same, least)),
        figure(
            "optimal, speed noisy too, worst phone, %",
            100.0,
            among(noisier, |s| s.with.agreed, least),
        ),
        figure("optimal without, worst phone, %", 60.0, over(|s| s.without.agreed, least)),
        figure("optimal without, best phone, %", 90.0, over(|s| s.without.agreed, most)),
    ]
}

/// The reproduction with its sweeps and pictures.
pub fn document() -> Result<Document, ReproduceError> {
    let all = searches(ASSUMED)?;
    let noisier = searches(both_noisy(ASSUMED))?;
    let figures = figures_of(&all, &noisier);
    let mut rows = Vec::new();
    for (name, open) in settings() {
        let swept = self::figures(open)?;
        rows.push((name, swept.iter().map(|figure| figure.ours).collect()));
    }
    let mut markdown = TEXT.replace("{figures}", &figure_table(&figures));
    markdown = markdown.replace("{choices}", &choices(&all));
    markdown = markdown.replace("{models}", &models(&all));
    markdown = markdown.replace("{points}", &points(&all));
    markdown = markdown.replace("{trials}", &trial_table(&all));
    markdown = markdown.replace("{noisier}", &trial_table(&noisier));
    markdown = markdown.replace("{assumed}", &assumed_table(&assumed()));
    markdown = markdown.replace("{sweep}", &sweep_table(&figures, &rows));
    let pictures = vec![
        Picture { name: "aecs-trials.svg".into(), svg: trial_bars(&all).to_svg()? },
        Picture { name: "aecs-measured.svg".into(), svg: measured_bars(&all).to_svg()? },
    ];
    Ok(Document { name: NAME, markdown, pictures, figures })
}

fn choices(all: &[Pair]) -> String {
    let mut text = String::from(
        "| phone | clusters, big to small | published | ours | fastest (stage 1) | candidates | \
         measured | exhaustive |\n|---|---|---|---|---|---:|---:|---:|\n",
    );
    for (fitted, found) in all {
        let cores = fitted.machine.clusters.iter();
        let cores: Vec<_> = cores.map(|c| format!("{} x {:.2}", c.cores, c.max_ghz)).collect();
        let _ = writeln!(
            text,
            "| {} | {} GHz | {:?} | {:?} | {:?} | {} | {} | {} |",
            fitted.machine.name,
            cores.join(", "),
            fitted.phone.aecs.set,
            found.found.per_cluster,
            found.fastest.per_cluster,
            found.candidates,
            found.measured,
            found.all
        );
    }
    text
}

fn models(all: &[Pair]) -> String {
    let mut text = String::from(
        "| phone | tok/s per GHz of a prime core | bus, tok/s | lost per core beyond two | W per \
         GHz² | static W |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for (fitted, _) in all {
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.1} | {:.1} % | {:.3} | {:.2} |",
            fitted.machine.name,
            fitted.per_ghz,
            fitted.bus,
            100.0 * fitted.congestion,
            fitted.core_w_per_ghz2,
            fitted.static_w
        );
    }
    text
}

/// The models beside the published points of Qwen2.5-1.5B.
fn points(all: &[Pair]) -> String {
    let mut text = String::from(
        "| phone | MNN published | fitted | MNN-AECS published | fitted | speed | energy |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (fitted, _) in all {
        let (mnn, aecs) = (&fitted.phone.mnn, &fitted.phone.aecs);
        let published =
            |of: &Published| format!("{:.1}, {:.4}", of.speeds[0], of.energies[0] / 1e3);
        let model = |of: &Published| {
            let set = set(of.set);
            (fitted.speed(&set), fitted.energy_j(&set))
        };
        let text_of = |(speed, joules): (f64, f64)| format!("{speed:.1}, {joules:.4}");
        let (speed, joules) = fitted.off_published();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:+.1} % | {:+.1} % |",
            fitted.machine.name,
            published(mnn),
            text_of(model(mnn)),
            published(aecs),
            text_of(model(aecs)),
            100.0 * speed,
            100.0 * joules
        );
    }
    text
}

fn trial_table(all: &[Pair]) -> String {
    let mut text = String::from(
        "| phone | optimal with heuristic | the very same set | optimal without | the very same \
         set | most candidates |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for (fitted, found) in all {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            fitted.machine.name,
            percent(found.with.agreed),
            percent(found.with.same),
            percent(found.without.agreed),
            percent(found.without.same),
            found.with.candidates
        );
    }
    text
}

fn trial_bars(all: &[Pair]) -> Bars<'static> {
    let group = |(fitted, found): &Pair| {
        let values = vec![100.0 * found.with.agreed, 100.0 * found.without.agreed];
        (fitted.machine.name.clone(), values)
    };
    Bars {
        title: "Optimal choices in 200 noisy searches",
        y_label: "percent",
        series: &["with heuristic", "without"],
        groups: all.iter().map(group).collect(),
    }
}

fn measured_bars(all: &[Pair]) -> Bars<'static> {
    let group = |(fitted, found): &Pair| {
        let values = vec![found.measured as f64, found.candidates as f64, found.all as f64];
        (fitted.machine.name.clone(), values)
    };
    Bars {
        title: "Core sets to measure",
        y_label: "sets",
        series: &["both stages", "candidates", "exhaustive"],
        groups: all.iter().map(group).collect(),
    }
}

/// The settings swept, one assumption at a time.
fn settings() -> Vec<(String, Assumptions)> {
    let mut all = vec![("as assumed".to_string(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| all.push((format!("{name} {value}"), open));
    for value in [0.0, 0.25, 0.5] {
        add("memory's part", value, Assumptions { dram_share: value, ..ASSUMED });
    }
    for value in [0.1, 0.2] {
        add("idle core", value, Assumptions { idle_core: value, ..ASSUMED });
    }
    for value in [0.25, 0.75, 1.0] {
        add("alpha", value, Assumptions { alpha: value, ..ASSUMED });
    }
    for value in [0.025, 0.1] {
        add("energy noise", value, Assumptions { energy_noise: value, ..ASSUMED });
    }
    for value in [0.01, 0.025, 0.05] {
        add("speed noise", value, Assumptions { speed_noise: value, ..ASSUMED });
    }
    for repeats in [6, 50] {
        add("measurements of a set", repeats.into(), Assumptions { repeats, ..ASSUMED });
    }
    all
}
