//! How tokens are chosen, as typed.

use clap::Args;

/// How tokens are chosen.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// 0 takes the most likely token every time
    #[arg(long, default_value_t = 0.0)]
    pub(crate) temperature: f32,
    /// Keep the K most likely tokens (0: all)
    #[arg(long, default_value_t = 40, value_name = "K")]
    pub(crate) top_k: u32,
    /// Keep the smallest set of tokens that reaches probability P
    #[arg(long, default_value_t = 0.95, value_name = "P")]
    pub(crate) top_p: f32,
    /// Keep tokens at least P times as likely as the best
    #[arg(long, default_value_t = 0.05, value_name = "P")]
    pub(crate) min_p: f32,
    /// Make tokens of the last 64 less likely (1: no)
    #[arg(long, default_value_t = 1.0, value_name = "X")]
    pub(crate) repeat_penalty: f32,
    /// Seed for sampling
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u32,
}
