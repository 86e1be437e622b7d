//! Rule: the rooms of `ggml` that must also run inside a host reach ggml through its table of
//! functions only: they neither name the linked bindings nor declare functions of their own.

use super::lex::code_only;
use super::{Finding, SourceFile, Tree};

const ROOMS: [&str; 3] =
    ["crates/ggml/src/seam/", "crates/ggml/src/compute/", "crates/ggml/src/gpu/"];

/// What only the linker can resolve.
const LINKED: [&str; 2] = ["llama_cpp_sys_2", "unsafe extern {"];

/// Lines of those rooms that go past the table.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter(|file| ROOMS.iter().any(|room| file.path.starts_with(room)))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let message = "ggml is reached through `crate::api` here: add the function to its table";
    let code = code_only(&file.text);
    let lines = code.lines().enumerate().filter(|(_, line)| is_linked(line));
    lines.map(|(number, _)| Finding::at(&file.path, number + 1, message)).collect()
}

/// Whether a line, with literals blanked and spaces joined, needs the linker.
fn is_linked(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    LINKED.iter().any(|linked| line.contains(linked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, line: &str) -> usize {
        check(&Tree::of_pairs(&[(path, &format!("//! A.\n{line}\n"))])).len()
    }

    #[test]
    fn bindings_and_declarations_are_found_in_the_rooms() {
        for line in [
            "use llama_cpp_sys_2 as sys;",
            "unsafe { llama_cpp_sys_2::ggml_free(context) }",
            "unsafe extern \"C\" {",
        ] {
            assert_eq!(findings("crates/ggml/src/seam/device.rs", line), 1, "{line}");
            assert_eq!(findings("crates/ggml/src/compute/unit.rs", line), 1, "{line}");
            assert_eq!(findings("crates/ggml/src/gpu/unit.rs", line), 1, "{line}");
            assert_eq!(findings("crates/ggml/src/llama/model.rs", line), 0, "{line}");
        }
    }

    #[test]
    fn callbacks_and_words_pass() {
        for line in [
            "unsafe extern \"C\" fn get_name(_: *mut Device) -> *const c_char {",
            "// as in llama_cpp_sys_2",
            "use crate::api;",
        ] {
            assert_eq!(findings("crates/ggml/src/seam/device.rs", line), 0, "{line}");
        }
    }
}
