//! Windows: Ctrl-C.

/// Done at the first Ctrl-C.
pub(crate) async fn told_to_stop() {
    drop(tokio::signal::ctrl_c().await);
}

/// Says that nobody reads it.
#[cfg(feature = "npu")]
pub(crate) fn process_cpu() -> anyhow::Result<std::time::Duration> {
    anyhow::bail!("processor time is not read on this system")
}
