//! Flags by which a model is computed otherwise than it says. None is ever chosen for the user.

use clap::Args;
use motley_plan::Asked;
use motley_sched::SkipCold;

/// The approximations.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Approximations, off by default")]
pub(crate) struct Approximate {
    /// Experts per token in place of the model's own number, at most that many: fewer bytes and
    /// less work for every token, and other answers, the same every time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) experts: Option<u32>,
    /// Leave out experts that would have to be read from disk where their weight is below this part
    /// of an even share of the token's, e.g. 0.5; the strongest always stays. What is in memory
    /// decides, so answers differ from run to run
    #[arg(long, value_name = "PART")]
    pub(crate) skip_cold: Option<SkipCold>,
}

impl Approximate {
    /// `asked`, with what a decision has to know of them.
    pub(crate) fn beside(&self, asked: Asked) -> Asked {
        Asked { skip_cold: self.skip_cold, ..asked }
    }
}
