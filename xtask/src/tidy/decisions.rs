//! Rule: decisions are numbered once each, an index lists them all, and who refers to one by its
//! number refers to one that is there.

use super::{Finding, Tree};

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";
const DIGITS: usize = 4;

/// Numbers given twice, headings with another number, decisions the index does not list, lines
/// of the index without a decision, and references to none.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let decisions: Vec<Decision<'_>> =
        tree.files().iter().filter_map(|file| Decision::of(&file.path, &file.text)).collect();
    let mut findings: Vec<Finding> = Vec::new();
    for (at, decision) in decisions.iter().enumerate() {
        findings.extend(decision.complaint(&decisions[..at]));
    }
    findings.extend(check_index(tree, &decisions));
    findings.extend(check_references(tree, &decisions));
    findings
}

struct Decision<'a> {
    path: &'a str,
    /// File name.
    name: &'a str,
    number: &'a str,
    text: &'a str,
}

impl<'a> Decision<'a> {
    fn of(path: &'a str, text: &'a str) -> Option<Self> {
        let name = path.strip_prefix(FOLDER).filter(|name| name.ends_with(".md"))?;
        let number = leading_number(name)?;
        Some(Self { path, name, number, text })
    }

    fn complaint(&self, before: &[Self]) -> Option<Finding> {
        if let Some(other) = before.iter().find(|other| other.number == self.number) {
            let message = format!("{} is the number of `{}` already", self.number, other.name);
            return Some(Finding::file(self.path, message));
        }
        let heading = format!("# {}: ", self.number);
        let begins = self.text.starts_with(&heading);
        (!begins).then(|| Finding::at(self.path, 1, format!("begin with `{heading}` and a title")))
    }
}

fn check_index(tree: &Tree, decisions: &[Decision<'_>]) -> Vec<Finding> {
    if decisions.is_empty() {
        return Vec::new();
    }
    let text = tree.file(INDEX).map_or("", |file| &file.text);
    let missing = decisions.iter().filter(|decision| !text.contains(decision.name));
    let missing =
        missing.map(|decision| Finding::file(INDEX, format!("lists no `{}`", decision.name)));
    let named = text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, linked(line)?)));
    let unknown = named.filter(|(_, name)| !decisions.iter().any(|one| one.name == *name));
    let unknown = unknown.map(|(at, name)| Finding::at(INDEX, at, format!("no file `{name}`")));
    missing.chain(unknown).collect()
}

/// The file a line of the index links to.
fn linked(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("](")?;
    rest.split_once(')').map(|(name, _)| name)
}

fn check_references(tree: &Tree, decisions: &[Decision<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for (number, line) in file.text.lines().enumerate() {
            let referred = line
                .match_indices("decisions/")
                .filter_map(|(at, mark)| leading_number(&line[at + mark.len()..]));
            for unknown in referred.filter(|one| !decisions.iter().any(|d| d.number == *one)) {
                let message = format!("unknown decision {unknown}");
                findings.push(Finding::at(&file.path, number + 1, message));
            }
        }
    }
    findings
}

/// Four digits at the beginning.
fn leading_number(text: &str) -> Option<&str> {
    let number = text.get(..DIGITS)?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("{FOLDER}{name}"), *text)).collect();
        let pairs: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        check(&Tree::of_pairs(&pairs)).into_iter().map(|finding| finding.message).collect()
    }

    const A: (&str, &str) = ("0001-a.md", "# 0001: a\n");

    #[test]
    fn numbered_once_and_listed_passes() {
        let index = ("README.md", "| [0001](0001-a.md) | a |\n");
        assert_eq!(findings(&[A, index]), Vec::<String>::new());
        assert!(check(&Tree::of_pairs(&[("a.rs", "")])).is_empty());
    }

    #[test]
    fn a_number_given_twice_is_found() {
        let b = ("0001-b.md", "# 0001: b\n");
        let index = ("README.md", "[a](0001-a.md)\n[b](0001-b.md)\n");
        assert_eq!(findings(&[A, b, index]), ["0001 is the number of `0001-a.md` already"]);
    }

    #[test]
    fn the_index_lists_all_and_nothing_else() {
        assert_eq!(findings(&[A]), ["lists no `0001-a.md`"]);
        let index = ("README.md", "[a](0001-a.md)\n[c](0003-c.md)\n");
        assert_eq!(findings(&[A, index]), ["no file `0003-c.md`"]);
    }

    #[test]
    fn headings_and_references_agree_with_the_files() {
        let index = ("README.md", "[a](0001-a.md)\n");
        assert_eq!(findings(&[("0001-a.md", "# 0002: a\n"), index]).len(), 1);
        let reference = format!("see {FOLDER}0009");
        assert_eq!(findings(&[A, index, ("note.txt", &reference)]), ["unknown decision 0009"]);
    }
}
