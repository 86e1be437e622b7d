//! The imports, definitions and paths of one Rust file, from its text alone.
//!
//! Not a parser: it reads the words of the code in order, knows where a module begins and ends,
//! and leaves out items under `#[cfg(test)]`. What a macro writes it does not see.

use crate::tidy::lex::code_only;

/// What one module says: a file, or a block `mod x { … }` in it.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Names defined here.
    pub(super) items: Vec<String>,
    /// Imports and re-exports.
    pub(super) uses: Vec<Use>,
    /// Modules below: in files of their own (`None`), or as blocks in this one.
    pub(super) children: Vec<(String, Option<Self>)>,
    /// Paths in the code outside of imports, words alone included.
    pub(super) paths: Vec<Vec<String>>,
}

/// One name of a `use`.
#[derive(Debug)]
pub(super) struct Use {
    /// From the first word to the last.
    pub(super) path: Vec<String>,
    /// The name it has here; none for `*`.
    pub(super) name: Option<String>,
    /// Whether others may take it from here (`pub use`, however restricted).
    pub(super) public: bool,
}

/// Reads the text of a file.
pub(super) fn scan(text: &str) -> Body {
    let code = code_only(text);
    Scanner { tokens: tokens(&code), at: 0 }.body()
}

/// Words, `::`, `..` and single marks; lifetimes are left out.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let length = match first {
            '\'' => 1 + rest[1..].find(|c: char| !is_word(c)).unwrap_or(rest.len() - 1),
            _ if word > 0 => word,
            _ if rest.starts_with("::") || rest.starts_with("..") => 2,
            other => other.len_utf8(),
        };
        if first != '\'' {
            tokens.push(&rest[..length]);
        }
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Scanner<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl Scanner<'_> {
    /// Reads to the brace that closes the module, or to the end of the file.
    fn body(&mut self) -> Body {
        let mut body = Body::default();
        let mut depth = 0;
        while let Some(&token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                "{" => depth += 1,
                "#" if self.is_test_attribute() => self.skip_item(),
                "use" if self.begins_statement() => {
                    let public = self.is_public();
                    self.use_tree(&mut Vec::new(), public, &mut body.uses);
                }
                "mod" if matches!(self.token(1), ";" | "{") => self.child(&mut body),
                _ if depth == 0 && self.defines(token) => {
                    body.items.push(self.defined_name(token));
                    if token == "enum" {
                        self.variants(&mut body);
                    }
                }
                word if word.starts_with(is_word) => self.path(&mut body),
                _ => {}
            }
        }
        body
    }

    /// The token `ahead` of the next one, or nothing.
    fn token(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).copied().unwrap_or_default()
    }

    /// The token before the one just read.
    fn before(&self) -> &str {
        self.at.checked_sub(2).map_or("", |at| self.tokens[at])
    }

    /// Not `impl Trait + use<'a>`.
    fn begins_statement(&self) -> bool {
        self.token(0) != "<"
    }

    /// Whether `pub` or `pub(…)` stands before the token just read.
    fn is_public(&self) -> bool {
        let before = &self.tokens[..self.at - 1];
        let open = before.iter().rposition(|token| matches!(*token, "(" | ";" | "}"));
        let bracketed = before.last() == Some(&")")
            && open
                .is_some_and(|open| open > 0 && before[open] == "(" && before[open - 1] == "pub");
        before.last() == Some(&"pub") || bracketed
    }

    /// Behind `#`: whether what follows is compiled for tests only.
    fn is_test_attribute(&self) -> bool {
        if self.token(0) != "[" || self.token(1) != "cfg" {
            return false;
        }
        let end = self.tokens[self.at..].iter().position(|token| *token == "]").unwrap_or(0);
        let words = &self.tokens[self.at..self.at + end];
        words.contains(&"test") && !words.contains(&"not") && !words.contains(&"any")
    }

    /// Steps over attributes and one item.
    fn skip_item(&mut self) {
        let mut depth = 0;
        let mut is_use = false;
        while let Some(&token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                "use" if depth == 0 => is_use = true,
                _ => {}
            }
            if depth == 0 && (token == ";" || (token == "}" && !is_use)) {
                return;
            }
        }
    }

    /// Behind `use`: one tree of names, `prefix` before each.
    fn use_tree(&mut self, prefix: &mut Vec<String>, public: bool, out: &mut Vec<Use>) {
        let depth = prefix.len();
        let mut name = None;
        loop {
            let token = self.token(0).to_owned();
            match token.as_str() {
                "," | "}" | ";" | "" => break,
                "{" => {
                    while !matches!(self.token(0), "}" | "") {
                        self.at += 1;
                        self.use_tree(prefix, public, out);
                    }
                    self.at += 1;
                    prefix.truncate(depth);
                    return;
                }
                "*" => {
                    self.at += 1;
                    out.push(Use { path: prefix.clone(), name: None, public });
                    prefix.truncate(depth);
                    return;
                }
                "as" => {
                    name = Some(self.token(1).to_owned());
                    self.at += 1;
                }
                "::" => {}
                "self" if depth > 0 && prefix.len() == depth => {}
                _ => prefix.push(token),
            }
            self.at += 1;
        }
        if let Some(last) = prefix.last() {
            let name = Some(name.unwrap_or_else(|| last.clone()));
            out.push(Use { path: prefix.clone(), name, public });
        }
        prefix.truncate(depth);
    }

    /// Behind `mod`: its name, and its body where it has one here.
    fn child(&mut self, body: &mut Body) {
        let name = self.token(0).to_owned();
        let inline = self.token(1) == "{";
        self.at += 2;
        let inner = inline.then(|| self.body());
        body.children.push((name, inner));
    }

    /// Whether the keyword just read defines the name that follows.
    fn defines(&self, keyword: &str) -> bool {
        let named = self.token(0).starts_with(is_word);
        match keyword {
            "struct" | "enum" | "trait" | "type" | "fn" | "static" => named,
            "const" => self.token(1) == ":" && !matches!(self.before(), "<" | "," | "*"),
            "macro_rules" => self.token(0) == "!",
            _ => false,
        }
    }

    fn defined_name(&mut self, keyword: &str) -> String {
        self.at += if keyword == "macro_rules" { 2 } else { 1 };
        self.tokens.get(self.at - 1).copied().unwrap_or_default().to_owned()
    }

    /// From the word just read: `a`, or `a::b::c`. Fields and methods are none.
    fn path(&mut self, body: &mut Body) {
        let mut path = vec![self.tokens[self.at - 1].to_owned()];
        let is_member = matches!(self.before(), "." | "::");
        while self.token(0) == "::" && self.token(1).starts_with(is_word) {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        // `name: T` names a field, an argument or a binding.
        let is_label = path.len() == 1 && self.token(0) == ":";
        if !is_member && !is_label {
            body.paths.push(path);
        }
    }

    /// Behind `enum Name`: its variants' names are no paths, what they hold is.
    fn variants(&mut self, body: &mut Body) {
        while !matches!(self.token(0), "{" | "") {
            self.at += 1;
            if self.tokens[self.at - 1].starts_with(is_word) {
                self.path(body);
            }
        }
        let mut depth = 0;
        while let Some(&token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ if depth == 1 && matches!(self.before(), "{" | "," | "]") => {}
                word if word.starts_with(is_word) => self.path(body),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(text: &str) -> Vec<String> {
        let show = |one: &Use| {
            let name = one.name.as_deref().unwrap_or("*");
            format!("{}{} {name}", if one.public { "pub " } else { "" }, one.path.join("::"))
        };
        scan(text).uses.iter().map(show).collect()
    }

    #[test]
    fn trees_of_names_are_spread_out() {
        let text = "use super::{a::{self, B}, C as D, e::*};\npub(crate) use f::G;\n";
        assert_eq!(
            uses(text),
            ["super::a a", "super::a::B B", "super::C D", "super::e *", "pub f::G G"]
        );
        assert_eq!(uses("fn f() -> impl Iterator + use<'_> {}"), Vec::<String>::new());
    }

    #[test]
    fn names_are_those_of_the_module_itself() {
        let text = "pub struct A<'a> { f: &'a u8 }\nconst B: u8 = 1;\nconst fn c() { fn d() {} }\n\
                    fn g<const N: usize>(p: *const A) {}\nimpl A { fn e() {} }\nmacro_rules! m {}";
        assert_eq!(scan(text).items, ["A", "B", "c", "g", "m"]);
    }

    #[test]
    fn paths_are_read_and_members_are_not() {
        let text = "fn f() { crate::a::B::new(x.y, ..super::C::D); v.collect::<Vec<E>>() }";
        let paths = scan(text).paths;
        for expected in [&["crate", "a", "B", "new"][..], &["super", "C", "D"], &["E"], &["x"]] {
            assert!(paths.iter().any(|path| path == expected), "{expected:?}");
        }
        assert!(!paths.iter().any(|path| path[0] == "y" || path[0] == "collect"));
        let text = "pub enum A<T: B> { #[x] C, D(E), F { g: H } }\nfn f() { I { j: k } }";
        let words: Vec<String> = scan(text).paths.concat();
        assert_eq!(words, ["pub", "B", "x", "E", "H", "I", "k"].map(String::from));
    }

    #[test]
    fn what_is_for_tests_is_left_out() {
        let text = "#[cfg(test)]\nuse a::{B, C};\n#[cfg(test)]\n#[path = \"x\"]\nmod tests;\n\
                    #[cfg(test)]\nmod more { use d::E; }\nuse f::G;\n#[cfg(not(test))]\nuse h::I;";
        assert_eq!(uses(text), ["f::G G", "h::I I"]);
        assert!(scan(text).children.is_empty());
    }

    #[test]
    fn modules_are_files_or_blocks() {
        let body = scan("mod a;\npub mod b { mod c; fn f() {} }\nfn g() {}");
        assert_eq!(body.items, ["g"]);
        assert!(body.children[0].1.is_none());
        let (name, inner) = &body.children[1];
        let inner = inner.as_ref().expect("a block");
        assert_eq!((name.as_str(), inner.items.as_slice()), ("b", &["f".to_owned()][..]));
    }
}
