//! Rules chosen by replay of what was just recorded (M6), for the arrangement of a run with the same
//! flags; what holds is kept with the profile.

use crate::args::Global;
use crate::commands::sim::{shape_of_file, told_choice, with_bar};
use crate::page::Fact;
use anyhow::Result;
use motley_machine::Machine;
use motley_plan::{Decision, Regime};
use motley_profile::ChosenRules;
use motley_sim::choose::ChooseError;
use motley_sim::setup::{CacheSize, Choices, DEFAULT_PREDICTION, Setup};
use motley_sim::shape::ModelShape;
use motley_trace::Trace;
use std::path::Path;

/// What was recorded, and what a run would be under the defaults.
pub(super) struct Recorded<'a> {
    pub(super) machine: &'a Machine,
    pub(super) decision: &'a Decision,
    pub(super) model: &'a Path,
    pub(super) trace: &'a Trace,
}

impl Recorded<'_> {
    /// What replay chose, if it holds; and what to say about it.
    pub(super) fn chosen(&self, global: &Global) -> Result<(Option<ChosenRules>, Vec<Fact>)> {
        let Self { machine, decision, model, trace } = *self;
        if decision.regime() == Regime::OneMemory {
            return Ok((None, Vec::new()));
        }
        let (layers, k) = (trace.header.layers, trace.header.k);
        let choices = Choices {
            machine,
            model: &ModelShape { layers, k, ..shape_of_file(model)? },
            strategy: None,
            policy: None,
            prefetch: None,
            cache: CacheSize::Fitting,
            prediction_accuracy: DEFAULT_PREDICTION,
            faults: None,
            seed: 0,
        };
        let told =
            |why: String| Ok((None, vec![("Rules", format!("not chosen by replay: {why}"))]));
        let setup = match Setup::of(&choices, decision) {
            Ok(setup) => setup,
            Err(error) => return told(error.to_string()),
        };
        let choice = match with_bar(global, &setup, trace) {
            Err(error @ ChooseError::TooShort { .. }) => return told(error.to_string()),
            found => found?,
        };
        let kept = choice.holds().then(|| ChosenRules {
            arrangement: decision.placement.arrangement(&machine.name),
            policy: choice.best.policies(),
            prefetch: choice.best.prefetchers(),
            gain: choice.held_out_gain,
            tokens: choice.held_out_tokens,
        });
        Ok((kept, told_choice(&choice)))
    }
}
