//! How experts are streamed from disk. The defaults are the regime's and what measured best; other
//! values are for measuring what each is worth, and for tests.

use motley_machine::Regime;
use motley_sched::Rules;
use motley_store::FaultPlan;

/// The options.
#[derive(Debug, Clone)]
pub struct StreamingOptions {
    /// Who decides what stays and what is read early.
    pub rules: Rules,
    /// Read past the page cache where the file system allows it.
    pub direct_reads: bool,
    /// Compute what is there while the rest arrives.
    pub overlap: bool,
    /// Faults to inject into reads.
    pub faults: Option<FaultPlan>,
}

impl Default for StreamingOptions {
    fn default() -> Self {
        Self {
            rules: Rules::default_for(Regime::BeyondRam),
            direct_reads: true,
            overlap: true,
            faults: None,
        }
    }
}
