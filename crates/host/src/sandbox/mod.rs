//! What this process may still touch and call once it has what it needs: files through Landlock,
//! system calls through seccomp. Restricts; who is restricted, and when, is the caller's choice.
//!
//! Both are given up for good, in two steps:
//!
//! ```text
//!   arguments, facts, decision            may read, measure, start children
//!        │  restrict_files                 before the first thread that stays: Landlock binds the
//!        ▼                                 calling thread and those it starts (all with ABI 8)
//!   load, contexts, bind                   reads the model, listens
//!        │  restrict_calls                 every thread of the process at once (TSYNC)
//!        ▼
//!   strangers' prompts                     no exec, no fork, no new socket, no tracing
//! ```
//!
//! * [`rules`]: which paths stay usable, each with its reason; decided without touching any.
//! * `paths`: those rules as a Landlock domain.
//! * `calls`: which system calls are refused, as a seccomp filter.
//! * `probe`: what this kernel offers, tried on a thread that ends.
//! * `none`: systems that have neither.
//!
//! Why these two, and why calls are listed that are refused: `docs/decisions/0076-sandbox.md`.

pub mod rules;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
#[path = "."]
mod system {
    pub(super) mod calls;
    pub(super) mod paths;
    pub(super) mod probe;

    pub use calls::restrict_calls;
    pub use paths::{FilesHeld, restrict_files};
    pub use probe::offered;
}
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
#[path = "none.rs"]
mod system;

pub use rules::{Access, Allowed, Rule};
pub use system::{FilesHeld, offered, restrict_calls, restrict_files};

/// Whether connections to others are still opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outgoing {
    /// No: no socket can be made any more.
    None,
    /// To whom the user named; Landlock holds them to the ports of [`Allowed::outgoing_ports`].
    ToConfigured,
}

/// What this kernel lets a process give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offered {
    /// Landlock's version; `None` when it is not built in, not enabled or forbidden here.
    pub landlock_abi: Option<u32>,
    /// Whether a filter of system calls can be installed.
    pub seccomp: bool,
}

/// Landlock's version from which threads that exist already are restricted too.
pub const ALL_THREADS_ABI: u32 = 8;

/// Why nothing, or not everything, was restricted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The system has no such thing.
    #[error("{what} is not offered by this system")]
    NotOffered { what: &'static str },
    /// It has, and refused.
    #[error("{what} refused: {reason}")]
    Refused { what: &'static str, reason: String },
}
