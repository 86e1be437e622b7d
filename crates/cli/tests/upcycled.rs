//! SmolLM2 as a mixture of 16 permuted copies of its own feed-forward networks
//! (`cargo xtask upcycle`): the function is the dense model's, so is the text; and
//! on this real text and these real hidden states the seam is bit-exact too.

mod support;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use support::{BARE, BARE_PLAIN, MAPPED, ON_DEMAND, REPACKED, job, work_with_logits};

/// Prompts after which the small model is sure of itself. Where it is not, kernels
/// that differ in their last bits change its words: the dense model's own logits
/// move by about 0.1 on average (up to 1) between its plain and its repacked
/// kernels, and the mixture's differ from the dense model's by no more than that.
const PROMPTS: [&str; 4] = [
    "1, 2, 3, 4, 5, 6,",
    "The chemical symbol for gold is",
    "Dear Sir or Madam,\n\nI am writing to",
    "The opposite of hot is",
];

/// Greedy tokens compared per prompt.
const TOKENS: usize = 32;

#[test]
fn says_what_the_dense_model_says() {
    let Some((dense, moe)) = models() else { return };
    let mut equal = 0;
    for prompt in PROMPTS {
        let (expected, found) = (tokens(&dense, prompt), tokens(&moe, prompt));
        let same = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
        println!("{prompt:?}: {same} of {} tokens equal", expected.len());
        equal += usize::from(expected == found);
    }
    assert!(equal >= 3, "only {equal} of {} prompts gave the dense model's text", PROMPTS.len());
}

#[test]
fn is_bit_exact_on_the_repacked_path() {
    check(BARE, &[REPACKED]);
}

#[test]
fn is_bit_exact_on_both_plain_paths() {
    check(BARE_PLAIN, &[MAPPED, ON_DEMAND]);
}

fn check(bare: support::Way, ways: &[support::Way]) {
    let Some((_, moe)) = models() else { return };
    let run = |way| work_with_logits(job(&moe, way));
    let (_, expected) = run(bare);
    for &way in ways {
        let (outcome, logits) = run(way);
        assert_eq!(outcome["delegated"], 0);
        assert!(logits == expected, "{way:?}: logits differ from the bare engine's");
    }
}

fn models() -> Option<(PathBuf, PathBuf)> {
    Some((support::smollm2()?, support::upcycled(16, 4)?))
}

fn tokens(model: &Path, prompt: &str) -> Vec<Value> {
    let tokens = TOKENS.to_string();
    let model = model.to_str().expect("a plain path");
    let args =
        support::continued(model, prompt, &["-n", &tokens, "--exact", "--json", "--threads", "1"]);
    let output = support::motley(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["delegated_splits"], json!(0));
    report["tokens"].as_array().expect("tokens").clone()
}
