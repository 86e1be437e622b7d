//! Rule: `unsafe` lives in four crates, and every other crate root forbids it (STYLE 9).

use super::lex::code_only;
use super::{Finding, SourceFile, Tree};

/// The rooms: FFI, aligned buffers and direct I/O, the operating system, the door a host calls.
const ROOMS: [&str; 4] = ["crates/ggml/", "crates/store/", "crates/host/", "crates/dropin/"];

const FORBID: &str = "#![forbid(unsafe_code)]";

/// `unsafe` in code outside the rooms, and crate roots outside them that do not forbid it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter(|file| !ROOMS.iter().any(|room| file.path.starts_with(room)))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let code = code_only(&file.text);
    let mut findings: Vec<Finding> = code
        .lines()
        .enumerate()
        .filter(|(_, line)| has_unsafe(line))
        .map(|(number, _)| {
            Finding::at(&file.path, number + 1, "`unsafe` outside ggml, store, host and dropin")
        })
        .collect();
    if is_crate_root(&file.path) && !code.trim().is_empty() && !code.contains(FORBID) {
        findings.push(Finding::file(&file.path, format!("a crate root says `{FORBID}`")));
    }
    findings
}

fn has_unsafe(code: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "unsafe")
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || path.contains("/src/bin/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Tree::of_pairs(&[(path, text)])).len()
    }

    #[test]
    fn unsafe_code_is_found_outside_the_rooms() {
        let text = "//! A.\nfn f() { unsafe { g() } }\n";
        assert_eq!(findings("crates/sched/src/a.rs", text), 1);
        assert_eq!(findings("crates/ggml/src/a.rs", text), 0);
        assert_eq!(findings("crates/sched/src/a.rs", "//! A.\nunsafe extern \"C\" {}\n"), 1);
    }

    #[test]
    fn the_word_in_comments_strings_and_lint_names_passes() {
        let text = "//! A.\n// unsafe\nconst A: &str = \"unsafe {\";\n#![deny(unsafe_code)]\n";
        assert_eq!(findings("crates/sched/src/a.rs", text), 0);
    }

    #[test]
    fn a_crate_root_must_forbid() {
        assert_eq!(findings("crates/sched/src/lib.rs", "//! A.\npub mod a;\n"), 1);
        assert_eq!(findings("crates/cli/src/main.rs", "//! A.\nfn main() {}\n"), 1);
        let good = "//! A.\n#![forbid(unsafe_code)]\npub mod a;\n";
        assert_eq!(findings("crates/sched/src/lib.rs", good), 0);
        let only_said = "//! A.\n// #![forbid(unsafe_code)]\npub mod a;\n";
        assert_eq!(findings("crates/sched/src/lib.rs", only_said), 1);
    }
}
