//! Searches on a fitted phone: once without noise, and many times with it.

use motley_plan::cores::{
    Aecs, CorePool, CoreSearch, CoreSet, Exhaustive, Measurement, Objective, Selection, carry_out,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::assumed::Assumptions;
use super::phones::Fitted;
use crate::error::ReproduceError;

/// Trials of one phone.
pub const TRIALS: u32 = 200;
/// A choice whose true energy is this near to the best is as good: on the Meizu the two best
/// differ by 0.2 %.
const TIE: f64 = 0.01;

/// What searching one phone gave.
#[derive(Debug, Clone)]
pub struct Searched {
    /// The choice of an exhaustive search without noise.
    pub best: CoreSet,
    /// The choice of AECS without noise.
    pub found: CoreSet,
    /// Where its stage 1 ended.
    pub fastest: CoreSet,
    /// Choices an exhaustive search measures.
    pub all: usize,
    /// Candidates of AECS.
    pub candidates: usize,
    /// Choices AECS measures, both stages together.
    pub measured: usize,
    /// Trials with the heuristic.
    pub with: Trials,
    /// Trials without.
    pub without: Trials,
}

/// Outcomes of trials.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Trials {
    /// Share that chose the best set or one as good (within 1 % of its energy).
    pub agreed: f64,
    /// Share that chose the very same set.
    pub same: f64,
    /// Most candidates in any trial.
    pub candidates: usize,
}

/// Searches `fitted`.
pub fn search(fitted: &Fitted, open: Assumptions) -> Result<Searched, ReproduceError> {
    let pool = pool(fitted)?;
    let exact = |set: &CoreSet| Measurement {
        tokens_per_s: fitted.speed(set),
        joules_per_token: Some(fitted.energy_j(set)),
    };
    let power = fitted.machine.power;
    let alone = Objective { alpha: 0.0, ..Objective::default() };
    let mut exhaustive = Exhaustive::new(&pool, power, alone).map_err(|_| lacks(fitted))?;
    let all = exhaustive.choices();
    let best = carry_out(&mut exhaustive, exact).ok_or_else(|| lacks(fitted))?.chosen;
    let mut aecs = Aecs::new(pool, power, Objective { alpha: open.alpha, ..alone });
    let selection = carry_out(&mut aecs, exact).ok_or_else(|| lacks(fitted))?;
    Ok(Searched {
        with: trials(fitted, &best, open)?,
        without: trials(fitted, &best, Assumptions { alpha: 0.0, ..open })?,
        found: selection.chosen,
        fastest: selection.fastest,
        candidates: selection.candidates.len(),
        measured: selection.measured,
        best,
        all,
    })
}

/// Many searches with noisy measurements, the same noise for every setting.
fn trials(fitted: &Fitted, best: &CoreSet, open: Assumptions) -> Result<Trials, ReproduceError> {
    let (mut agreed, mut exactly, mut candidates) = (0u32, 0u32, 0);
    let best_j = fitted.energy_j(best);
    for trial in 0..TRIALS {
        let selection = noisy(fitted, open, u64::from(trial))?;
        let near = fitted.energy_j(&selection.chosen) <= best_j * (1.0 + TIE);
        let fair = fitted.speed(&selection.chosen) >= fitted.speed(best) * (1.0 - TIE);
        let same = selection.chosen == *best;
        agreed += u32::from(same || (near && fair));
        exactly += u32::from(same);
        candidates = selection.candidates.len().max(candidates);
    }
    let share = |count: u32| f64::from(count) / f64::from(TRIALS);
    Ok(Trials { agreed: share(agreed), same: share(exactly), candidates })
}

fn noisy(fitted: &Fitted, open: Assumptions, seed: u64) -> Result<Selection, ReproduceError> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut off = |noise: f64| 1.0 + noise * (2.0 * rng.random::<f64>() - 1.0);
    let objective = Objective { alpha: open.alpha, ..Objective::default() };
    let mut search: Box<dyn CoreSearch> =
        Box::new(Aecs::new(pool(fitted)?, fitted.machine.power, objective));
    let repeats = f64::from(open.repeats.max(1));
    let selection = carry_out(search.as_mut(), |set| {
        let (mut speed, mut energy) = (0.0, 0.0);
        for _ in 0..open.repeats.max(1) {
            speed += off(open.speed_noise) / repeats;
            energy += off(open.energy_noise) / repeats;
        }
        Measurement {
            tokens_per_s: fitted.speed(set) * speed,
            joules_per_token: Some(fitted.energy_j(set) * energy),
        }
    });
    selection.ok_or_else(|| lacks(fitted))
}

fn pool(fitted: &Fitted) -> Result<CorePool, ReproduceError> {
    CorePool::of(&fitted.machine, fitted.phone.freedom).map_err(|_| lacks(fitted))
}

fn lacks(fitted: &Fitted) -> ReproduceError {
    ReproduceError::Machine { machine: fitted.machine.name.clone(), item: "core clusters" }
}
