//! `motley openapi`: the server's own document, without a server. Loads no model.

use anyhow::Result;
use std::io::Write;

/// Prints what `/openapi.json` answers.
pub(crate) fn run() -> Result<()> {
    writeln!(std::io::stdout(), "{}", motley_server::openapi_json())?;
    Ok(())
}
