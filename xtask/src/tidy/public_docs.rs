//! Rule: every public item has a doc comment; fields and variants are free.
//!
//! rustc's `missing_docs` asks the same of fields, where a comment mostly repeats the name, and
//! cannot be relaxed for them alone. Modules in files of their own begin with `//!` (`doc_line`).

use super::lex::code_only;
use super::{Finding, SourceFile, Tree};

/// Folders whose code is not a public interface.
const FREE: [&str; 4] = ["/tests/", "/benches/", "/examples/", "fuzz/"];

/// Public items without a doc comment.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter(|file| !FREE.iter().any(|folder| file.path.contains(folder)))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let code = code_only(&file.text);
    let text: Vec<&str> = file.text.lines().collect();
    code.lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "mod tests {")
        .filter_map(|(at, line)| Some((at, public_item(line)?)))
        .filter(|(at, _)| !has_docs(&text[..*at]))
        .map(|(at, name)| {
            Finding::at(&file.path, at + 1, format!("`{name}` is public and has no doc comment"))
        })
        .collect()
}

/// The name of the item when a public one begins on this line of code.
fn public_item(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace().peekable();
    loop {
        match words.next()? {
            "async" | "unsafe" | "extern" => {}
            "const" if words.peek().is_some_and(|next| ["fn", "unsafe"].contains(next)) => {}
            "mod" if line.ends_with(';') => return None,
            "fn" | "struct" | "enum" | "union" | "trait" | "const" | "static" | "type" | "mod" => {
                let name = words.next()?;
                return name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
            }
            _ => return None,
        }
    }
}

/// Whether the lines before an item end with a doc comment, attributes left aside.
fn has_docs(before: &[&str]) -> bool {
    let mut in_attribute = false;
    for line in before.iter().rev().map(|line| line.trim()) {
        let begins = line.starts_with("#[") || line.starts_with("$(#[");
        if line.starts_with("///") || line.starts_with("#[doc") || line.starts_with("$(#[doc") {
            return true;
        }
        in_attribute = !begins && (in_attribute || line.ends_with(']'));
        if !(begins || in_attribute || line.starts_with("//")) {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let findings = check(&Tree::of_pairs(&[("crates/model/src/a.rs", text)]));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn items_with_comments_pass() {
        assert!(found("/// Does it.\npub fn f() {}\n").is_empty());
        assert!(
            found("/// A.\n#[derive(\n    Debug,\n)]\n#[serde(x)]\npub struct A;\n").is_empty()
        );
        assert!(found("#[doc = \"It.\"]\npub const fn f() {}\n").is_empty());
    }

    #[test]
    fn items_without_are_found() {
        let bare = ["pub fn f()", "pub const fn f()", "pub unsafe fn f()", "pub async fn f()"];
        for item in bare {
            let [message] = &found(&format!("use a::b;\n\n#[inline]\n{item} {{}}\n"))[..] else {
                panic!("{item}");
            };
            assert!(message.starts_with("crates/model/src/a.rs:4: `f`"), "{message}");
        }
        for item in ["struct A;", "enum A {}", "trait A<T> {}", "const A: u8 = 1;", "mod A {}"] {
            assert_eq!(found(&format!("pub {item}\n")).len(), 1, "{item}");
        }
    }

    #[test]
    fn fields_restricted_items_tests_and_files_are_free() {
        for text in [
            "    pub field: u8,\n",
            "pub(crate) fn f() {}\n",
            "pub use a::b;\n",
            "pub mod a;\n",
            "let text = \"pub fn f() {}\";\n",
            "mod tests {\n    pub fn f() {}\n}\n",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
        let test = Tree::of_pairs(&[("crates/model/tests/a.rs", "pub fn f() {}\n")]);
        assert!(check(&test).is_empty());
    }
}
