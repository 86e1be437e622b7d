//! One page of Markdown as the checks need it: headings, links and command lines, with their lines.
//! Renders nothing.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;

/// Folder of the book's pages.
pub(super) const FOLDER: &str = "docs/";

/// What a page has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// What a link can name after `#`.
    pub(super) anchors: Vec<String>,
    /// Line and where it leads: links and pictures.
    pub(super) links: Vec<(usize, String)>,
    /// Line and text of code: lines of blocks, continued ones joined, and code inside a sentence.
    pub(super) code: Vec<(usize, String)>,
}

impl Page {
    /// Reads a page.
    pub(super) fn parse(text: &str) -> Self {
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        let mut page = Self::default();
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        let (mut heading, mut block) = (None::<String>, None::<(usize, String)>);
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            let line = text[..range.start].matches('\n').count() + 1;
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    page.anchors.push(numbered(&heading.take().unwrap_or_default(), &mut taken));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::CodeBlock(_)) => block = Some((0, String::new())),
                Event::End(TagEnd::CodeBlock) => {
                    let (first, code) = block.take().unwrap_or_default();
                    page.code.extend(lines(first, &code));
                }
                Event::Code(words) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&words);
                    }
                    page.code.push((line, words.into_string()));
                }
                Event::Text(words) => match (&mut block, &mut heading) {
                    (Some((0, _)), _) => block = Some((line, words.into_string())),
                    (Some((_, code)), _) => code.push_str(&words),
                    (None, Some(title)) => title.push_str(&words),
                    (None, None) => {}
                },
                _ => {}
            }
        }
        page
    }
}

/// Lines of a block; one that ends in a backslash goes on in the next.
fn lines(first: usize, text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let cut = line.strip_suffix('\\');
        match found.last_mut().filter(|_| goes_on) {
            Some((_, before)) => before.push_str(cut.unwrap_or(line).trim_start()),
            None => found.push((first + at, cut.unwrap_or(line).to_owned())),
        }
        goes_on = cut.is_some();
    }
    found
}

/// The name of a heading in an address: letters, digits, `-` and `_`, small, blanks as `-`.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|c| match c {
        c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c.to_lowercase().to_string()),
        c if c.is_whitespace() => Some("-".to_owned()),
        _ => None,
    });
    kept.collect()
}

/// The second heading of one name has `-1` behind it.
fn numbered(heading: &str, taken: &mut BTreeMap<String, usize>) -> String {
    let name = anchor(heading);
    let before = taken.entry(name.clone()).or_default();
    *before += 1;
    if *before == 1 { name } else { format!("{name}-{}", *before - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_links_and_code_are_found_with_their_lines() {
        let page = Page::parse(
            "# A `b`, c\n\nSee [it](x.md#y) and `motley plan`.\n\n    motley run m \\\n        -n 3\n\n## A b c\n",
        );
        assert_eq!(page.anchors, ["a-b-c", "a-b-c-1"]);
        assert_eq!(page.links, [(3, "x.md#y".to_owned())]);
        let code: Vec<&str> = page.code.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(code, ["b", "motley plan", "motley run m -n 3"]);
        assert_eq!(page.code[2].0, 5);
    }
}
