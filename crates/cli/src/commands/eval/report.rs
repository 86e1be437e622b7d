//! What an evaluation found, as JSON for programs; `page` shows it to people.

use crate::args::Eval;
use crate::npu::NpuRow;
use motley_engine::eval::{Answers, Interval, PairedCounts, Perplexity, Task};
use serde::Serialize;

/// The whole outcome.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) model: String,
    pub(crate) seed: u64,
    pub(crate) shots: usize,
    pub(crate) window_tokens: usize,
    pub(crate) runs: Vec<Run>,
    /// Second run against the first, subject by subject; empty without `--compare`.
    pub(crate) differences: Vec<Difference>,
}

/// One setting's outcome.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) setting: String,
    pub(crate) subjects: Vec<Subject>,
    /// What a static-graph device did, by layer; empty without one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) npu: Vec<NpuRow>,
}

/// One text or one file of questions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    Text(Perplexity),
    Questions { task: Task, answers: Answers },
}

/// The same items under two settings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Difference {
    /// Perplexity of the second setting over the first's.
    Text { perplexity_ratio: Interval },
    /// Accuracy of the second setting minus the first's.
    Questions { task: Task, accuracy: Interval, accuracy_per_byte: Interval, counts: PairedCounts },
}

impl Report {
    pub(crate) fn new(eval: &Eval, seed: u64, first: Run, second: Option<Run>) -> Self {
        let differences = second.as_ref().map_or(Vec::new(), |second| {
            first.subjects.iter().zip(&second.subjects).filter_map(difference).collect()
        });
        Self {
            model: eval.model.display().to_string(),
            seed,
            shots: eval.shots,
            window_tokens: eval.window,
            runs: std::iter::once(first).chain(second).collect(),
            differences,
        }
    }
}

fn difference((first, second): (&Subject, &Subject)) -> Option<Difference> {
    match (first, second) {
        (Subject::Text(first), Subject::Text(second)) => {
            Some(Difference::Text { perplexity_ratio: first.ratio(second) })
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
