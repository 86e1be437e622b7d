//! The report on cache policies: recorded and made traces, tables as Markdown, curves as SVG.
//! It returns text; the door that asked writes the files.

use std::fmt::Write as _;

use motley_trace::record::Problem;
use motley_trace::{Phase, SummaryBuilder, Trace, TraceError};
use thiserror::Error;

use crate::chart::{ChartError, Panel, hit_rate_chart};
use crate::curves::policy_curves;
use crate::fit::{Fit, fit, make};
use crate::holdout::{HoldOut, Layout, Measured, hold_out};

/// Cache sizes of the tables (HybriMoE, Figure 9).
const TABLE_SHARES: [f64; 3] = [0.25, 0.5, 0.75];
/// Both layouts, with their heading and the name of their chart.
const LAYOUTS: [(Layout, &str, &str); 2] = [
    (Layout::PerLayer, "Slots per layer", "hit-rate-per-layer.svg"),
    (Layout::Global, "One global pool", "hit-rate-global.svg"),
];

/// What the report is made from.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    /// Recorded traces.
    pub traces: &'a [Trace],
    /// Decode tokens of each made trace.
    pub made_tokens: u32,
    /// Seed of made traces.
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
        /// The trace's model.
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

/// Compares all policies on recorded traces and on made ones fitted to them.
pub fn cache_policy_report(input: &ReportInput<'_>) -> Result<CachePolicyReport, ReportError> {
    let mut text = String::from(INTRODUCTION);
    write_traces(&mut text, input.traces);
    let mut charts = Vec::new();
    for (layout, heading, file_name) in LAYOUTS {
        let _ = write!(text, "\n## {heading}, recorded traces\n\n![{heading}]({file_name})\n\n");
        write_hold_outs(&mut text, input.traces, layout);
        charts.push((file_name.to_owned(), chart(input.traces, layout, heading)?));
    }
    let fits = input.traces.iter().map(|trace| fitted(trace, input.seed));
    let fits = fits.collect::<Result<Vec<_>, _>>()?;
    write_fits(&mut text, &fits);
    let made = fits.iter().map(|fit| made_trace(fit, input));
    let made = made.collect::<Result<Vec<_>, _>>()?;
    let _ = write!(text, "\n## Slots per layer, made traces of {} tokens\n\n", input.made_tokens);
    write_hold_outs(&mut text, &made, Layout::PerLayer);
    text.push_str(DOUBTS);
    Ok(CachePolicyReport { markdown: text, charts })
}

fn fitted(trace: &Trace, seed: u64) -> Result<Fit, ReportError> {
    let model = || trace.header.model.clone();
    fit(trace, seed).map_err(|problem| ReportError::Fit { model: model(), problem })
}

fn made_trace(fit: &Fit, input: &ReportInput<'_>) -> Result<Trace, ReportError> {
    let mut params = fit.params.clone();
    params.decode_tokens = input.made_tokens;
    let model = params.model.clone();
    make(&params, input.seed).map_err(|problem| ReportError::Fit { model, problem })
}

fn chart(traces: &[Trace], layout: Layout, heading: &str) -> Result<String, ReportError> {
    let panel = |trace: &Trace| -> Result<Panel, ReportError> {
        let curves = policy_curves(trace, layout)?;
        Ok(Panel { title: trace.header.model.clone(), curves })
    };
    let panels = traces.iter().map(panel).collect::<Result<Vec<_>, _>>()?;
    let title = format!("{heading}: decode hits on the second half of each trace");
    Ok(hit_rate_chart(&title, &panels)?)
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
    let percent = |measured: &Measured| 100.0 * measured.rate();
    let closed = |measured: &Measured| match found.gap_closed(measured) {
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
         {open} with a gap to close, blend closes more than MRS on {}, and more than MRS with its α \
         chosen in hindsight on {}.",
        100.0 * share,
        gains.join(", "),
        count(&|h| h.mrs.rate() > h.lru.rate()),
        count(&|h| h.mrs.rate() < h.lru.rate()),
        all.len(),
        count(&|h| h.gap_closed(&h.lru).is_some() && h.blend.rate() > h.mrs.rate()),
        count(&|h| h.gap_closed(&h.lru).is_some() && h.blend.rate() > h.mrs_in_hindsight.rate()),
    );
}

fn write_fits(text: &mut String, fits: &[Fit]) {
    text.push_str(FITTING);
    for fit in fits {
        let (real, made, params) = (&fit.recorded, &fit.made, &fit.params);
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} / {:.1} | {:.2} / {:.2} | {:.0} / \
             {:.0} | {:.2} / {:.2} | {:.1} / {:.1} | {:.1} / {:.1} |",
            params.model.trim_end_matches(" (made)"),
            params.zipf_skew,
            params.repeat,
            params.recall,
            params.layer_correlation,
            params.weight_tilt,
            real.imbalance,
            made.imbalance,
            real.token_reuse,
            made.token_reuse,
            real.working_set,
            made.working_set,
            real.layer_lift,
            made.layer_lift,
            100.0 * real.lru_hits_25,
            100.0 * made.lru_hits_25,
            100.0 * real.lru_hits_50,
            100.0 * made.lru_hits_50,
        );
    }
}

const INTRODUCTION: &str = "\
# Cache policies on recorded and made routing

Written by `cache_policy_report` in `motley-sim`; do not edit. Techniques H3, M6, N1.

A trace is replayed visit by visit: all experts a layer needs in one pass are needed together, an
expert is a hit when it is resident as the visit begins, misses are loaded and displace the
lowest-ranked. Hit rates are in percent, of decoding only. Parameters (α of MRS, half-life of LFRU,
learning rate of blend, the profile of popularity) are chosen on the first half of the decoded tokens;
rates are of the second half, with the caches warmed by the first. MRS gets weights where the trace has
them, with p = 2k; none of the traces records the scores of experts that were not chosen, which MRS
would use too. Belady and popularity may use a missed expert without caching it; the others may not.

## Traces

";

const FITTING: &str = "
## Made routing, fitted

Fitted are r_l, reuse, working set and layer lift (how much better than popularity the layer before
foretells the next); the LRU hit rates are not fitted and show what the model misses. Each pair is
recorded / made, the made side a mean over three seeds the search has not used.

| trace | Zipf skew | repeat | recall | layer correlation | weight tilt | r_l | next token reuses | \
experts in 32 tokens | layer lift | LRU hits at 25 % | LRU hits at 50 % |
|---|---|---|---|---|---|---|---|---|---|---|---|
";

const DOUBTS: &str = "
## How far to trust this

- The recorded traces are short: 64 to 300 decoded tokens of one text each. Differences below about
  twice the standard error say nothing, and that error takes tokens as independent, which flatters it.
- The parameters of blend are chosen on first halves, but its design was found while looking at these
  five texts. It needs traces nobody has looked at.
- The traces of gpt-oss, Qwen and Gemma were recorded with fewer experts per token (2, 6, 6) than the
  models use by default.
- MRS with full router scores, as in the paper, is not tested by recorded ids and weights; made traces
  have no such scores either. The paper's models (Mixtral, DeepSeek-V2-Lite, Qwen2-57B) are not among
  these.
- At 75 % most caches hold every expert the text needs, so all policies are equal.
- A hit is not a second saved: what a miss costs is for the drive loop to say.
";
