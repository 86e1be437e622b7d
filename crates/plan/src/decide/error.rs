//! Wishes that cannot be obeyed, each with the reason and the way out.

use motley_model::{KvType, NotInBlocks, Unweighed};
use motley_sched::{NotThere, UnknownName};

use crate::budget::TooLittleMemory;
use crate::calibration::NoCpu;

/// Why there is no decision.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    #[error(transparent)]
    NoCpu(#[from] NoCpu),
    /// Mapped files are the system's to keep in memory or not.
    #[error(
        "--loading mapped cannot keep to --memory: the system decides how much of a mapped file \
         stays in memory; leave one of the two out"
    )]
    MappedWithin,
    /// A device adds in another order than the CPU.
    #[error(
        "--exact keeps to the CPU, because `{device}` rounds differently; leave out --devices or \
         --exact"
    )]
    ExactElsewhere { device: String },
    #[error("unknown device `{name}`; --devices takes {known}")]
    UnknownDevice { name: String, known: String },
    #[error(
        "--devices {names}: {given} of memory is too little for this model, which needs {needed}; \
         leave it out, or give more"
    )]
    DeviceTooSmall { names: String, given: String, needed: String },
    /// llama.cpp keeps 8 and 4 bits in blocks of 32.
    #[error("--kv {}: {reason}; leave it out", kv.name())]
    KvBlocks { kv: KvType, reason: NotInBlocks },
    /// A rule that would never be asked.
    #[error(
        "{flag} would decide nothing: every expert is in one memory; leave it out, or give less \
         --memory"
    )]
    NothingToDecide { flag: &'static str },
    /// What is left out makes other bits.
    #[error(
        "--skip-cold leaves experts out, and --exact promises the bits of the model as it is; leave \
         one of the two out"
    )]
    SkipExact,
    /// Nothing would have to be read.
    #[error(
        "--skip-cold would leave nothing out: every expert is in memory; leave it out, or give less \
         --memory"
    )]
    SkipNothing,
    /// What an expert adds is known only once it is computed.
    #[error("--skip-cold cannot tell which experts count little: {0}; leave it out")]
    SkipUnweighed(#[from] Unweighed),
    /// A rule for a memory that nothing is brought to.
    #[error(transparent)]
    NotThere(#[from] NotThere),
    /// A rule kept with the profile that this program does not have.
    #[error("the profile's chosen rules cannot be used: {0}; calibrate the model again")]
    Profile(#[from] UnknownName),
}
