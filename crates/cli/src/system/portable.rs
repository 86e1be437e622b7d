//! Systems other than Linux: nothing is limited but by the parent's deadline, and no service manager
//! waits.

use super::ProcessLimits;

/// Does nothing.
pub(crate) fn limit_self(limits: ProcessLimits) -> anyhow::Result<()> {
    let ProcessLimits { address_bytes, processor_s } = limits;
    tracing::debug!("not limited here: {address_bytes} bytes, {processor_s} s of processor time");
    Ok(())
}

/// Does nothing.
pub(crate) fn say_ready() {}
