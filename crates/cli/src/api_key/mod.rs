//! Who may use a server: one key for all (`one`), or a file of keys (`several`).

mod one;
mod several;

use crate::args::SafetyArgs;
use anyhow::Result;
use motley_server::ApiKey;
use one::{checked, of_file};

/// The keys of which clients must send one; none when none was asked for.
pub(crate) fn read(safety: &SafetyArgs) -> Result<Vec<ApiKey>> {
    let key = match (&safety.api_keys, &safety.api_key, &safety.api_key_file) {
        (Some(path), _, _) => return several::read(path),
        (None, None, None) => return Ok(Vec::new()),
        (None, Some(key), _) => checked(key, "--api-key (or MOTLEY_API_KEY)")?,
        (None, None, Some(path)) => of_file(path)?,
    };
    Ok(vec![ApiKey { key, terms: None }])
}
