//! One run of the program as a process of its own, and the cold page cache before it.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// `motley measure-job` with its job; ends when it does.
pub(crate) fn worker(mut command: Command, job: &Value) -> Result<Output> {
    let mut child =
        command.arg("measure-job").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().context("piped")?.write_all(job.to_string().as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// Everything that can be is forgotten, so that every run begins cold.
pub(crate) fn drop_page_cache() -> Result<()> {
    let synced = Command::new("sync").status()?.success();
    if !synced {
        bail!("sync failed");
    }
    let path = "/proc/sys/vm/drop_caches";
    std::fs::write(path, "3").with_context(|| format!("cannot write {path}; are you root?"))
}
