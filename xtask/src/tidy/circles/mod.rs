//! Rule: no two files of a crate import each other in a circle, however long.
//!
//! An arrow runs from a file to the file that *defines* what it uses. Declaring a module or
//! handing its names on (`pub use`) is not a use; a name taken from a re-export leads to the file
//! that defines it. Code under `#[cfg(test)]` does not count; modules that `#[path]` brings are not
//! followed.
//!
//! In reading order:
//! * `scan`: what one file imports, defines and names.
//! * `modules`: the files of a crate, and which of them defines what a path names.
//! * `components`: groups of files that reach each other.

mod components;
mod modules;
mod scan;

use super::{Finding, Tree};
use components::circles;
use modules::{Arrows, Modules};

/// Crates whose circles are known and being broken.
const EXEMPT: &[&str] = &[];

/// Circles of all crates but those exempt.
pub fn check(tree: &Tree) -> Vec<Finding> {
    check_where(tree, |name| !EXEMPT.contains(&name))
}

/// Circles of the crates that are exempt.
pub fn exempt(tree: &Tree) -> Vec<Finding> {
    check_where(tree, |name| EXEMPT.contains(&name))
}

fn check_where(tree: &Tree, wanted: impl Fn(&str) -> bool) -> Vec<Finding> {
    let crates = tree.crate_folders().into_iter().map(|name| (name, format!("crates/{name}")));
    crates
        .chain([("xtask", "xtask".to_owned())])
        .filter(|(name, _)| wanted(name))
        .flat_map(|(_, folder)| ["lib.rs", "main.rs"].map(|root| format!("{folder}/src/{root}")))
        .filter_map(|root| Modules::of_root(tree, &root))
        .flat_map(|modules| findings(&modules))
        .collect()
}

fn findings(modules: &Modules) -> Vec<Finding> {
    let arrows = modules.arrows();
    let groups = circles(modules.files.len(), arrows.keys().copied());
    groups.iter().map(|group| finding(modules, &arrows, group)).collect()
}

/// One circle, at its first file, with what ties it.
fn finding(modules: &Modules, arrows: &Arrows, group: &[usize]) -> Finding {
    let mut message = format!("{} files import each other in a circle:", group.len());
    for ((from, to), names) in arrows {
        if group.contains(from) && group.contains(to) {
            let (from, to) = (&modules.files[*from], &modules.files[*to]);
            message += &format!("\n    {from} -> {to}: {}", names.join(", "));
        }
    }
    Finding::file(&modules.files[group[0]], message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of one crate by their path below `src`; the findings' messages.
    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let manifest = ("crates/x/Cargo.toml".to_owned(), "");
        let files = files.iter().map(|(path, text)| (format!("crates/x/src/{path}"), *text));
        let files: Vec<(String, &str)> = files.chain([manifest]).collect();
        let pairs: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        check(&Tree::of_pairs(&pairs)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_files_that_import_each_other_are_found_with_the_names() {
        let found = findings(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; fn f() { super::a::A::new() }"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("x/src/a.rs -> crates/x/src/b.rs: B"), "{}", found[0]);
        assert!(found[0].contains("x/src/b.rs -> crates/x/src/a.rs: A"), "{}", found[0]);
    }

    #[test]
    fn longer_circles_and_imported_modules_are_found() {
        let found = findings(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b; fn f() { b::f() }"),
            ("b/mod.rs", "mod inner; pub use inner::f;"),
            ("b/inner.rs", "use crate::c::*; pub fn f() { g() }"),
            ("c.rs", "pub fn g() { crate::a::f() }"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("3 files"), "{}", found[0]);
    }

    #[test]
    fn a_parent_counts_for_what_it_defines() {
        let child = "use super::Shape;";
        let defines = "mod child; pub struct Shape; fn f() { child::g() }";
        assert_eq!(findings(&[("lib.rs", defines), ("child.rs", child)]).len(), 1);
        let declares = "mod child; pub use child::G; pub struct Shape;";
        assert!(findings(&[("lib.rs", declares), ("child.rs", child)]).is_empty());
        let uses = "mod child; pub use child::G; pub struct Shape(G);";
        assert_eq!(findings(&[("lib.rs", uses), ("child.rs", child)]).len(), 1);
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_defines() {
        let found = findings(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B; fn f() { b::g() }"),
            ("a.rs", "use super::B;"),
            ("b.rs", "pub struct B;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let tested = "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }";
        let found = findings(&[
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod tests;"),
            ("a.rs", tested),
            ("b.rs", "use crate::a::A; use std::a::B; pub struct B;"),
            ("tests.rs", "use crate::a::A;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
