//! What compared approximations cost, from a report to what is kept of it.

use super::report::{EvalReport, Run, Subject, Text};
use crate::args::Eval;
use crate::known::model_name;
use anyhow::Result;
use motley_model::{ModelSpec, Sizes};
use motley_plan::price::{PRICES_VERSION, Price, Prices};

/// The prices a report holds; `None` where nothing was compared with the model as it is.
pub(super) fn prices(eval: &Eval, report: &EvalReport) -> Result<Option<Prices>> {
    let (Some(path), Some((first, others))) = (&eval.what.text, report.runs.split_first()) else {
        return Ok(None);
    };
    let (Some(as_it_is), Some(decode_per_s), true) =
        (text_of(first), first.decode_per_s, first.approximation.is_none())
    else {
        return Ok(None);
    };
    let prices: Vec<Price> = others.iter().filter_map(|run| price(as_it_is, run)).collect();
    if prices.is_empty() {
        return Ok(None);
    }
    let (spec, _) = ModelSpec::open(&eval.model)?;
    Ok(Some(Prices {
        motley_prices: PRICES_VERSION,
        model: model_name(&spec, &eval.model),
        total_bytes: Sizes::of(&spec).total_bytes,
        text: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        tokens: as_it_is.perplexity.tokens as u64,
        decode_per_s,
        prices,
    }))
}

/// Of a setting that approximates and changes nothing else.
fn price(as_it_is: &Text, run: &Run) -> Option<Price> {
    if run.approximation.is_none() || !run.only_approximates {
        return None;
    }
    let text = text_of(run)?;
    let kl = text.divergence.as_ref()?.kl;
    Some(Price {
        approximation: run.approximation,
        held: run.held,
        kl: kl.value,
        kl_low: kl.low,
        kl_high: kl.high,
        perplexity_ratio: as_it_is.perplexity.ratio(&text.perplexity).value,
        decode_per_s: run.decode_per_s?,
    })
}

fn text_of(run: &Run) -> Option<&Text> {
    run.subjects.iter().find_map(|subject| match subject {
        Subject::Text(text) => Some(text),
        Subject::Questions { .. } => None,
    })
}
