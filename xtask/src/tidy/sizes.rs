//! Rule: functions of at most 70 lines, Rust files of at most 450 (STYLE 13).
//!
//! A function is found by its indentation, which rustfmt guarantees: it ends at the first
//! line that is a closing brace at the depth of its `fn`. Exceptions are listed here, each
//! with its reason; an exception that is no longer needed is a finding too.

use super::lex::code_only;
use super::{Finding, SourceFile, Tree};

/// Longest function, counted from the line of `fn` to its closing brace.
const FN_LINES_MAX: usize = 70;

/// Longest file.
const FILE_LINES_MAX: usize = 450;

/// A thing that is longer than the rule allows, and why that reads better.
struct Exception {
    path: &'static str,
    /// Function name, or empty for the file itself.
    function: &'static str,
    /// Why it is better long.
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

/// Functions and files over the limits, and exceptions that nothing needs.
pub fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, EXCEPTIONS)
}

fn check_with(tree: &Tree, exceptions: &[Exception]) -> Vec<Finding> {
    let found: Vec<Oversize> = tree.rust_files().flat_map(oversizes).collect();
    let excused = |over: &Oversize, exception: &Exception| {
        over.path == exception.path && over.function == exception.function
    };
    let unused = exceptions.iter().filter(|e| !found.iter().any(|over| excused(over, e)));
    let unused = unused.map(|e| {
        let message = format!("exception for `{}` ({}) is not needed", e.function, e.reason);
        Finding::file(e.path, message)
    });
    let over = found.iter().filter(|over| !exceptions.iter().any(|e| excused(over, e)));
    over.map(Oversize::finding).chain(unused).collect()
}

/// One function or file over its limit.
struct Oversize {
    path: String,
    function: String,
    line: usize,
    lines: usize,
}

impl Oversize {
    fn finding(&self) -> Finding {
        let (what, max) = match self.function.as_str() {
            "" => ("file".to_owned(), FILE_LINES_MAX),
            function => (format!("function `{function}`"), FN_LINES_MAX),
        };
        Finding::at(&self.path, self.line, format!("{what} has {} lines, max {max}", self.lines))
    }
}

fn oversizes(file: &SourceFile) -> Vec<Oversize> {
    let over = |function: &str, line, lines| Oversize {
        path: file.path.clone(),
        function: function.to_owned(),
        line,
        lines,
    };
    let code = code_only(&file.text);
    let lines: Vec<&str> = code.lines().collect();
    let mut found: Vec<Oversize> = (0..lines.len())
        .filter_map(|at| Some((at, function_name(lines[at])?, function_lines(&lines[at..]))))
        .filter(|(_, _, count)| *count > FN_LINES_MAX)
        .map(|(at, name, count)| over(name, at + 1, count))
        .collect();
    if lines.len() > FILE_LINES_MAX {
        found.push(over("", 0, lines.len()));
    }
    found
}

/// The name after `fn` when a function item begins on this line of code.
fn function_name(line: &str) -> Option<&str> {
    let words_before = ["pub", "const", "async", "unsafe", "extern", "default"];
    let (before, after) = match line.trim_start().strip_prefix("fn ") {
        Some(after) => ("", after),
        None => line.split_once(" fn ")?,
    };
    let modifier = |word: &str| {
        words_before.iter().any(|known| word.starts_with(known)) || word.ends_with(')')
    };
    let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    (end > 0 && before.split_whitespace().all(modifier)).then(|| &after[..end])
}

/// Lines from the `fn` at `lines[0]` to its end; 1 when it has no body of its own lines.
fn function_lines(lines: &[&str]) -> usize {
    let indent = lines[0].len() - lines[0].trim_start().len();
    if lines[0].trim_end().ends_with(['}', ';']) {
        return 1;
    }
    let is_end = |line: &&str| {
        let at_depth = line.len() > indent && line[..indent].trim().is_empty();
        let rest = if at_depth { line[indent..].trim_end() } else { "" };
        rest == "}" || (rest.starts_with(')') && rest.ends_with(';'))
    };
    lines.iter().position(is_end).map_or(lines.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        let body = "        a();\n".repeat(lines - 2);
        format!("    pub(crate) async fn long<'a>(x: &'a str) {{\n{body}    }}\n")
    }

    fn findings(text: &str, exceptions: &[Exception]) -> Vec<String> {
        let tree = Tree::of_pairs(&[("a.rs", text)]);
        check_with(&tree, exceptions).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn long_functions_are_found_to_the_line() {
        let none: Vec<String> = Vec::new();
        assert_eq!(findings(&function(FN_LINES_MAX), &[]), none);
        let long = format!("//! A.\n{}{}", function(FN_LINES_MAX + 1), function(5));
        assert_eq!(findings(&long, &[]), ["a.rs:2: function `long` has 71 lines, max 70"]);
    }

    #[test]
    fn braces_in_strings_and_declarations_do_not_mislead() {
        let raw =
            "fn long() {\n    let s = r\"\n}\n\";\n".to_owned() + &"    a();\n".repeat(70) + "}\n";
        assert_eq!(findings(&raw, &[]).len(), 1);
        let declared = "trait T {\n    fn f(\n        a: A,\n    );\n".to_owned()
            + &"    const A: u8 = 1;\n".repeat(80)
            + "}\n";
        assert!(findings(&declared, &[]).is_empty());
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(findings(&"a();\n".repeat(FILE_LINES_MAX + 1), &[]).len(), 1);
        assert!(findings(&"a();\n".repeat(FILE_LINES_MAX), &[]).is_empty());
    }

    #[test]
    fn an_exception_excuses_one_thing_and_must_be_needed() {
        let long = function(90);
        let known = |function| [Exception { path: "a.rs", function, reason: "a table" }];
        assert!(findings(&long, &known("long")).is_empty());
        assert_eq!(findings(&long, &known("other")).len(), 2);
        assert!(findings(&function(9), &known("long"))[0].contains("not needed"));
    }
}
