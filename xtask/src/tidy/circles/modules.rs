//! The modules of one crate, and which file defines what a path names.

use super::scan::{Body, Use, scan};
use crate::tidy::Tree;
use std::collections::BTreeMap;

/// All modules of a crate: those its root declares, and theirs.
pub(super) struct Modules {
    modules: Vec<Module>,
    /// Paths from the workspace root.
    pub(super) files: Vec<String>,
}

struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    body: Body,
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Module(usize),
    /// An item of a file, and its name there.
    Item(usize, String),
}

/// Names one file takes from others: (from, to) to names.
pub(super) type Arrows = BTreeMap<(usize, usize), Vec<String>>;

impl Modules {
    /// The crate of a root such as `crates/x/src/lib.rs`; none when it is not in the tree.
    pub(super) fn of_root(tree: &Tree, root: &str) -> Option<Self> {
        let mut modules = Self { modules: Vec::new(), files: Vec::new() };
        let text = &tree.file(root)?.text;
        let folder = folder_of(root, true);
        modules.files.push(root.to_owned());
        modules.add(tree, Module::new(0, None, scan(text)), &folder);
        Some(modules)
    }

    /// Adds a module and those below it; `folder` is where its children lie.
    fn add(&mut self, tree: &Tree, mut module: Module, folder: &str) -> usize {
        let (index, file) = (self.modules.len(), module.file);
        let children = std::mem::take(&mut module.body.children);
        self.modules.push(module);
        for (name, inline) in children {
            let below = format!("{folder}/{name}");
            let child = match inline {
                Some(body) => self.add(tree, Module::new(file, Some(index), body), &below),
                None => {
                    let paths = [format!("{below}.rs"), format!("{below}/mod.rs")];
                    let Some(found) = paths.iter().find_map(|path| tree.file(path)) else {
                        continue;
                    };
                    self.files.push(found.path.clone());
                    let module = Module::new(self.files.len() - 1, Some(index), scan(&found.text));
                    self.add(tree, module, &folder_of(&found.path, false))
                }
            };
            self.modules[index].children.insert(name, child);
        }
        index
    }

    /// Every use of one file's items in another file. A re-export alone is none: what takes the
    /// name from there uses the file that defines it.
    pub(super) fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (index, module) in self.modules.iter().enumerate() {
            let words = |name: &str| module.body.paths.iter().any(|path| path[0] == name);
            let imports = module.body.uses.iter().filter(|one| match &one.name {
                Some(name) => !one.public || words(name),
                None => false,
            });
            let paths = imports.map(|one| &one.path).chain(&module.body.paths);
            for named in paths.filter_map(|path| self.named(index, path, &mut Vec::new())) {
                if let Named::Item(file, name) = named
                    && file != module.file
                {
                    let names = arrows.entry((module.file, file)).or_default();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
        arrows
    }

    /// What `path` names in `module`; none for what lies outside the crate.
    fn named(&self, module: usize, path: &[String], seen: &mut Vec<Lookup>) -> Option<Named> {
        let (first, rest) = path.split_first()?;
        let mut here = match first.as_str() {
            "crate" => Named::Module(0),
            "self" => Named::Module(module),
            "super" => Named::Module(self.modules[module].parent?),
            name => self.lookup(module, name, rest.is_empty(), seen)?,
        };
        for (at, name) in rest.iter().enumerate() {
            let Named::Module(inside) = here else { break };
            let unknown = || Named::Item(self.modules[inside].file, name.clone());
            here = match name.as_str() {
                "super" => Named::Module(self.modules[inside].parent?),
                // A name that is not seen here was written by a macro of that file.
                name => {
                    self.lookup(inside, name, at + 1 == rest.len(), seen).unwrap_or_else(unknown)
                }
            };
        }
        Some(here)
    }

    /// A name in a module. At the end of a path an item goes before a module of the same name.
    fn lookup(
        &self,
        module: usize,
        name: &str,
        is_last: bool,
        seen: &mut Vec<Lookup>,
    ) -> Option<Named> {
        let lookup = Lookup { module, name: name.to_owned(), is_last };
        if seen.contains(&lookup) {
            return None;
        }
        seen.push(lookup);
        let Module { file, children, body, .. } = &self.modules[module];
        let child = children.get(name).map(|child| Named::Module(*child));
        if child.is_some() && !is_last {
            return child;
        }
        if body.items.iter().any(|item| item == name) {
            return Some(Named::Item(*file, name.to_owned()));
        }
        let imported = |one: &Use| one.name.as_deref() == Some(name);
        let mut taken = body.uses.iter().filter(|one| imported(one));
        let found = taken.find_map(|one| self.named(module, &one.path, seen)).or(child);
        found.or_else(|| body.uses.iter().find_map(|one| self.in_glob(module, one, name, seen)))
    }

    /// A name that `use a::*` brings, if this is one.
    fn in_glob(
        &self,
        module: usize,
        glob: &Use,
        name: &str,
        seen: &mut Vec<Lookup>,
    ) -> Option<Named> {
        if glob.name.is_some() {
            return None;
        }
        match self.named(module, &glob.path, seen)? {
            Named::Module(inside) => self.lookup(inside, name, true, seen),
            Named::Item(..) => None,
        }
    }
}

impl Module {
    fn new(file: usize, parent: Option<usize>, body: Body) -> Self {
        Self { file, parent, children: BTreeMap::new(), body }
    }
}

/// A question asked on the way to an answer; asking it again would never end.
#[derive(PartialEq, Eq)]
struct Lookup {
    module: usize,
    name: String,
    is_last: bool,
}

/// Where the modules that a file declares lie.
fn folder_of(path: &str, is_root: bool) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((folder, name)) if is_root || name == "mod" => folder.to_owned(),
        _ => stem.to_owned(),
    }
}
