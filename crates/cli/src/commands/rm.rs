//! `motley rm`: removes what was downloaded, after saying what that frees and asking.

use crate::args::{Global, Rm};
use crate::terminal::{print_json, print_page};
use anyhow::{Result, bail};
use motley_hub::{ModelName, Removal, Settings, removal};
use motley_model::format_bytes;
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};

/// Runs the command.
pub(crate) fn run(global: &Global, rm: &Rm) -> Result<()> {
    let name = ModelName::parse(&rm.name)?;
    let removal = removal(&Settings::of_environment()?, &name)?;
    if !rm.yes && !confirmed(&removal)? {
        bail!("nothing was removed");
    }
    removal.run()?;
    let Removal { names, freed_bytes, shared_bytes, .. } = &removal;
    match global.json {
        true => {
            let report = json!({
                "removed": names, "freed_bytes": freed_bytes, "shared_bytes": shared_bytes,
            });
            print_json(&report.to_string())
        }
        false => print_page(&format!("Removed {}.", words(&removal))),
    }
}

/// `a, b: 18.6 GiB freed, 1.0 GiB stay for others that link to it`.
fn words(removal: &Removal) -> String {
    let shared = match removal.shared_bytes {
        0 => String::new(),
        bytes => format!("; {} stay, because other files link to them", format_bytes(bytes)),
    };
    let freed = format_bytes(removal.freed_bytes);
    format!("{} ({freed}{shared})", removal.names.join(", "))
}

fn confirmed(removal: &Removal) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("this would remove {}; --yes says so without a terminal", words(removal));
    }
    let mut asked = std::io::stderr().lock();
    write!(asked, "Remove {}? [y/N] ", crate::terminal::escaped(&words(removal)))?;
    asked.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
