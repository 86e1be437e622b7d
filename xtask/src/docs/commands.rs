//! Rule: a `motley …` that the README or the guide shows is one that `motley` takes. Pages of
//! research show what was run at the time, and are left alone.

use super::markdown::Page;
use crate::tidy::{Finding, SourceFile, Tree};
use std::collections::BTreeSet;

/// Pages that show commands to a reader, by how their paths begin.
const PAGES: [&str; 2] = ["README.md", "docs/"];
/// Those that keep what was run once, and those that the program says itself.
const LEFT_ALONE: [&str; 4] =
    ["docs/experiments/", "docs/reproduction/", "docs/decisions/", "docs/reference/cli.md"];
/// Words of commands that are written about before they are there. One that no page needs any
/// more is a finding.
const AWAITED: &[&str] = &[];

/// Command lines that are refused, and awaited words nobody waits for.
pub(super) fn check(tree: &Tree, takes: impl Fn(&[String]) -> Result<(), String>) -> Vec<Finding> {
    check_with(tree, takes, AWAITED)
}

fn check_with(
    tree: &Tree,
    takes: impl Fn(&[String]) -> Result<(), String>,
    awaited: &[&str],
) -> Vec<Finding> {
    let (mut findings, mut needed) = (Vec::new(), BTreeSet::<&str>::new());
    for file in shown(tree) {
        for (line, code) in Page::parse(&file.text).code {
            for words in commands(&code) {
                let Err(said) = takes(&words) else { continue };
                let waits: Vec<&&str> =
                    awaited.iter().filter(|word| words.iter().any(|one| one == **word)).collect();
                if waits.is_empty() {
                    let message = format!("`motley {}`: {said}", words.join(" "));
                    findings.push(Finding::at(&file.path, line, message));
                }
                needed.extend(waits);
            }
        }
    }
    let idle = awaited.iter().filter(|word| !needed.contains(*word));
    let path = "xtask/src/docs/commands.rs";
    findings.extend(idle.map(|word| Finding::file(path, format!("`{word}` is awaited no more"))));
    findings
}

/// Pages a reader copies commands from.
pub(super) fn shown(tree: &Tree) -> impl Iterator<Item = &SourceFile> {
    tree.files().iter().filter(|file| {
        file.path.ends_with(".md")
            && PAGES.iter().any(|page| file.path.starts_with(page))
            && !LEFT_ALONE.iter().any(|folder| file.path.starts_with(folder))
    })
}

/// The words behind each `motley` that begins a command in a line of shell.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for mut words in split(line) {
        let skipped = words.iter().position(|word| !is_before(word)).unwrap_or(words.len());
        words.drain(..skipped);
        if words.first().is_some_and(|word| word == "motley") {
            found.push(words.split_off(1));
        }
    }
    found
}

/// What may stand before a program: a prompt, a variable, `sudo`.
fn is_before(word: &str) -> bool {
    let variable = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    variable || matches!(word, "$" | "sudo" | "time")
}

/// Commands of a line, each as words: quotes are taken off, and what comes after `#` or behind
/// `>` and `<` is left out.
fn split(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let (mut word, mut quote, mut begun) = (String::new(), None::<char>, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (None, '#') if !begun => break,
            (None, '|' | ';' | '&') => {
                finish(&mut word, &mut begun, &mut words);
                commands.push(std::mem::take(&mut words));
            }
            (None, c) if c.is_whitespace() => finish(&mut word, &mut begun, &mut words),
            (None, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    finish(&mut word, &mut begun, &mut words);
    commands.push(words);
    commands.into_iter().map(without_redirections).collect()
}

fn finish(word: &mut String, begun: &mut bool, words: &mut Vec<String>) {
    if std::mem::take(begun) {
        words.push(std::mem::take(word));
    }
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match &*word {
            ">" | "<" | ">>" | "2>" => drop(words.next()),
            _ => kept.push(word),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_taken_from_lines_of_shell() {
        let words = |line| commands(line).iter().map(|one| one.join("_")).collect::<Vec<_>>();
        assert_eq!(words("motley run m -p \"Hi there\"   # text"), ["run_m_-p_Hi there"]);
        assert_eq!(words("cat notes.txt | motley run m"), ["run_m"]);
        assert_eq!(words("MOTLEY_MEMORY=4G motley plan m --json > p.json"), ["plan_m_--json"]);
        assert_eq!(words("$ motley doctor; motley list"), ["doctor", "list"]);
        assert!(words("see the motley crew").is_empty() && words("motley-moe").is_empty());
    }

    #[test]
    fn what_is_refused_is_found_unless_it_is_awaited() {
        let tree = Tree::of_pairs(&[
            ("README.md", "    motley run m\n    motley pull m\n"),
            ("docs/decisions/0001-a.md", "`motley old`\n"),
        ]);
        let takes = |words: &[String]| match &*words[0] {
            "run" => Ok(()),
            other => Err(format!("no {other}")),
        };
        let found = check_with(&tree, takes, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&*found[0].path, found[0].line), ("README.md", 2));
        assert!(check_with(&tree, takes, &["pull"]).is_empty());
        assert!(check_with(&tree, takes, &["pull", "rm"])[0].message.contains("`rm`"));
    }
}
