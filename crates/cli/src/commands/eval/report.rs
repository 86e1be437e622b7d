//! What an evaluation found, as JSON for programs; `page` shows it to people.

use crate::args::Eval;
use crate::npu::NpuRow;
use motley_engine::eval::{Answers, Divergence, Interval, PairedCounts, Perplexity, Task};
use motley_plan::price::Approximation;
use serde::Serialize;

/// The whole outcome.
#[derive(Debug, Serialize)]
pub(crate) struct EvalReport {
    pub(crate) model: String,
    pub(crate) seed: u64,
    pub(crate) shots: usize,
    pub(crate) window_tokens: usize,
    pub(crate) runs: Vec<Run>,
    /// Later runs against the first, subject by subject; empty without `--compare`.
    pub(crate) differences: Vec<Against>,
}

/// One setting's outcome.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) setting: String,
    pub(crate) subjects: Vec<Subject>,
    /// How the model was computed otherwise than it says.
    #[serde(skip_serializing_if = "is_none")]
    pub(crate) approximation: Approximation,
    /// Whether the setting changes nothing else.
    #[serde(skip)]
    pub(crate) only_approximates: bool,
    /// Part of the experts memory had room for.
    pub(crate) held: f64,
    /// Tokens per second, where they were computed one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decode_per_s: Option<f64>,
    /// Shares of routed pairs and of their weight, where some may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<(f64, f64)>,
    /// What a static-graph device did; empty without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) npu: Vec<OnDevice>,
}

fn is_none(approximation: &Approximation) -> bool {
    approximation.is_none()
}

/// What a static-graph device did for one subject.
#[derive(Debug, Serialize)]
pub(crate) struct OnDevice {
    pub(crate) what: String,
    /// By layer, then all layers together.
    pub(crate) layers: Vec<NpuRow>,
}

/// One subject under another setting.
#[derive(Debug, Serialize)]
pub(crate) struct Against {
    pub(crate) setting: String,
    #[serde(flatten)]
    pub(crate) difference: Difference,
}

/// One text or one file of questions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    Text(Text),
    Questions { task: Task, answers: Answers },
}

/// A text under one setting.
#[derive(Debug, Serialize)]
pub(crate) struct Text {
    #[serde(flatten)]
    pub(crate) perplexity: Perplexity,
    /// From what the first setting said; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) divergence: Option<Divergence>,
}

/// The same items under two settings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Difference {
    /// Perplexity of the second setting over the first's, and how far its distributions are from
    /// the first's.
    Text { perplexity_ratio: Interval, divergence: Option<Divergence> },
    /// Accuracy of the second setting minus the first's.
    Questions { task: Task, accuracy: Interval, accuracy_per_byte: Interval, counts: PairedCounts },
}

impl EvalReport {
    /// `runs` are all settings', the first as given.
    pub(crate) fn new(eval: &Eval, seed: u64, runs: Vec<Run>) -> Self {
        let mut differences = Vec::new();
        if let Some((first, others)) = runs.split_first() {
            for other in others {
                let pairs = first.subjects.iter().zip(&other.subjects);
                let found = pairs.filter_map(difference);
                differences.extend(
                    found.map(|difference| Against { setting: other.setting.clone(), difference }),
                );
            }
        }
        Self {
            model: eval.model.display().to_string(),
            seed,
            shots: eval.shots,
            window_tokens: eval.window,
            runs,
            differences,
        }
    }
}

fn difference((first, second): (&Subject, &Subject)) -> Option<Difference> {
    match (first, second) {
        (Subject::Text(first), Subject::Text(second)) => {
            let perplexity_ratio = first.perplexity.ratio(&second.perplexity);
            Some(Difference::Text { perplexity_ratio, divergence: second.divergence.clone() })
        }
        (Subject::Questions { task, answers }, Subject::Questions { answers: second, .. }) => {
            Some(Difference::Questions {
                task: *task,
                accuracy: answers.paired(second).difference(),
                accuracy_per_byte: answers.paired_per_byte(second).difference(),
                counts: answers.paired(second),
            })
        }
        _ => None,
    }
}
