//! What a user may type for a model: a path, a name on the hub, or a URL. Parses; asks nobody
//! whether it exists, except the file system, where a path always wins.

use crate::limits::{MAX_PATH_BYTES, MAX_PATH_PART_BYTES, MAX_URL_BYTES};
use std::fmt;
use std::path::{Path, PathBuf};

/// Longest owner or repository, as the hub has it.
const MAX_PART_CHARS: usize = 96;
/// How every file of a model ends.
const GGUF: &str = ".gguf";

/// Why a name was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing that could be one.
    #[error(
        "{text:?}: no such file, and not a model's name; a model is a path to a .gguf file, \
         owner/repo:QUANT on the hub (Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M), or https://…/file.gguf"
    )]
    Unknown { text: String },
    /// A repository the hub would not have.
    #[error(
        "{text:?}: owner and repository are letters, digits, '-', '_' and '.', at most 96 each, \
         without '--' and '..', and neither begin nor end in '-' or '.'"
    )]
    Repo { text: String },
    /// A file that could lie outside its folder.
    #[error("{text:?}: not the path of a .gguf file inside a repository")]
    File { text: String },
    /// A URL that is not one of a GGUF file.
    #[error("{text:?}: not the URL of a .gguf file (http:// or https://, no user, no password)")]
    Url { text: String },
}

/// A model, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelName {
    /// A path; whether there is a file is for whoever opens it to say.
    Local(PathBuf),
    /// A model of the hub.
    Hub(HubName),
    /// A file anywhere else.
    Url(UrlName),
}

impl ModelName {
    /// Parses what was typed. Something that exists is a path; so is what looks like one.
    pub fn parse(typed: &Path) -> Result<Self, NameError> {
        let local = || Ok(Self::Local(typed.to_owned()));
        let Some(text) = typed.to_str() else { return local() };
        if text.starts_with("https://") || text.starts_with("http://") {
            return Self::parse_url(text);
        }
        if typed.exists() || looks_like_a_path(text) {
            return local();
        }
        HubName::parse(text).map(Self::Hub)
    }

    /// A URL; one of the hub's own is a name there, so that its checksum is known.
    fn parse_url(text: &str) -> Result<Self, NameError> {
        let url = UrlName::parse(text)?;
        let own = text.strip_prefix("https://huggingface.co/").and_then(|path| {
            let (repo, file) =
                path.split_once("/resolve/main/").or_else(|| path.split_once("/blob/main/"))?;
            let file = file.split('?').next()?;
            HubName::parse(&format!("{repo}:{file}")).ok()
        });
        Ok(own.map_or(Self::Url(url), Self::Hub))
    }
}

/// Absolute, begun with a dot or `~`, with a backslash, or a `.gguf` without a repository before it.
fn looks_like_a_path(text: &str) -> bool {
    text.starts_with(['/', '.', '~'])
        || text.contains('\\')
        || (text.to_ascii_lowercase().ends_with(GGUF) && !text.contains(':'))
}

/// `owner/repo`, and which of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubName {
    pub repo: RepoId,
    pub wanted: Wanted,
}

impl HubName {
    /// Parses `owner/repo`, `owner/repo:QUANT` or `owner/repo:path/of/file.gguf`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let (repo, wanted) = match text.split_once(':') {
            Some((repo, wanted)) => (repo, Wanted::parse(text, wanted)?),
            None => (text, Wanted::Any),
        };
        if repo.matches('/').count() != 1 {
            return Err(NameError::Unknown { text: text.to_owned() });
        }
        Ok(Self { repo: RepoId::parse(repo)?, wanted })
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wanted {
            Wanted::Any => write!(f, "{}", self.repo),
            Wanted::Quantisation(wanted) | Wanted::File(wanted) => {
                write!(f, "{}:{wanted}", self.repo)
            }
        }
    }
}

/// Which model of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Not said.
    Any,
    /// `Q4_K_M`; case does not count.
    Quantisation(String),
    /// Any part of it, by its path.
    File(String),
}

impl Wanted {
    fn parse(text: &str, wanted: &str) -> Result<Self, NameError> {
        if is_gguf(wanted) {
            let error = || NameError::File { text: wanted.to_owned() };
            check_path(wanted).then(|| Self::File(wanted.to_owned())).ok_or_else(error)
        } else if !wanted.is_empty() && wanted.len() <= MAX_PART_CHARS && plain(wanted) {
            Ok(Self::Quantisation(wanted.to_owned()))
        } else {
            Err(NameError::Unknown { text: text.to_owned() })
        }
    }
}

/// `owner/repo`, which is also safe as part of a folder's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepoId(String);

impl RepoId {
    /// Parses `owner/repo` by the hub's own rules.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let sound = |part: &str| {
            (1..=MAX_PART_CHARS).contains(&part.len())
                && plain(part)
                && !part.starts_with(['-', '.'])
                && !part.ends_with(['-', '.'])
                && !part.contains("--")
                && !part.contains("..")
        };
        match text.split_once('/') {
            Some((owner, repo)) if sound(owner) && sound(repo) => Ok(Self(text.to_owned())),
            _ => Err(NameError::Repo { text: text.to_owned() }),
        }
    }

    /// `owner/repo`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The URL of a GGUF file, any part of a split one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlName {
    /// Everything before the file's name, with the last `/`.
    pub(crate) folder: String,
    pub(crate) file: String,
    /// From `?` on; may hold a signature, so it is neither shown nor kept.
    pub(crate) query: String,
}

impl UrlName {
    fn parse(text: &str) -> Result<Self, NameError> {
        let error = || NameError::Url { text: text.split('?').next().unwrap_or("").to_owned() };
        let text = text.split('#').next().unwrap_or(text);
        let at = text.find('?').unwrap_or(text.len());
        let (path, query) = text.split_at(at);
        let (folder, file) = path.rsplit_once('/').ok_or_else(error)?;
        let authority = folder.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let sound = text.len() <= MAX_URL_BYTES
            && text.chars().all(|c| c.is_ascii_graphic())
            && authority.is_some_and(|host| !host.is_empty() && !host.contains('@'))
            && is_gguf(file)
            && check_path(file);
        let (folder, file, query) = (format!("{folder}/"), file.to_owned(), query.to_owned());
        sound.then_some(Self { folder, file, query }).ok_or_else(error)
    }
}

impl fmt::Display for UrlName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.folder, self.file)
    }
}

/// Whether a file's name is one of a model.
pub(crate) fn is_gguf(name: &str) -> bool {
    name.len() > GGUF.len() && name.ends_with(GGUF)
}

/// Whether a path of a stranger stays inside the folder it is put into.
pub fn check_path(path: &str) -> bool {
    let sound = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.len() <= MAX_PATH_PART_BYTES
            && !part.chars().any(|c| c.is_control() || matches!(c, '\\' | ':'))
    };
    path.len() <= MAX_PATH_BYTES && path.split('/').all(sound)
}

fn plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<ModelName, NameError> {
        ModelName::parse(Path::new(text))
    }

    #[test]
    fn names_are_told_apart() {
        let hub = |text: &str| match parsed(text) {
            Ok(ModelName::Hub(name)) => name,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(hub("Qwen/Qwen3-30B-A3B-GGUF").wanted, Wanted::Any);
        let quant = Wanted::Quantisation("Q4_K_M".into());
        assert_eq!(hub("Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M").wanted, quant);
        let file = Wanted::File("BF16/x-00001-of-00002.gguf".into());
        assert_eq!(hub("a/b:BF16/x-00001-of-00002.gguf").wanted, file);
        assert_eq!(hub("https://huggingface.co/a/b/resolve/main/x.gguf?download=true").wanted, {
            Wanted::File("x.gguf".into())
        });
        for path in ["/a/b", "./a/b", "no/such/model.gguf", "m.gguf", "~/m", "../x/y"] {
            assert_eq!(parsed(path), Ok(ModelName::Local(path.into())));
        }
        let Ok(ModelName::Url(url)) = parsed("https://example.org/a/m.gguf?key=secret") else {
            panic!("a URL");
        };
        assert_eq!(url.to_string(), "https://example.org/a/m.gguf");
    }

    #[test]
    fn what_exists_is_a_path_whatever_it_looks_like() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owner");
        std::fs::write(&path, "").unwrap();
        assert_eq!(ModelName::parse(&path), Ok(ModelName::Local(path)));
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = format!("{}/b", "a".repeat(97));
        let names = [
            "model",
            "a/b/c",
            "a/..",
            "a/b--c",
            "a/-b",
            "a/b.",
            long.as_str(),
            "a/b:",
            "a/b:../../x.gguf",
            "a/b:/etc/x.gguf",
            "a/b:x\u{1b}.gguf",
            "a b/c",
            "a/b:Q4 K",
            "https://user@host/x.gguf",
            "https://host/x.bin",
            "http:///x.gguf",
            "a/b:c:d",
        ];
        for name in names {
            assert!(parsed(name).is_err(), "{name}");
        }
    }
}
