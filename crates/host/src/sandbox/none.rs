//! Systems other than Linux, and processors whose calls have no table here: nothing is restricted.

use super::{Allowed, Offered, Outgoing, SandboxError};

/// Never made here.
#[derive(Debug)]
pub enum FilesHeld {}

impl std::fmt::Display for FilesHeld {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

/// Says that there is no Landlock.
pub fn restrict_files(_: &Allowed) -> Result<FilesHeld, SandboxError> {
    Err(SandboxError::NotOffered { what: "Landlock" })
}

/// Says that there is no seccomp.
pub fn restrict_calls(_: Outgoing) -> Result<(), SandboxError> {
    Err(SandboxError::NotOffered { what: "seccomp" })
}

/// Nothing.
pub fn offered() -> Offered {
    Offered::default()
}
