//! Every flag of every command with its variable, and with the file's value as its default: clap
//! parses and refuses them as if they were typed.

use super::file::{Settings, as_typed};
use anyhow::{Context, Result, bail};
use clap::builder::FalseyValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::collections::BTreeSet;
use std::fmt;
use toml::{Table, Value};

/// Flags that are never set but by typing them.
const TYPED_ONLY: [&str; 2] = ["help", "version"];
/// Flags of single commands that mean something else elsewhere: those are typed too, so that a value
/// meant for the others does not reach them.
const OTHER_MEANING: [(&str, &str); 3] =
    [("worker", "experts"), ("import", "experts"), ("summary", "experts")];

/// A flag that was set without being typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) flag: String,
    /// `MOTLEY_…` or the file's name.
    pub(crate) from: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "--{} ({})", self.flag, self.from)
    }
}

/// The variable of `--flag`.
pub(crate) fn variable_of(flag: &str) -> String {
    format!("MOTLEY_{}", flag.replace('-', "_").to_uppercase())
}

/// `command` with a variable for every flag, and the defaults of `settings`.
pub(crate) fn with_settings(command: Command, settings: &Settings) -> Result<Command> {
    let name = || format!("{}: see `motley config --init`", settings.path.display());
    let (tables, general) = split(settings.table.clone());
    check_keys(&general, &command).with_context(name)?;
    extended(command, &general, &tables).with_context(name)
}

/// Flags of `matches` and of the command in it that were not typed.
pub(super) fn origins(command: &Command, matches: &ArgMatches) -> Vec<Origin> {
    let mut found = Vec::new();
    for arg in command.get_arguments().filter(|arg| is_settable(arg)) {
        let flag = arg.get_long().unwrap_or_default();
        let from = match matches.value_source(arg.get_id().as_str()) {
            Some(ValueSource::EnvVariable) => variable_of(flag),
            Some(ValueSource::DefaultValue) if is_from_file(arg) => "config.toml".to_owned(),
            _ => continue,
        };
        found.push(Origin { flag: flag.to_owned(), from });
    }
    if let Some((name, inner)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        found.extend(origins(command, inner));
    }
    found.dedup();
    found
}

/// Whether the default of a flag is the file's: those are marked by hiding them in help.
fn is_from_file(arg: &Arg) -> bool {
    arg.is_hide_default_value_set()
}

/// Whether a flag can be set without typing it.
pub(crate) fn is_settable(arg: &Arg) -> bool {
    arg.get_long().is_some_and(|long| !TYPED_ONLY.contains(&long))
}

/// Whether a flag of `command` can be.
fn is_settable_in(command: &str, arg: &Arg) -> bool {
    let long = arg.get_long().unwrap_or_default();
    is_settable(arg) && !OTHER_MEANING.contains(&(command, long))
}

/// Flags that can be set, of `command` and all commands below it.
pub(crate) fn all_flags(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter(|arg| is_settable_in(command.get_name(), arg));
    let own = own.filter_map(|arg| arg.get_long().map(str::to_owned));
    own.chain(command.get_subcommands().flat_map(all_flags)).collect()
}

/// Tables, and what is none.
fn split(table: Table) -> (Table, Table) {
    table.into_iter().partition(|(_, value)| value.is_table())
}

/// Refuses keys that no flag of `command`, or below it, is called by.
fn check_keys(keys: &Table, command: &Command) -> Result<()> {
    let known = all_flags(command);
    match keys.keys().find(|key| !known.contains(&flag_of(key))) {
        Some(key) => Err(unknown(key, &known)),
        None => Ok(()),
    }
}

/// Keys may be written with `_` too.
fn flag_of(key: &str) -> String {
    key.replace('_', "-")
}

fn unknown(key: &str, known: &BTreeSet<String>) -> anyhow::Error {
    let near = known.iter().find(|flag| {
        let (flag, key) = (flag.as_str(), flag_of(key));
        flag.starts_with(&key) || key.starts_with(flag)
    });
    let hint = near.map_or(String::new(), |flag| format!(" (did you mean `{flag}`?)"));
    anyhow::anyhow!("no flag is called `{key}`{hint}")
}

/// `own` holds values of this command's flags, `tables` those of commands below.
fn extended(mut command: Command, own: &Table, tables: &Table) -> Result<Command> {
    let values = |flag: &str| own.iter().find(|(key, _)| flag_of(key) == flag);
    let mut wrong = None;
    let called = command.get_name().to_owned();
    let extended = |arg: Arg| match is_settable_in(&called, &arg) {
        true => extended_arg(arg, &values),
        false => Ok(arg),
    };
    command = command.mut_args(|arg| match extended(arg.clone()) {
        Ok(arg) => arg,
        Err(error) => {
            wrong = Some(error);
            arg
        }
    });
    if let Some(error) = wrong {
        return Err(error);
    }
    let names: Vec<String> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    if let Some(key) = tables.keys().find(|key| !names.contains(key)) {
        bail!("no command is called `{key}`");
    }
    for name in names {
        let inner = command.find_subcommand(&name).cloned().unwrap_or_default();
        let (own_tables, own) = below(&inner, own, tables.get(&name))?;
        let inner = self::extended(inner, &own, &own_tables)?;
        command = command.mut_subcommand(&name, |_| inner);
    }
    Ok(command)
}

/// Tables and values for `command`: those of its table before those for all.
fn below(command: &Command, general: &Table, table: Option<&Value>) -> Result<(Table, Table)> {
    let table = table.and_then(Value::as_table).cloned().unwrap_or_default();
    let (tables, special) = split(table);
    check_keys(&special, command).with_context(|| format!("[{}]", command.get_name()))?;
    let mut own: Table = general.clone();
    own.retain(|key, _| !special.keys().any(|other| flag_of(other) == flag_of(key)));
    own.extend(special);
    Ok((tables, own))
}

fn extended_arg<'a>(
    arg: Arg,
    values: &impl Fn(&str) -> Option<(&'a String, &'a Value)>,
) -> Result<Arg> {
    let long = arg.get_long().unwrap_or_default().to_owned();
    let mut arg = match arg.get_env() {
        Some(_) => arg.hide_env(true),
        None => arg.env(variable_of(&long)).hide_env(true),
    };
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        arg = arg.value_parser(FalseyValueParser::new());
    }
    match values(&long) {
        None => Ok(arg),
        Some((key, value)) => {
            Ok(arg.default_values(as_typed(key, value)?).hide_default_value(true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command as Typed, Motley};
    use clap::{CommandFactory, FromArgMatches};

    fn parse(file: &str, args: &[&str]) -> Result<(Motley, Vec<Origin>)> {
        let settings = Settings::parse("config.toml".into(), file)?;
        let command = with_settings(Motley::command(), &settings)?;
        let matches = command.clone().try_get_matches_from([&["motley"], args].concat())?;
        let origins = origins(&command, &matches);
        Ok((Motley::from_arg_matches(&matches)?, origins))
    }

    #[test]
    fn clap_finds_nothing_wrong_with_the_flags() {
        Motley::command().debug_assert();
        let settings = Settings::default();
        with_settings(Motley::command(), &settings).unwrap().debug_assert();
    }

    #[test]
    fn a_file_gives_defaults_and_typing_wins() {
        let file = "memory = \"12G\"\n[run]\ntokens = 7\nno_record = true\n[serve]\nport = 9000";
        let (motley, origins) = parse(file, &["run", "m.gguf"]).unwrap();
        let Typed::Run(run) = motley.command else { panic!() };
        assert_eq!((run.tokens, run.no_record), (Some(7), true));
        assert_eq!(run.load.wishes.memory, Some(12 << 30));
        let flags: Vec<&str> = origins.iter().map(|origin| origin.flag.as_str()).collect();
        assert_eq!(flags, ["tokens", "no-record", "memory"]);
        let (motley, _) = parse(file, &["run", "m.gguf", "-n", "3", "--memory", "1G"]).unwrap();
        let Typed::Run(run) = motley.command else { panic!() };
        assert_eq!((run.tokens, run.load.wishes.memory), (Some(3), Some(1 << 30)));
        let Typed::Serve(serve) = parse(file, &["serve", "m"]).unwrap().0.command else { panic!() };
        assert_eq!(serve.port, 9000);
    }

    #[test]
    fn a_number_of_experts_for_answers_is_no_workers_share() {
        let (motley, _) = parse("experts = 3", &["run", "m.gguf"]).unwrap();
        let Typed::Run(run) = motley.command else { panic!() };
        assert_eq!(run.load.approximate.experts, Some(3));
        let (motley, origins) = parse("experts = 3", &["worker", "m.gguf"]).unwrap();
        let Typed::Worker(worker) = motley.command else { panic!() };
        assert_eq!((worker.experts, origins.len()), (None, 0));
        let said = parse("[worker]\nexperts = 3", &["worker", "m.gguf"]).unwrap_err();
        assert!(format!("{said:#}").contains("`experts`"), "{said:#}");
    }

    #[test]
    fn what_no_flag_is_called_is_refused_with_its_name() {
        let error = |file: &str| format!("{:#}", parse(file, &["doctor"]).unwrap_err());
        assert!(
            error("mem = 1").contains("`mem` (did you mean `memory`?)"),
            "{}",
            error("mem = 1")
        );
        assert!(error("[serv]\nport = 1").contains("no command is called `serv`"));
        assert!(error("[run]\nport = 1").contains("`port`"), "{}", error("[run]\nport = 1"));
        assert!(error("memory = { a = 1 }").contains("no command is called `memory`"));
        assert!(error("memory = 1979-05-27").contains("`memory`"));
        assert!(error("memory =").contains("no TOML"));
    }

    #[test]
    fn a_value_that_is_none_is_refused_by_clap() {
        let said = parse("[serve]\nport = 99999", &["serve", "m"]).unwrap_err().to_string();
        assert!(said.contains("99999") && said.contains("--port"), "{said}");
    }

    #[test]
    fn variables_are_named_like_flags() {
        assert_eq!(variable_of("no-record"), "MOTLEY_NO_RECORD");
    }
}
