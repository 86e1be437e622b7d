//! Linux: resource limits, the parent's death, and systemd.

use super::ProcessLimits;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// Limits this process, to its parent's life as well; it leaves no core file.
pub(crate) fn limit_self(limits: ProcessLimits) -> anyhow::Result<()> {
    let wanted = [
        (Resource::As, limits.address_bytes),
        (Resource::Cpu, limits.processor_s),
        (Resource::Core, 0),
    ];
    for (resource, most) in wanted {
        let Rlimit { maximum, .. } = getrlimit(resource);
        let most = Some(maximum.map_or(most, |maximum| maximum.min(most)));
        setrlimit(resource, Rlimit { current: most, maximum })?;
    }
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// Tells a service manager that waits for it that clients are listened to.
pub(crate) fn say_ready() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!("the service manager does not hear that the server is ready: {error}");
    }
}
