//! `motley man`: the manual in the format of `man`, one page per command. Hidden commands have none.

use crate::args::{Man, Motley};
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::fs;
use std::io::Write;

/// Runs the command.
pub(crate) fn run(args: &Man) -> Result<()> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Motley::command()).render(&mut page)?;
        return Ok(std::io::stdout().write_all(&page)?);
    };
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Motley::command(), folder))
        .with_context(|| format!("{}: the manual cannot be written", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_has_a_page_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        run(&Man { folder: Some(folder.path().to_owned()) }).unwrap();
        let page = |name: &str| fs::read_to_string(folder.path().join(name));
        assert!(page("motley.1").unwrap().contains("motley\\-run(1)"));
        assert!(page("motley-run.1").unwrap().contains("GGUF file"));
        assert!(page("motley-trace-record.1").is_ok());
        assert!(page("motley-measure-job.1").is_err());
        assert!(!page("motley.1").unwrap().contains("measure-job"));
    }
}
