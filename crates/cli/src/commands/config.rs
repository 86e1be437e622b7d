//! `motley config`: what is set besides the command line, and where; a file with every key.

use crate::args::{Config, Global, Motley};
use crate::config::{self, Settings, all_flags, is_settable, variable_of};
use crate::files::write_whole;
use crate::page::{facts, width_of};
use crate::terminal::{note, print};
use anyhow::{Result, ensure};
use clap::{Arg, Command, CommandFactory};
use serde::Serialize;
use std::collections::BTreeMap;

/// Keys whose values are nobody else's business.
const SECRET: [&str; 1] = ["api-key"];

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Config, columns: Option<u16>) -> Result<()> {
    if args.init {
        return init();
    }
    let report = Report::gather()?;
    let text = match global.json {
        true => serde_json::to_string_pretty(&report)?,
        false => report.render(width_of(columns)),
    };
    print(global.json, &text)
}

#[derive(Serialize)]
struct Report {
    file: String,
    exists: bool,
    /// What the file says.
    settings: toml::Table,
    /// `MOTLEY_…` that are set.
    variables: BTreeMap<String, String>,
}

impl Report {
    fn gather() -> Result<Self> {
        let settings = Settings::read()?;
        let mut variables = BTreeMap::new();
        for flag in all_flags(&Motley::command()) {
            if let Ok(value) = std::env::var(variable_of(&flag)) {
                let secret = SECRET.contains(&flag.as_str());
                let value = if secret { "(set)".to_owned() } else { value };
                variables.insert(variable_of(&flag), value);
            }
        }
        let mut table = settings.table;
        hide_secrets(&mut table);
        let exists = settings.path.exists();
        Ok(Self { file: settings.path.display().to_string(), exists, settings: table, variables })
    }

    fn render(&self, width: u16) -> String {
        let file = match self.exists {
            true => self.file.clone(),
            false => format!("{} (not there; --init writes it)", self.file),
        };
        let said = |empty: bool, text: String| if empty { "nothing".to_owned() } else { text };
        let each = self.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let variables = each.collect::<Vec<_>>().join("\n");
        facts(
            &[
                ("File", file),
                ("Sets", said(self.settings.is_empty(), self.settings.to_string().trim().into())),
                ("Variables", said(self.variables.is_empty(), variables)),
                ("Order", "what is typed, then variables, then the file, then defaults".into()),
            ],
            width,
        )
    }
}

fn hide_secrets(table: &mut toml::Table) {
    for (key, value) in table.iter_mut() {
        match value {
            toml::Value::Table(inner) => hide_secrets(inner),
            _ if SECRET.contains(&key.replace('_', "-").as_str()) => *value = "(set)".into(),
            _ => {}
        }
    }
}

fn init() -> Result<()> {
    let path = config::path()?;
    ensure!(!path.exists(), "{} is there already; --init overwrites nothing", path.display());
    write_whole(&path, &template())?;
    note(&format!("every key is in {}, commented out", path.display()));
    Ok(())
}

/// Every key of every command as a comment.
fn template() -> String {
    let mut text =
        "# Defaults of motley's flags. A key before the first [command] holds for every\n\
                    # command that has the flag. What is typed, and MOTLEY_… variables, win.\n"
            .to_owned();
    let root = Motley::command();
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        section(command, command.get_name(), &mut text);
    }
    text
}

fn section(command: &Command, path: &str, text: &mut String) {
    let args: Vec<&Arg> = command.get_arguments().filter(|arg| is_settable(arg)).collect();
    if !args.is_empty() {
        *text += &format!("\n# [{path}]\n");
    }
    for arg in args {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let default = arg.get_default_values().first().map(|value| value.to_string_lossy());
        let value = default.map_or("…".to_owned(), |value| value.into_owned());
        *text += &format!("# {} = {value}    # {help}\n", arg.get_long().unwrap_or_default());
    }
    for inner in command.get_subcommands() {
        section(inner, &format!("{path}.{}", inner.get_name()), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_names_every_flag_and_sets_nothing() {
        let text = template();
        assert!(text.contains("# [serve]\n") && text.contains("# port = 8080 "), "{text}");
        assert!(text.contains("# [trace.record]\n"));
        assert_eq!(text.parse::<toml::Table>().unwrap(), toml::Table::new());
    }

    #[test]
    fn a_key_is_not_shown() {
        let mut table: toml::Table = "[serve]\napi_key = \"x\"\nport = 1".parse().unwrap();
        hide_secrets(&mut table);
        assert!(!table.to_string().contains("\"x\""));
        assert!(table.to_string().contains("port = 1"));
    }
}
