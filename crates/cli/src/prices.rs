//! What approximations of a model cost, as the last `motley eval --compare` of it found: one small
//! file per model in the folder for settings, written anew each time.

use crate::files::write_whole;
use crate::known::{model_name, profile_stem};
use anyhow::{Context, Result, bail};
use motley_calibrate::library;
use motley_model::{ModelSpec, Sizes};
use motley_plan::Decision;
use motley_plan::price::{Approximation, Price, Prices};
use std::path::{Path, PathBuf};

/// Longest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Of the model of `spec` at `path`; `None` where nobody measured. A file that cannot be used is
/// passed over with a warning.
pub(crate) fn find(spec: &ModelSpec, path: &Path) -> Option<Prices> {
    let model = model_name(spec, path);
    let total_bytes = Sizes::of(spec).total_bytes;
    let file = place(&library::known_folder()?, &model);
    let found = read(&file).inspect_err(|error| {
        if file.exists() {
            tracing::warn!("{}: passed over: {error:#}", file.display());
        }
    });
    found.ok().filter(|prices| (&prices.model, prices.total_bytes) == (&model, total_bytes))
}

/// Keeps them; where.
pub(crate) fn keep(prices: &Prices) -> Result<PathBuf> {
    let file = place(&library::folder()?, &prices.model);
    write_whole(&file, &(prices.to_json()? + "\n"))?;
    Ok(file)
}

/// The strongest approximation whose measured price is at most `accept_kl`, for a run that
/// `decision` would make of the model as it is.
pub(crate) fn accepted(
    prices: Option<&Prices>,
    accept_kl: f64,
    decision: &Decision,
    model: &Path,
) -> Result<Price> {
    let measure = format!(
        "measure with `motley eval {} --text FILE --compare experts=N --compare skip-cold=0.5`",
        model.display()
    );
    let Some(prices) = prices else {
        bail!("--accept-kl: no approximation of this model has been measured; {measure}")
    };
    let slots = decision.streamed_slots();
    let held = slots.map(|slots| f64::from(slots) / f64::from(decision.budget.experts.max(1)));
    let found = prices.strongest(accept_kl, held).cloned();
    found.with_context(|| {
        format!(
            "--accept-kl {accept_kl}: of {} measured settings none is faster than the model as it \
             is and surely within that for this memory; accept more, or {measure}",
            prices.prices.len()
        )
    })
}

/// The price of what `decision` approximates, in words; `None` where it does not.
pub(crate) fn said(spec: &ModelSpec, path: &Path, decision: &Decision) -> Option<String> {
    let Decision { experts_used, .. } = *decision;
    let approximation = Approximation { experts_used, skip_cold: decision.rules.skip_cold };
    if approximation.is_none() {
        return None;
    }
    let prices = find(spec, path);
    let price = prices.as_ref().and_then(|prices| Some((prices.of(approximation)?, &prices.text)));
    Some(match price {
        Some((price, text)) => price.said(text),
        None => "its price was not measured: `motley eval --compare`".into(),
    })
}

fn place(folder: &Path, model: &str) -> PathBuf {
    folder.join("prices").join(profile_stem(model) + ".json")
}

fn read(path: &Path) -> Result<Prices> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_FILE_BYTES {
        bail!("{size} bytes, the limit is {MAX_FILE_BYTES}");
    }
    Ok(Prices::from_json(&std::fs::read_to_string(path)?)?)
}
