//! Rule: a note of work left over names its issue, as in `#12`; git knows the rest.

use super::{Finding, Tree};

/// The marks, spelled so that this file does not find itself.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Lines of any text file with a mark and no issue number.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(mark) = MARKS.iter().find(|mark| has_word(line, mark))
                && !names_an_issue(line)
            {
                let message = format!("{mark} without an issue number (`#12`)");
                findings.push(Finding::at(&file.path, number + 1, message));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word) && !line[at + word.len()..].starts_with(is_word)
    })
}

fn names_an_issue(line: &str) -> bool {
    line.match_indices('#').any(|(at, _)| line[at + 1..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(line: &str) -> usize {
        check(&Tree::of_pairs(&[("a.rs", &format!("//! A.\n{line}\n"))])).len()
    }

    #[test]
    fn a_mark_with_its_issue_passes() {
        assert_eq!(findings(&format!("// {} #12: later", MARKS[0])), 0);
    }

    #[test]
    fn a_bare_mark_is_found() {
        for mark in MARKS {
            assert_eq!(findings(&format!("// {mark}: later")), 1);
            assert_eq!(findings(&format!("// {mark} (#soon)")), 1);
        }
    }

    #[test]
    fn a_mark_inside_a_word_is_none() {
        assert_eq!(findings(&format!("MY_{}S", MARKS[0])), 0);
    }
}
