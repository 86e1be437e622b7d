//! The reference of commands: each command's own help, with the groups of flags that several
//! commands have in the same words written once, at the end.

use super::program::Program;
use anyhow::Result;
use std::fmt::Write as _;

const HEAD: &str = "\
<!-- Made by `cargo xtask docs` from `motley --help`; edits are lost. -->

# Commands and flags

What `motley --help` and `motley COMMAND --help` say, for a build without features. Exit codes: 0
when all went well, 1 for an error (one line on stderr says which), 2 for a command line that was
not understood. The [guide](../guide/tasks.md) says which of these you need for what.

";

/// What a command says of itself, cut where a line without indentation ends in a colon.
struct Help {
    words: Vec<String>,
    head: String,
    /// Title with its colon, and the lines below it.
    groups: Vec<(String, String)>,
}

/// The page.
pub(super) fn page(program: &Program) -> Result<String> {
    let mut helps = Vec::new();
    collect(program, Vec::new(), &mut helps)?;
    Ok(render(&helps))
}

fn collect(program: &Program, words: Vec<String>, into: &mut Vec<Help>) -> Result<()> {
    let help = Help::parse(words.clone(), &program.help(&words)?);
    let below = help.subcommands();
    into.push(help);
    for name in below {
        let words = words.iter().cloned().chain([name]).collect();
        collect(program, words, into)?;
    }
    Ok(())
}

impl Help {
    fn parse(words: Vec<String>, text: &str) -> Self {
        let mut help = Self { words, head: String::new(), groups: Vec::new() };
        for line in text.lines() {
            let titled = line.ends_with(':') && !line.starts_with(' ');
            if titled {
                help.groups.push((line.to_owned(), String::new()));
                continue;
            }
            let into = help.groups.last_mut().map_or(&mut help.head, |(_, lines)| lines);
            into.push_str(line.trim_end());
            into.push('\n');
        }
        help
    }

    /// Names listed under `Commands:`, without `help`.
    fn subcommands(&self) -> Vec<String> {
        let commands = self.groups.iter().find(|(title, _)| title == "Commands:");
        let lines = commands.map_or("", |(_, lines)| lines).lines();
        let names = lines.filter_map(|line| {
            let rest = line.strip_prefix("  ")?;
            (!rest.starts_with(' ')).then(|| rest.split(' ').next())?
        });
        names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
    }

    fn title(&self) -> String {
        ["motley"]
            .into_iter()
            .chain(self.words.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn render(helps: &[Help]) -> String {
    let all: Vec<&(String, String)> = helps.iter().flat_map(|help| &help.groups).collect();
    let is_shared = |group: &(String, String)| {
        !matches!(&*group.0, "Options:" | "Commands:" | "Arguments:")
            && all.iter().filter(|other| ***other == *group).count() > 1
    };
    let mut page = HEAD.to_owned();
    let mut shared: Vec<&(String, String)> = Vec::new();
    for help in helps {
        let _ = write!(page, "## {}\n\n```text\n{}", help.title(), help.head.trim_end());
        let mut elsewhere = Vec::new();
        for group in &help.groups {
            if is_shared(group) {
                if !shared.contains(&group) {
                    shared.push(group);
                }
                let at = shared.iter().position(|other| *other == group).unwrap_or_default();
                elsewhere.push(link(&shared, at));
            } else {
                let _ = write!(page, "\n\n{}\n{}", group.0, group.1.trim_end());
            }
        }
        page += "\n```\n\n";
        if !elsewhere.is_empty() {
            let _ = write!(page, "Also takes: {}.\n\n", elsewhere.join(", "));
        }
    }
    for (at, (_, lines)) in shared.iter().enumerate() {
        let _ = write!(page, "## {}\n\n```text\n{}\n```\n\n", name(&shared, at), lines.trim_end());
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

/// Heading of a shared group; one whose words differ between commands is numbered.
fn name(shared: &[&(String, String)], at: usize) -> String {
    let title = &shared[at].0;
    let before = shared[..at].iter().filter(|(other, _)| other == title).count();
    let title = title.trim_end_matches(':').to_lowercase();
    match before {
        0 => format!("Flags: {title}"),
        more => format!("Flags: {title} ({})", more + 1),
    }
}

fn link(shared: &[&(String, String)], at: usize) -> String {
    let name = name(shared, at);
    format!("[{}](#{})", &name["Flags: ".len()..], super::markdown::anchor(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "Generate text\n\nUsage: motley run <MODEL>\n\nOptions:\n  -p <PROMPT>\n\nLoading:\n  --memory <SIZE>\n";

    #[test]
    fn groups_in_the_same_words_are_written_once() {
        let helps = [Help::parse(vec!["run".into()], RUN), Help::parse(vec!["serve".into()], RUN)];
        let page = render(&helps);
        assert_eq!(page.matches("--memory <SIZE>").count(), 1, "{page}");
        assert_eq!(page.matches("-p <PROMPT>").count(), 2, "{page}");
        assert_eq!(page.matches("Also takes: [loading](#flags-loading).").count(), 2, "{page}");
    }

    #[test]
    fn commands_below_are_found() {
        let text = "Usage: motley\n\nCommands:\n  run    Generate\n         text\n  help   Print\n";
        assert_eq!(Help::parse(Vec::new(), text).subcommands(), ["run"]);
    }
}
