//! How tokens are chosen, as typed.

use clap::Args;

/// How tokens are chosen. What is not given is the model's own value, where its file has one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling (default: what the model's file says, else as below)")]
pub(crate) struct SamplingArgs {
    /// 0 takes the most likely token every time [else: 0.8]
    #[arg(long)]
    pub(crate) temperature: Option<f32>,
    /// Keep the K most likely tokens, 0 for all [else: 40]
    #[arg(long, value_name = "K")]
    pub(crate) top_k: Option<u32>,
    /// Keep the smallest set of tokens that reaches probability P [else: 0.95]
    #[arg(long, value_name = "P")]
    pub(crate) top_p: Option<f32>,
    /// Keep tokens at least P times as likely as the best [else: 0.05]
    #[arg(long, value_name = "P")]
    pub(crate) min_p: Option<f32>,
    /// Make tokens of the last 64 less likely, 1 for not [else: 1]
    #[arg(long, value_name = "X")]
    pub(crate) repeat_penalty: Option<f32>,
    /// Seed for sampling; the same seed gives the same answer [else: another each time]
    #[arg(long)]
    pub(crate) seed: Option<u32>,
}
