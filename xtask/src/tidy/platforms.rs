//! Rule: what differs by system or processor lives in files of its own, `linux.rs` beside `macos.rs`
//! and `windows.rs`, and the `mod.rs` beside them is the one place that chooses.

use super::lex::code_only;
use super::{Finding, SourceFile, Tree};
use std::collections::BTreeMap;

/// Names of files that are one system's, processor's or C library's own; `portable` is everybody's
/// who has none.
const NAMES: [&str; 11] = [
    "aarch64",
    "files_only",
    "fopencookie",
    "funopen",
    "glibc",
    "linux",
    "macos",
    "portable",
    "unix",
    "windows",
    "x86_64",
];

/// Folders of what is no part of the product: automation runs on Linux, and so do many tests.
const ELSEWHERE: [&str; 5] = ["xtask/", "fuzz/", "crates/testkit/", "/tests/", "/examples/"];

/// Files of Linux alone that are many and have names of their own.
const LINUX: [(&str, &str); 3] = [
    ("crates/host/src/sandbox/calls.rs", "numbers of Linux's calls, which differ by processor"),
    ("crates/host/src/sandbox/paths.rs", "Landlock's rules"),
    ("crates/host/src/sandbox/probe.rs", "what this kernel offers"),
];

/// Words that choose a system or a processor wherever they stand.
const WORDS: [&str; 5] =
    ["target_os", "target_arch", "target_env", "target_family", "target_vendor"];

/// What chooses a system outside the files that may.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files().filter(|file| !may_choose(file)).flat_map(check_file).collect()
}

/// Lines of platform code by the names of its files.
pub fn lines(tree: &Tree) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for file in tree.rust_files().filter(|file| !is_elsewhere(&file.path)) {
        let name = match LINUX.iter().any(|(path, _)| *path == file.path) {
            true => Some("linux"),
            false => own_name(&file.path),
        };
        if let Some(name) = name {
            *lines.entry(name.to_owned()).or_default() += file.text.lines().count();
        }
    }
    lines
}

fn may_choose(file: &SourceFile) -> bool {
    let is_door = file.path.ends_with("/mod.rs");
    let is_linux = LINUX.iter().any(|(path, _)| *path == file.path);
    is_door && only_modules(file)
        || is_linux
        || own_name(&file.path).is_some()
        || is_elsewhere(&file.path)
}

fn is_elsewhere(path: &str) -> bool {
    ELSEWHERE.iter().any(|folder| path.starts_with(folder) || path.contains(folder))
}

fn own_name(path: &str) -> Option<&'static str> {
    let stem = path.rsplit('/').next()?.strip_suffix(".rs")?;
    NAMES.into_iter().find(|name| *name == stem)
}

/// Whether a door chooses between modules and names only, never between lines of a function.
fn only_modules(file: &SourceFile) -> bool {
    let code = code_only(&file.text);
    let indented = |line: &str| line.starts_with(' ') && line.trim_start().starts_with("#[cfg");
    !before_tests(&code).lines().any(|line| indented(line) && chooses(line))
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let code = code_only(&file.text);
    let lines = before_tests(&code).lines().enumerate();
    let found = lines.filter(|(_, line)| chooses(line));
    let message = "a system is chosen in a `mod.rs` beside files of their own (`linux.rs`, …)";
    found.map(|(number, _)| Finding::at(&file.path, number + 1, message)).collect()
}

/// What comes before a file's own tests, which may skip what a system does not have.
fn before_tests(code: &str) -> &str {
    let tests = ["\n#[cfg(test)]", "\n#[cfg(all(test"];
    let end = tests.iter().filter_map(|mark| code.find(mark)).min();
    &code[..end.unwrap_or(code.len())]
}

fn chooses(line: &str) -> bool {
    let has = |wanted: &str| {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == wanted)
    };
    let cfg = line.contains("cfg") && (has("unix") || has("windows"));
    let std = ["os::unix", "os::windows", "os::fd", "os::linux"];
    cfg || WORDS.into_iter().any(has) || std.into_iter().any(|path| line.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Tree::of_pairs(&[(path, &format!("//! A.\n{text}\n"))])).len()
    }

    #[test]
    fn a_choice_belongs_to_a_door_or_a_file_of_its_own() {
        let code = "#[cfg(unix)]\nmod system;";
        assert_eq!(findings("crates/hub/src/cache.rs", code), 1);
        assert_eq!(findings("crates/hub/src/system/mod.rs", code), 0);
        assert_eq!(findings("crates/hub/src/lib.rs", "fn f() { cfg!(target_os = \"linux\"); }"), 1);
        assert_eq!(findings("crates/hub/src/a.rs", "use std::os::unix::fs::FileExt;"), 1);
        assert_eq!(findings("crates/hub/src/a/unix.rs", "use std::os::unix::fs::FileExt;"), 0);
    }

    #[test]
    fn a_door_chooses_no_lines_of_a_function() {
        let code = "fn f() {\n    #[cfg(windows)]\n    g();\n}";
        assert_eq!(findings("crates/hub/src/system/mod.rs", code), 1);
    }

    #[test]
    fn tests_and_automation_may_skip_what_is_not_there() {
        let code = "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    #[cfg(unix)]\n    fn g() {}\n}";
        assert_eq!(findings("crates/hub/src/cache.rs", code), 0);
        assert_eq!(findings("xtask/src/a.rs", "#[cfg(unix)]\nmod b;"), 0);
        assert_eq!(findings("crates/hub/src/a.rs", "// on unix: cfg(unix)"), 0);
    }

    #[test]
    fn lines_are_counted_by_system() {
        let tree = Tree::of_pairs(&[
            ("crates/a/src/b/linux.rs", "1\n2\n"),
            ("crates/a/src/c/linux.rs", "1\n"),
            ("crates/a/src/b/windows.rs", "1\n"),
            ("crates/a/src/b/mod.rs", "1\n"),
        ]);
        let lines: Vec<_> = lines(&tree).into_iter().collect();
        assert_eq!(lines, [("linux".to_owned(), 3), ("windows".to_owned(), 1)]);
    }
}
