//! Rule: no file speaks of one machine: no absolute paths of somebody's disk, no hosts that
//! only one network knows, no crate from anywhere but crates.io.

use super::{Finding, Tree};

/// Folders of one machine, spelled so that this file does not find itself.
const FOLDERS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tm", "p/"), concat!("/ho", "me/")];

/// Ends of host names that no public network resolves.
const PRIVATE_ENDS: [&str; 5] = [".internal", ".local", ".lan", ".corp", ".intranet"];

/// Parts of a host name that tell a package mirror.
const MIRROR_WORDS: [&str; 4] = ["artifactory", "nexus", "jfrog", "mirror"];

/// The one place crates come from, as Cargo.lock writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Lines that name a machine's folder, a private host or another crate source.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(message) = complaint(line, file.path.ends_with("Cargo.lock")) {
                findings.push(Finding::at(&file.path, number + 1, message));
            }
        }
    }
    findings
}

fn complaint(line: &str, is_lock: bool) -> Option<String> {
    if let Some(folder) = FOLDERS.iter().find(|folder| has_folder(line, folder)) {
        return Some(format!("`{folder}` is a path of one machine"));
    }
    if let Some(host) = hosts(line).find(|host| is_private(host)) {
        return Some(format!("`{host}` is a host of one network"));
    }
    let source = line.strip_prefix("source = \"").and_then(|rest| rest.strip_suffix('"'));
    match source {
        Some(source) if is_lock && source != CRATES_IO => {
            Some("a crate that does not come from crates.io".into())
        }
        _ => None,
    }
}

/// An absolute path begins where nothing that belongs to a longer path stands before it.
fn has_folder(line: &str, folder: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | '*');
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(joins))
}

fn hosts(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("://").map(|(at, mark)| {
        let rest = &line[at + mark.len()..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-')));
        &rest[..end.unwrap_or(rest.len())]
    })
}

fn is_private(host: &str) -> bool {
    let is_number = !host.is_empty() && host.chars().all(|c| c.is_ascii_digit() || c == '.');
    let own = host.is_empty() || matches!(host, "localhost" | "127.0.0.1" | "0.0.0.0");
    !own && (is_number
        || PRIVATE_ENDS.iter().any(|end| host.ends_with(end))
        || MIRROR_WORDS.iter().any(|word| host.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, line: &str) -> usize {
        check(&Tree::of_pairs(&[(path, line)])).len()
    }

    #[test]
    fn machine_folders_are_found() {
        for folder in FOLDERS {
            assert_eq!(findings("a.rs", &format!("let p = \"{folder}x\";")), 1, "{folder}");
            assert_eq!(findings("notes.md", &format!("cd {folder}x")), 1, "{folder}");
        }
    }

    #[test]
    fn parts_of_longer_paths_pass() {
        for folder in FOLDERS {
            assert_eq!(findings("a.md", &format!("src{folder}x and ..{folder}y")), 0);
        }
    }

    #[test]
    fn private_hosts_are_found() {
        for host in ["pypi.example.internal", "10.0.0.7", "nexus.example.org", "cratesmirror.org"] {
            assert_eq!(findings("a.toml", &format!("index = \"https://{host}/x\"")), 1, "{host}");
        }
        for host in ["github.com", "localhost", "127.0.0.1", "arxiv.org"] {
            assert_eq!(findings("a.md", &format!("see http://{host}:80/x")), 0, "{host}");
        }
    }

    #[test]
    fn other_crate_sources_are_found() {
        let other = "source = \"git+https://github.com/a/b#0\"";
        assert_eq!(findings("Cargo.lock", other), 1);
        assert_eq!(findings("Cargo.lock", &format!("source = \"{CRATES_IO}\"")), 0);
        assert_eq!(findings("notes.md", other), 0);
    }
}
