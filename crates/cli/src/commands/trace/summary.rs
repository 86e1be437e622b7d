//! `motley trace summary`: how a trace's routing is spread and how it repeats.

use super::open::open;
use crate::args::{Global, TraceSummary};
use crate::page::{Fact, align_right, bar, facts, percent, printable, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_trace::{Phase, Summary, SummaryBuilder, Visit};
use serde::Serialize;

/// Length of the bars, in characters.
const BAR_CELLS: usize = 32;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &TraceSummary, columns: Option<u16>) -> Result<()> {
    let mut source = open(&args.file, &args.waste)?;
    let mut builder = SummaryBuilder::new(source.header());
    let mut length = Length::default();
    let mut visit = Visit::default();
    while source.read_visit(&mut visit).with_context(|| args.file.display().to_string())? {
        builder.observe(&visit);
        length.observe(&visit);
    }
    let report = SummaryReport { length, summary: builder.finish() };
    if global.json {
        print_json(&serde_json::to_string(&report)?)?;
    } else {
        print_page(&render(&report, width_of(columns)))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct SummaryReport {
    #[serde(flatten)]
    length: Length,
    #[serde(flatten)]
    summary: Summary,
}

/// Passes and tokens of both phases. The tokens of a pass are those of its fullest layer: the
/// last one may compute only the tokens whose output is wanted.
#[derive(Default, Serialize)]
struct Length {
    prefill_passes: u64,
    prefill_tokens: u64,
    decode_passes: u64,
    decode_tokens: u64,
    #[serde(skip)]
    pass: Option<(u64, u64)>,
    weights: bool,
    scores: bool,
}

impl Length {
    fn observe(&mut self, visit: &Visit) {
        let tokens = visit.tokens() as u64;
        let (passes, sum) = match visit.phase {
            Phase::Prefill => (&mut self.prefill_passes, &mut self.prefill_tokens),
            Phase::Decode => (&mut self.decode_passes, &mut self.decode_tokens),
        };
        let counted = match self.pass {
            Some((pass, counted)) if pass == visit.pass => counted,
            _ => {
                *passes += 1;
                0
            }
        };
        *sum += tokens.saturating_sub(counted);
        self.pass = Some((visit.pass, counted.max(tokens)));
        self.weights |= !visit.weights.is_empty();
        self.scores |= !visit.scores.is_empty();
    }
}

fn render(report: &SummaryReport, width: u16) -> String {
    let summary = &report.summary;
    let mut sets = table(width, presets::UTF8_FULL_CONDENSED);
    sets.set_header(["Tokens", "Experts", "Of a layer", "needed together by that many tokens"]);
    let all = f64::from(summary.header.experts);
    for set in summary.working_sets.iter().filter(|set| set.experts > 0.0) {
        sets.add_row([
            set.tokens.to_string(),
            format!("{:.1}", set.experts),
            percent(set.experts / all),
            bar(set.experts / all, BAR_CELLS),
        ]);
    }
    align_right(&mut sets, &[0, 1, 2]);
    format!(
        " {}\n\n{}\n\n{}",
        printable(&summary.header.model),
        facts(&summary_facts(report), width),
        sets.trim_fmt()
    )
}

fn summary_facts(report: &SummaryReport) -> Vec<Fact> {
    let (summary, length) = (&report.summary, &report.length);
    let header = &summary.header;
    let chance = f64::from(header.k) / f64::from(header.experts);
    let most = summary.imbalance.iter().copied().fold(0.0, f64::max);
    let weights = match (length.weights, length.scores) {
        (_, true) => "the scores of all experts",
        (true, false) => "weights of the chosen experts",
        (false, false) => "none: ids only",
    };
    vec![
        (
            "Shape",
            format!(
                "{} layers × {} experts, {} per token",
                header.layers, header.experts, header.k
            ),
        ),
        ("Prompt", passes(length.prefill_tokens, length.prefill_passes)),
        ("Decoded", passes(length.decode_tokens, length.decode_passes)),
        ("Weights", weights.to_owned()),
        (
            "Uneven",
            format!(
                "the most used expert gets {:.1} times its share ({most:.1} in the worst layer)",
                summary.mean_imbalance()
            ),
        ),
        (
            "Repeats",
            format!(
                "{} of a token's experts were the last token's too (chance: {})",
                percent(summary.token_reuse),
                percent(chance)
            ),
        ),
        (
            "Predictable",
            format!(
                "{} by popularity, {} by the layer before",
                percent(summary.guessed_by_popularity),
                percent(summary.guessed_by_layer_before)
            ),
        ),
    ]
}

fn passes(tokens: u64, passes: u64) -> String {
    match (tokens, passes) {
        (0, _) => "nothing".to_owned(),
        (tokens, 1) => format!("{tokens} tokens in one pass"),
        (tokens, passes) if tokens == passes => format!("{tokens} tokens, one per pass"),
        (tokens, passes) => format!("{tokens} tokens in {passes} passes"),
    }
}
