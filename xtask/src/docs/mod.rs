//! `cargo xtask docs`: pages made from the program itself, the checks of every page, and the book.
//! Publishes nothing and asks no network.
//!
//! In reading order:
//! - `program`: `motley`, asked for its help and for its API's document.
//! - `cli`, `api`: the two reference pages, made from what it says.
//! - `summary`: the book's table of contents, whose list of decisions is made from their folder.
//! - `markdown`: headings, links and command lines of one page.
//! - `links`: every link and picture leads somewhere.
//! - `commands`: every `motley …` a person would copy is one that `motley` takes.
//! - `flags`: every flag a page names is one of a command.
//! - `messages`: every error message that a page explains is one the program says.
//! - `book`: mdBook.

mod api;
mod book;
mod cli;
mod commands;
mod flags;
mod links;
mod markdown;
mod messages;
mod program;
mod summary;

use crate::tidy::{Finding, Tree};
use crate::workspace_root;
use anyhow::{Context, Result};
use program::Program;
use std::path::PathBuf;

/// What is asked of `cargo xtask docs`.
#[derive(Debug, Clone, clap::Args)]
pub struct Docs {
    /// Write no page; fail where one differs from what would be written.
    #[arg(long)]
    pub check: bool,
    /// The program to ask (default: built now, without features).
    #[arg(long, value_name = "FILE")]
    pub motley: Option<PathBuf>,
    /// Folder for the book (default: `book` in the target folder).
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Write and check pages only; needs no mdBook.
    #[arg(long)]
    pub no_book: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Written {
    /// What a person has to mend.
    pub findings: Vec<Finding>,
    /// Pages written anew.
    pub pages: Vec<String>,
    /// First page of the book, where one was made.
    pub book: Option<PathBuf>,
}

/// Makes the pages, checks all of them, and makes the book if nothing was found.
pub fn docs(asked: &Docs) -> Result<Written> {
    let program = Program::find(asked.motley.as_deref())?;
    let reference = cli::page(&program)?;
    let made = [
        ("docs/reference/cli.md", reference.clone()),
        ("docs/reference/api.md", api::page(&program.openapi()?)?),
        (summary::PATH, summary::page(&tree()?)?),
    ];
    let (mut findings, mut pages) = (Vec::new(), Vec::new());
    for (path, text) in made {
        let file = workspace_root().join(path);
        if std::fs::read_to_string(&file).is_ok_and(|there| there == text) {
            continue;
        }
        if asked.check {
            findings.push(Finding::file(path, "is out of date: `cargo xtask docs` writes it"));
        } else {
            std::fs::create_dir_all(file.parent().context("a page lies in a folder")?)?;
            std::fs::write(&file, text).with_context(|| file.display().to_string())?;
            pages.push(path.to_owned());
        }
    }
    let tree = tree()?;
    findings.extend(summary::check(&tree));
    findings.extend(links::check(&tree, workspace_root()));
    findings.extend(flags::check(&tree, &reference));
    findings.extend(messages::check(&tree));
    findings.extend(commands::check(&tree, |words| program.takes(words)));
    let make = !asked.no_book && findings.is_empty();
    let book = make.then(|| book::build(asked.out.as_deref())).transpose()?;
    Ok(Written { findings, pages, book })
}

fn tree() -> Result<Tree> {
    Tree::of_git(workspace_root())
}
