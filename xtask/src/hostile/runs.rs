//! Long runs of one class of characters, under each pre-tokenizer in turn.

use super::honest::Honest;
use super::pre_tokenizers::{NAMES, rewrite};
use super::report::{Runs, Tally};
use super::setting::Hostile;
use crate::servers::Running;
use anyhow::{Context, Result};
use motley_testkit::hostile::{Random, Strength, carry_out, one_class_run};
use std::path::Path;

/// Carries out `requests` attacks, as many under each.
pub(super) fn run(hostile: &Hostile, requests: usize, say: &mut dyn FnMut(&str)) -> Result<Runs> {
    let folder = tempfile::tempdir()?;
    let model = folder.path().join("model.gguf");
    let mut runs = Runs::default();
    for (at, name) in NAMES.iter().enumerate() {
        let share = requests * (at + 1) / NAMES.len() - requests * at / NAMES.len();
        rewrite(&hostile.model, name, &model)?;
        let mut random = Random::new(hostile.seed.wrapping_mul(1000).wrapping_add(at as u64 + 1));
        let mut tally = Tally::default();
        if let Err(error) = under(hostile, &model, (&mut random, share), &mut tally) {
            say(&format!("{name}: {error:#}"));
            runs.failed.push(format!("{name}: {error:#}"));
        }
        // What was lost before the server ended is counted too.
        runs.tally.add(tally);
        runs.pre_tokenizers += 1;
    }
    say(&format!("runs under {} pre-tokenizers", runs.pre_tokenizers));
    Ok(runs)
}

fn under(
    hostile: &Hostile,
    model: &Path,
    (random, requests): (&mut Random, usize),
    tally: &mut Tally,
) -> Result<()> {
    let mut server = Running::start(hostile.serve(model.to_owned()).start())?;
    let address = server.address.parse()?;
    let (honest, _) = Honest::alone(&server.address, 1)?;
    for _ in 0..requests {
        let chars = 1 + random.below(Strength::FULL.run_chars);
        let attack = one_class_run(random, chars);
        tally.count(&attack, &carry_out(address, &attack));
    }
    let mut once = Some(());
    honest.while_so(|| once.take().is_some()).context("the honest client afterwards")?;
    anyhow::ensure!(server.is_alive(), "the server has ended");
    Ok(())
}
