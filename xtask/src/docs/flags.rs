//! Rule: a `--flag` that the README or the guide names is one some command of `motley` has.

use super::commands::shown;
use super::markdown::Page;
use crate::tidy::{Finding, Tree};
use std::collections::BTreeSet;

/// Flags of others, and of builds with features; and those written about before they are there. One
/// that `motley` has, or no page names any more, is a finding.
const NOT_OURS: &[(&str, &str)] = &[
    ("--against", "cargo xtask load"),
    ("--features", "cargo"),
    ("--fit", "llama.cpp"),
    ("--n-cpu-moe", "llama.cpp"),
    ("--no-mmap", "llama.cpp"),
    ("--no-repack", "llama.cpp"),
    ("--npu", "builds with feature npu"),
    ("--repack", "llama.cpp"),
];

/// Flags nobody has. `reference` is the page of commands, which names all there are.
pub(super) fn check(tree: &Tree, reference: &str) -> Vec<Finding> {
    check_with(tree, reference, NOT_OURS)
}

fn check_with(tree: &Tree, reference: &str, not_ours: &[(&str, &str)]) -> Vec<Finding> {
    let ours: BTreeSet<&str> = reference.split_whitespace().filter_map(flag).collect();
    let (mut findings, mut named) = (Vec::new(), BTreeSet::new());
    for file in shown(tree) {
        for (line, code) in Page::parse(&file.text).code {
            let Some(flag) = flag(&code) else { continue };
            let other = not_ours.iter().find(|(name, _)| *name == flag);
            if let Some((name, _)) = other.filter(|_| !ours.contains(flag)) {
                named.insert(*name);
            } else if !ours.contains(flag) {
                findings.push(Finding::at(&file.path, line, format!("no command has `{flag}`")));
            }
        }
    }
    let idle = not_ours.iter().filter(|(name, _)| !named.contains(name));
    findings.extend(idle.map(|(name, whose)| {
        Finding::file("xtask/src/docs/flags.rs", format!("`{name}` ({whose}) is not needed"))
    }));
    findings
}

/// The long flag a piece of code begins with.
fn flag(code: &str) -> Option<&str> {
    let name = code.strip_prefix("--")?;
    let end = name.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
    let flag = &code[..2 + end.unwrap_or(name.len())];
    (flag.len() > 2).then_some(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str, not_ours: &[(&str, &str)]) -> Vec<String> {
        let tree =
            Tree::of_pairs(&[("docs/a.md", page), ("docs/decisions/0001-a.md", "`--old`\n")]);
        let reference =
            "      --memory <SIZE>\n          Ceiling; see --top-k, --engine[=<ENGINE>]\n";
        check_with(&tree, reference, not_ours).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn flags_that_some_command_has_pass() {
        assert!(found("`--memory 4G`, `--top-k`, `--engine`\n", &[]).is_empty());
    }

    #[test]
    fn others_are_found_unless_they_are_known_to_be_others() {
        let page = "`--momery`\n\n`--features vulkan`\n";
        assert_eq!(
            found(page, &[("--features", "cargo")]),
            ["docs/a.md:1: no command has `--momery`"]
        );
        let idle = "xtask/src/docs/flags.rs: `--memory` (awaited) is not needed";
        assert_eq!(found("`--memory`\n", &[("--memory", "awaited")]), [idle]);
    }
}
