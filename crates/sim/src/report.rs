//! The report on cache policies: recorded and synthetic traces, tables as Markdown, curves as SVG.
//! It returns text; the door that asked writes the files.

use std::fmt::Write as _;

use motley_trace::record::Problem;
use motley_trace::{Phase, SummaryBuilder, Trace, TraceError};
use thiserror::Error;

use crate::chart::{ChartError, Frame, Panel, panel_chart};
use crate::curves::{gains_over_lru, policy_curves};
use crate::fit::{Fit, fit, synthesize};
use crate::holdout::{HeldOutHits, HoldOut, Layout, hold_out};

/// Cache sizes of the tables (HybriMoE, Figure 9).
const TABLE_SHARES: [f64; 3] = [0.25, 0.5, 0.75];
/// Smallest cache in the charts of gains over LRU.
const GAINS_FROM_SHARE: f64 = 0.15;
/// Both layouts, with their heading and the end of their charts' names.
const LAYOUTS: [(Layout, &str, &str); 2] = [
    (Layout::PerLayer, "Slots per layer", "per-layer.svg"),
    (Layout::Global, "One global pool", "global.svg"),
];

/// What the report is made from.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    pub traces: &'a [Trace],
    /// Decode tokens of each synthetic trace.
    pub synthetic_tokens: u32,
    /// Seed of synthetic traces.
    pub seed: u64,
}

/// The report's text and pictures.
#[derive(Clone, Debug)]
pub struct CachePolicyReport {
    /// Markdown that refers to the charts by file name.
    pub markdown: String,
    /// (file name, SVG text).
    pub charts: Vec<(String, String)>,
}

/// Why there is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A trace cannot be imitated.
    #[error("trace of {model}: {problem}")]
    Fit {
        model: String,
        /// What is wrong with its header.
        problem: Problem,
    },
    /// A trace in memory could not be replayed.
    #[error(transparent)]
    Replay(#[from] TraceError),
    /// A chart failed.
    #[error(transparent)]
    Chart(#[from] ChartError),
}

/// Compares all policies on recorded traces and on synthetic ones fitted to them.
pub fn cache_policy_report(input: &ReportInput<'_>) -> Result<CachePolicyReport, ReportError> {
    let mut text = String::from(INTRODUCTION);
    write_traces(&mut text, input.traces);
    let mut charts = Vec::new();
    for (layout, heading, file_name) in LAYOUTS {
        let _ = write!(
            text,
            "\n## {heading}, recorded traces\n\n![{heading}: hit rates](hit-rate-{file_name})\n\n\
             ![{heading}: gains over LRU](gain-{file_name})\n\n",
        );
        write_hold_outs(&mut text, input.traces, layout);
        let (rates, gains) = draw(input.traces, layout, heading)?;
        charts.push((format!("hit-rate-{file_name}"), rates));
        charts.push((format!("gain-{file_name}"), gains));
    }
    let fits = input.traces.iter().map(|trace| fitted(trace, input.seed));
    let fits = fits.collect::<Result<Vec<_>, _>>()?;
    write_fits(&mut text, &fits);
    let synthetic = fits.iter().map(|fit| synthetic_trace(fit, input));
    let synthetic = synthetic.collect::<Result<Vec<_>, _>>()?;
    let _ = write!(
        text,
        "\n## Slots per layer, synthetic traces of {} tokens\n\n",
        input.synthetic_tokens
    );
    write_hold_outs(&mut text, &synthetic, Layout::PerLayer);
    text.push_str(DOUBTS);
    Ok(CachePolicyReport { markdown: text, charts })
}

fn fitted(trace: &Trace, seed: u64) -> Result<Fit, ReportError> {
    let model = || trace.header.model.clone();
    fit(trace, seed).map_err(|problem| ReportError::Fit { model: model(), problem })
}

fn synthetic_trace(fit: &Fit, input: &ReportInput<'_>) -> Result<Trace, ReportError> {
    let mut params = fit.params.clone();
    params.decode_tokens = input.synthetic_tokens;
    let model = params.model.clone();
    synthesize(&params, input.seed).map_err(|problem| ReportError::Fit { model, problem })
}

/// The charts of hit rates and of gains over LRU.
fn draw(traces: &[Trace], layout: Layout, heading: &str) -> Result<(String, String), ReportError> {
    let (mut rates, mut gains) = (Vec::new(), Vec::new());
    for trace in traces {
        let curves = policy_curves(trace, layout)?;
        let title = trace.header.model.clone();
        let over_lru = gains_over_lru(&curves, GAINS_FROM_SHARE);
        gains.push(Panel { title: title.clone(), curves: over_lru });
        rates.push(Panel { title, curves });
    }
    let title = format!("{heading}: decode hits on the second half of each trace");
    let rates = panel_chart(&Frame { title: &title, y_label: "decode hits, %" }, &rates)?;
    let title = format!("{heading}: decode hits above LRU's, in points");
    let gains = panel_chart(&Frame { title: &title, y_label: "points above LRU" }, &gains)?;
    Ok((rates, gains))
}

fn write_traces(text: &mut String, traces: &[Trace]) {
    text.push_str(
        "| trace | layers × experts, k | prompt + decoded tokens | weights | r_l mean | next token \
         reuses | guessed by popularity | … by the layer before | experts in 32 tokens |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for trace in traces {
        let header = &trace.header;
        let mut builder = SummaryBuilder::new(header);
        trace.visits.iter().for_each(|visit| builder.observe(visit));
        let summary = builder.finish();
        let prompt = trace.visits.iter().filter(|v| v.phase == Phase::Prefill && v.layer == 0);
        let prompt: usize = prompt.map(|visit| visit.tokens()).sum();
        let weights = trace.visits.iter().all(|visit| !visit.weights.is_empty());
        let window = summary.working_sets.iter().find(|set| set.tokens == 32);
        let _ = writeln!(
            text,
            "| {} | {} × {}, {} | {prompt} + {} | {} | {:.1} | {:.0} % | {:.0} % | {:.0} % | {:.0} |",
            header.model,
            header.layers,
            header.experts,
            header.k,
            trace.passes(Phase::Decode),
            if weights { "yes" } else { "no" },
            summary.mean_imbalance(),
            100.0 * summary.token_reuse,
            100.0 * summary.guessed_by_popularity,
            100.0 * summary.guessed_by_layer_before,
            window.map_or(0.0, |set| set.experts),
        );
    }
}

fn write_hold_outs(text: &mut String, traces: &[Trace], layout: Layout) {
    text.push_str(
        "| trace | cache | LRU | LFU | LFRU | popularity | MRS (α) | MRS best α | blend | Belady | \
         MRS − LRU | blend − MRS ± s.e. | gap closed: MRS | blend |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut verdict = String::new();
    for share in TABLE_SHARES {
        let all: Vec<HoldOut> = traces.iter().map(|trace| hold_out(trace, layout, share)).collect();
        for (trace, found) in traces.iter().zip(&all) {
            write_hold_out(text, &trace.header.model, found);
        }
        write_verdict(&mut verdict, share, &all);
    }
    let _ = write!(text, "\n{verdict}");
}

fn write_hold_out(text: &mut String, model: &str, found: &HoldOut) {
    let percent = |measured: &HeldOutHits| 100.0 * measured.rate();
    let closed = |measured: &HeldOutHits| match found.gap_closed(measured) {
        Some(share) => format!("{:.0} %", 100.0 * share),
        None => "no gap".into(),
    };
    let _ = writeln!(
        text,
        "| {model} | {:.0} % | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} ({}) | {:.1} | {:.1} | {:.1} | \
         {:+.1} | {:+.1} ± {:.1} | {} | {} |",
        100.0 * found.share,
        percent(&found.lru),
        percent(&found.lfu),
        percent(&found.lfru),
        percent(&found.popularity),
        percent(&found.mrs),
        found.mrs.policy.trim_start_matches("mrs(α ").trim_end_matches(')'),
        percent(&found.mrs_in_hindsight),
        percent(&found.blend),
        percent(&found.belady),
        percent(&found.mrs) - percent(&found.lru),
        percent(&found.blend) - percent(&found.mrs),
        100.0 * found.blend.paired_error(&found.mrs),
        closed(&found.mrs),
        closed(&found.blend),
    );
}

fn write_verdict(text: &mut String, share: f64, all: &[HoldOut]) {
    let count = |better: &dyn Fn(&HoldOut) -> bool| all.iter().filter(|h| better(h)).count();
    let open = count(&|h| h.gap_closed(&h.lru).is_some());
    let gains: Vec<String> =
        all.iter().map(|h| format!("{:+.1}", 100.0 * (h.mrs.rate() - h.lru.rate()))).collect();
    let _ = writeln!(
        text,
        "- At {:.0} %: MRS − LRU is {} points; MRS is above LRU on {} and below on {} of {}. Of the \
         {open} with a gap to close, blend closes more than MRS on {} (by over two standard errors \
         on {}, less on {} by as much), and more than MRS with its α chosen in hindsight on {}.",
        100.0 * share,
        gains.join(", "),
        count(&|h| h.mrs.rate() > h.lru.rate()),
        count(&|h| h.mrs.rate() < h.lru.rate()),
        all.len(),
        count(&|h| h.gap_closed(&h.lru).is_some() && h.blend.rate() > h.mrs.rate()),
        count(&|h| blend_leads_by_errors(h) > 2.0),
        count(&|h| blend_leads_by_errors(h) < -2.0),
        count(&|h| h.gap_closed(&h.lru).is_some() && h.blend.rate() > h.mrs_in_hindsight.rate()),
    );
}

/// Lead of blend over MRS in standard errors; 0 when there is no gap to close.
fn blend_leads_by_errors(found: &HoldOut) -> f64 {
    let error = found.blend.paired_error(&found.mrs);
    if found.gap_closed(&found.lru).is_none() || error <= 0.0 {
        return 0.0;
    }
    (found.blend.rate() - found.mrs.rate()) / error
}

fn write_fits(text: &mut String, fits: &[Fit]) {
    text.push_str(FITTING);
    for fit in fits {
        let (real, synthetic, params) = (&fit.recorded, &fit.synthetic, &fit.params);
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} / {:.1} | {:.2} / {:.2} | {:.0} / \
             {:.0} | {:.2} / {:.2} | {:.1} / {:.1} | {:.1} / {:.1} |",
            params.model.trim_end_matches(" (synthetic)"),
            params.zipf_skew,
            params.repeat,
            params.recall,
            params.layer_correlation,
            params.weight_tilt,
            real.imbalance,
            synthetic.imbalance,
            real.token_reuse,
            synthetic.token_reuse,
            real.working_set,
            synthetic.working_set,
            real.layer_lift,
            synthetic.layer_lift,
            100.0 * real.lru_hits_25,
            100.0 * synthetic.lru_hits_25,
            100.0 * real.lru_hits_50,
            100.0 * synthetic.lru_hits_50,
        );
    }
}

const INTRODUCTION: &str = "\
# Cache policies on recorded and synthetic routing

Written by `motley sim --trace FILE … --curves FOLDER`; do not edit. Techniques H3, M6, N1.

A trace is replayed visit by visit: all experts a layer needs in one pass are needed together, an
expert is a hit when it is resident as the visit begins, misses are loaded and displace the
lowest-ranked. Hit rates are in percent, of decoding only. Parameters (α of MRS, half-life of LFRU,
learning rate of blend, the profile of popularity) are chosen on the first half of the decoded tokens, by
the second quarter with the caches warmed by the first; rates are of the second half. MRS gets weights
where the trace has them, with p = 2k, and the scores of all experts where it has those. Belady and
popularity may use a missed expert without caching it; the others may not.

The claim to test (HybriMoE, section IV-D): at 25 % MRS hits 36.2 % where LRU hits 30.2 % (Mixtral),
52.7 against 47.7 (DeepSeek), 52.8 against 45.0 (Qwen2): +5 to +8 points.

## Traces

";

const FITTING: &str = "
## Synthetic routing, fitted

Fitted are r_l, reuse, working set and layer lift (how much better than popularity the layer before
predicts the next); the LRU hit rates are not fitted and show what the model misses. Each pair is
recorded / synthetic, the synthetic side a mean over three seeds the search has not used.

| trace | Zipf skew | repeat | recall | layer correlation | weight tilt | r_l | next token reuses | \
experts in 32 tokens | layer lift | LRU hits at 25 % | LRU hits at 50 % |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

const DOUBTS: &str = "
## How far to trust this

- Differences below about twice the standard error say nothing, and that error takes tokens as
  independent, which flatters it.
- Synthetic traces have no scores of experts that were not chosen, which MRS would use.
- Below one token's working set a global pool under LRU hits nothing; every policy that counts does
  better there.
- Where a cache holds every expert the text needs, all policies are equal.
- A hit is not a second saved: what a miss costs is for the drive loop to say.
";
