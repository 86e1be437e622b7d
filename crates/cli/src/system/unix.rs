//! Unix: SIGTERM.

use tokio::signal::unix::{SignalKind, signal};

/// Done at the first Ctrl-C or SIGTERM.
pub(crate) async fn told_to_stop() {
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}

/// CPU time of all threads so far.
#[cfg(feature = "npu")]
pub(crate) fn process_cpu() -> anyhow::Result<std::time::Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Ok(std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
