//! `motley pull`: says how a model would run here, then fetches it. Finding and fetching are
//! `pulling`'s.

use crate::args::{Global, Pull};
use crate::page::width_of;
use crate::pulling::{Announcement, Found, Hub};
use crate::terminal::{print, print_page};
use anyhow::{Result, bail};
use motley_hub::ModelName;
use motley_plan::Outputs;
use std::io::Write;

/// Runs the command.
pub(crate) fn run(global: &Global, pull: &Pull, columns: Option<u16>) -> Result<()> {
    let name = ModelName::parse(&pull.name)?;
    let hub = Hub::of_environment()?;
    let found = Found::new(&hub, &name, &pull.sha256, pull.wishes.memory)?;
    let announcement = Announcement::of(&found, &pull.wishes.asked(Outputs::One))?;
    if !global.json {
        print_page(&announcement.page(width_of(columns)))?;
        std::io::stdout().flush()?;
    }
    let announcement = match pull.dry_run {
        true => announcement,
        false => {
            if let Some(why) = announcement.why_not().filter(|_| !pull.anyway) {
                bail!("{} does not run here: {why} (--anyway fetches it)", found.name());
            }
            announcement.with(&found.fetch(global.json)?)
        }
    };
    match global.json {
        true => print(true, &serde_json::to_string_pretty(&announcement)?),
        false => Ok(()),
    }
}
