//! `motley calibrate`: what experts, memory and disk cost on this machine.

use super::output::{Kind, write_new};
use crate::args::{Calibrate, Global};
use crate::page::{Fact, align_right, facts, percent, progress_target, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Result, bail};
use comfy_table::presets;
use indicatif::{ProgressBar, ProgressStyle};
use motley_calibrate::measure::{ExpertKind, MeasureOptions, measure};
use motley_cost::calibration::{CalibrationFile, ExpertCost};
use motley_engine::{Runtime, Seam};
use motley_model::ModelSpec;
use std::path::Path;
use std::time::Duration;

/// Load at the start, as a share of the cores, above which the figures suffer.
const BUSY_SHARE: f64 = 0.25;

pub(super) fn run(global: &Global, args: &Calibrate, columns: Option<u16>) -> Result<()> {
    let trusts = args.trust.trust_file.then_some("--trust-file");
    if let Some(flag) = args.wishes.needs_a_run().or(trusts) {
        bail!("{flag} says how a model runs, and without --text none does; leave it out");
    }
    let runtime = Runtime::start(Seam::Registered)?;
    let options = MeasureOptions {
        budget: Duration::from_secs(args.seconds.into()),
        threads: args.wishes.threads,
        disk: args.disk.clone().or_else(|| args.model.clone()),
        kinds: args.model.as_deref().map_or(Ok(Vec::new()), kinds)?,
        program: format!("motley {}", env!("CARGO_PKG_VERSION")),
        seed: 0,
    };
    let bar = progress_bar(global.json);
    let measured = measure(&runtime, &options, &mut |what, share| {
        bar.set_message(what.to_owned());
        bar.set_position((share * 1000.0) as u64);
    });
    bar.finish_and_clear();
    let measured = measured?;
    let stem = measured.provenance.date.replace(':', "-");
    let kind = Kind { folder: "calibrations", stem: &stem, extension: "toml" };
    let path = write_new(args.output.as_deref(), &kind, measured.to_toml().as_bytes())?;
    if global.json {
        let report = serde_json::json!({ "file": path, "calibration": measured });
        return print_json(&serde_json::to_string(&report)?);
    }
    print_page(render(&measured, &path, width_of(columns)).trim_end())
}

/// A model's experts in their own shape, and its dense weights in the same.
fn kinds(model: &Path) -> Result<Vec<ExpertKind>> {
    let (spec, _) = ModelSpec::open(model)?;
    let is_moe = spec.is_moe();
    Ok(ExpertKind::of_model(&spec).into_iter().filter(|_| is_moe).collect())
}

/// Drawn on a terminal only.
fn progress_bar(quiet: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {percent}% {msg}")
        .expect("the template is a constant");
    ProgressBar::with_draw_target(Some(1000), progress_target(quiet)).with_style(style)
}

fn render(measured: &CalibrationFile, path: &Path, width: u16) -> String {
    let mut page = facts(&summary(measured), width);
    page += "\n\n";
    page += &experts(measured, width);
    page += &format!("\n\n Kept in {}\n", path.display());
    page
}

fn summary(measured: &CalibrationFile) -> Vec<Fact> {
    let run = &measured.provenance;
    let mut facts = vec![("Processor", format!("{}, {} cores", run.cpu, run.cores))];
    let rate = |rate: &motley_cost::calibration::MemoryRate| {
        format!("{:.1} GB/s on {}", rate.gb_per_s, threads(rate.threads))
    };
    facts.push(("Memory", measured.memory.iter().map(rate).collect::<Vec<_>>().join(", ")));
    match &measured.disk {
        None => facts.push(("Disk", "not measured; give a model or --disk PATH".into())),
        Some(disk) => {
            let past = if disk.direct { "direct" } else { "through the page cache" };
            facts.push((
                "Disk",
                format!(
                    "{}, {past}: {:.2} GB/s with {} reads in flight, alone {:.0} us + {:.2} GB/s",
                    disk.what, disk.gb_per_s, disk.in_flight, disk.latency_us, disk.alone_gb_per_s
                ),
            ));
        }
    }
    for link in &measured.links {
        let text = format!(
            "{} to {}: {:.0} us + {:.1} GB/s",
            link.from, link.to, link.latency_us, link.gb_per_s
        );
        facts.push(("Link", text));
    }
    facts.push(("Took", format!("{:.0} s", run.took_s)));
    if let Some(load) = run.load_one_min.filter(|load| *load > BUSY_SHARE * f64::from(run.cores)) {
        let text = format!("{load:.2} when it began: other work makes these figures too slow");
        facts.push(("Load", text));
    }
    facts
}

fn threads(threads: u32) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

/// One row per type and layout with all threads, and per type and device: decode, prefill, and how far to trust it.
fn experts(measured: &CalibrationFile, width: u16) -> String {
    let most = measured.experts.iter().map(|cost| cost.threads).max().unwrap_or(1);
    let mut table = table(width, presets::UTF8_FULL_CONDENSED);
    table.set_header(["Experts", "Size", "Where", "1 token", "Read", "Compute", "Other shape"]);
    for cost in measured.experts.iter().filter(|cost| cost.threads == most) {
        table.add_row(row(cost, cost.way.name(), cost.layout.name()));
    }
    for device in &measured.devices {
        for cost in &device.experts {
            table.add_row(row(cost, cost.way.name(), &device.name));
        }
    }
    align_right(&mut table, &[1, 3, 4, 5, 6]);
    let ways = "Whole: one MUL_MAT_ID; blocks: a MUL_MAT for each expert;";
    let rearranged = "rearranged: the same, its weights first put into the CPU's own layout.";
    let note = "Other shape: the mean error of these points there.";
    format!("{}\n {}. {ways}\n {rearranged}\n {note}", table.trim_fmt(), threads(most))
}

/// From here on times are written in milliseconds.
const LONG_US: f64 = 10_000.0;

fn row(cost: &ExpertCost, way: &str, place: &str) -> [String; 7] {
    let (hidden, intermediate) = (f64::from(cost.hidden), f64::from(cost.intermediate));
    let bytes = 3.0 * hidden * intermediate * cost.bits_per_weight / 8.0;
    let flop = 6.0 * hidden * intermediate;
    let one = cost.measured.first().map_or(0.0, |point| point.took_us);
    let busiest = cost.measured.last();
    let compute = busiest.map_or(0.0, |last| f64::from(last.tokens) * flop / last.took_us * 1e-3);
    [
        format!("{} {way}", cost.quantisation),
        format!("{}×{}", cost.hidden, cost.intermediate),
        place.into(),
        if one < LONG_US { format!("{one:.0} us") } else { format!("{:.0} ms", one / 1e3) },
        format!("{:.1}", bytes / one.max(1e-9) * 1e-3),
        format!("{compute:.0}"),
        cost.other_shape_points_relative.map_or_else(String::new, percent),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_cost::calibration::{
        DeviceCost, FORMAT_VERSION, KernelWay, MeasuredPoint, MemoryRate, Provenance, WeightLayout,
    };

    fn measured() -> CalibrationFile {
        let expert = ExpertCost {
            quantisation: "mxfp4".into(),
            bits_per_weight: 4.25,
            layout: WeightLayout::Repacked,
            way: KernelWay::Whole,
            threads: 128,
            block_us: 4.0,
            launch_us: 2.0,
            us_per_mb: 50.0,
            us_per_mflop: 8.0,
            residuals: Default::default(),
            other_shape_relative: Some(0.07),
            other_shape_points_relative: Some(0.04),
            hidden: 2048,
            intermediate: 768,
            measured: vec![
                MeasuredPoint { tokens: 1, took_us: 250.6 },
                MeasuredPoint { tokens: 512, took_us: 24_000.0 },
            ],
        };
        CalibrationFile {
            version: FORMAT_VERSION,
            provenance: Provenance {
                date: "2026-01-31T12:00:00Z".into(),
                program: "motley".into(),
                cpu: "Intel(R) Xeon(R) Platinum 8592+ with a long name".into(),
                cores: 128,
                instructions: vec![],
                load_one_min: Some(64.0),
                took_s: 45.0,
                quick: false,
            },
            machine: motley_machine::find("two-core-24gb").expect("a ready machine"),
            memory: [1, 64, 128].map(|threads| MemoryRate { threads, gb_per_s: 301.5 }).to_vec(),
            disk: None,
            links: vec![],
            devices: vec![DeviceCost { name: "Vulkan0".into(), experts: vec![expert.clone()] }],
            experts: vec![expert],
        }
    }

    #[test]
    fn the_page_fits_eighty_columns_and_says_when_others_were_busy() {
        let page = render(&measured(), Path::new("x.toml"), 80);
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        for text in
            ["repacked", "Vulkan0", "251 us", "10.0 ", "201 ", "4.0 %", "64.00 when it began"]
        {
            assert!(page.contains(text), "{text} in\n{page}");
        }
    }
}
