//! Rule: every link and picture of every page leads to a file that is there, and to a heading of
//! it. Pages of the book link to pages of the book, else the link is dead there. Addresses of
//! other sites are not asked for: this works without a network. Texts beside source are parts of
//! pages that a program writes, and are checked there.

use super::markdown::{FOLDER, Page};
use super::summary::PATH as SUMMARY;
use crate::tidy::{Finding, Tree};
use std::collections::BTreeMap;
use std::path::Path;

/// Links that lead nowhere.
pub(super) fn check(tree: &Tree, root: &Path) -> Vec<Finding> {
    let pages: BTreeMap<&str, Page> = tree
        .files()
        .iter()
        .filter(|file| file.path.ends_with(".md") && !file.path.contains("/src/"))
        .map(|file| (&*file.path, Page::parse(&file.text)))
        .collect();
    let mut findings = Vec::new();
    for (path, page) in &pages {
        for (line, to) in &page.links {
            let there = |target: &str| tree.file(target).is_some() || root.join(target).exists();
            if let Some(message) = complaint(path, to, &pages, there) {
                findings.push(Finding::at(path, *line, message));
            }
        }
    }
    findings
}

fn complaint(
    from: &str,
    to: &str,
    pages: &BTreeMap<&str, Page>,
    there: impl Fn(&str) -> bool,
) -> Option<String> {
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = to.split_once('#').unwrap_or((to, ""));
    let Some(target) = resolve(from, file) else {
        return Some(format!("`{to}` leads out of the repository"));
    };
    if !there(&target) {
        return Some(format!("`{to}`: no file `{target}`"));
    }
    if from.starts_with(FOLDER) && !target.starts_with(FOLDER) {
        return Some(format!("`{to}` leads out of the book: name the file, or add a page"));
    }
    let folders = target.ends_with("/README.md") && from != SUMMARY && from != target;
    if from.starts_with(FOLDER) && folders {
        return Some(format!("`{to}` is `index.html` in the book: link to a page of another name"));
    }
    let page = pages.get(&*target);
    if from.starts_with(FOLDER) && page.is_none() && is_folder(&target) {
        return Some(format!("`{to}` is a folder: link to its page"));
    }
    let known = page.is_none_or(|page| page.anchors.iter().any(|one| one == anchor));
    (!anchor.is_empty() && !known).then(|| format!("`{to}`: `{target}` has no heading `#{anchor}`"))
}

/// Folders have no ending.
fn is_folder(target: &str) -> bool {
    !target.rsplit('/').next().is_some_and(|name| name.contains('.'))
}

/// A path from the root, of one that is relative to the page; none above the root.
fn resolve(from: &str, to: &str) -> Option<String> {
    if to.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(pairs: &[(&str, &str)]) -> Vec<String> {
        let nowhere = Path::new("no/such/folder");
        check(&Tree::of_pairs(pairs), nowhere).into_iter().map(|one| one.to_string()).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "[a](b.md#two-words) [c](../README.md) [d](https://x.org/y) [e](#f)\n\n# F\n";
        assert_eq!(
            findings(&[("a/a.md", text), ("a/b.md", "## Two words\n"), ("README.md", "")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn files_headings_and_pictures_that_are_not_there_are_found() {
        let found = findings(&[("a.md", "[x](b.md)\n\n![y](c.png)\n\n[z](#no)\n")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[1].starts_with("a.md:3: "), "{found:?}");
    }

    #[test]
    fn a_page_of_the_book_links_to_pages_of_the_book() {
        let found = findings(&[("docs/a.md", "[x](../README.md)\n"), ("README.md", "")]);
        assert!(found[0].contains("out of the book"), "{found:?}");
        let found = findings(&[("docs/a.md", "[x](b/README.md)\n"), ("docs/b/README.md", "")]);
        assert!(found[0].contains("index.html"), "{found:?}");
    }
}
