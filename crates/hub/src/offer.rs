//! What can be fetched for a name: every model of a repository, or the one behind a URL, with its
//! files, sizes and checksums. Asks for lists and single bytes, never for weights.

use crate::address::encoded;
use crate::error::FetchError;
use crate::http::{Client, Span};
use crate::limits::{CONNECTIONS, MAX_FILE_BYTES, MAX_FILES, MAX_PAGES};
use crate::listing::{Entry, ListedFile, ListingError, Revision, is_hex};
use crate::name::{HubName, RepoId, UrlName};
use crate::parallel;
use crate::variants::{Part, SelectError, Variant, group, select, typed};
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// Why nothing is offered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// The server did not answer as it should.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// What it lists cannot be used.
    #[error("{repo}: cannot be used: {source}")]
    Listing { repo: String, source: ListingError },
    /// More files than anybody needs.
    #[error("{repo}: lists more than {MAX_FILES} files or {MAX_PAGES} pages")]
    TooMany { repo: String },
    /// A file listed twice.
    #[error("{repo}: lists {path:?} twice")]
    Twice { repo: String, path: String },
    /// Not the model asked for.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A server that does not say how long a file is.
    #[error("{url}: the server names no length, or one beyond {MAX_FILE_BYTES} bytes")]
    Length { url: String },
    /// Checksums that do not belong to the parts.
    #[error("--sha256: {given} for {parts} parts; give one for each part, in order")]
    Checksums { given: usize, parts: u64 },
    /// A checksum that is none.
    #[error("--sha256 {given:?}: not 64 hexadecimal digits")]
    Checksum { given: String },
}

/// A file that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Inside its repository, or its name alone.
    pub path: String,
    pub url: String,
    pub bytes: u64,
    /// In hexadecimal digits, where it is known.
    pub sha256: Option<String>,
    /// What its bytes are kept under: hexadecimal digits.
    pub etag: String,
}

/// Where an offer comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A commit of a repository.
    Hub { repo: RepoId, commit: String },
    /// Any server.
    Url(UrlName),
}

/// Models that can be fetched.
#[derive(Debug, Clone)]
pub struct Offer {
    pub source: Source,
    /// Every model there, smallest first.
    pub variants: Vec<Variant>,
    /// Which of them the name means: one, or all of them.
    pub candidates: Vec<usize>,
    files: Vec<RemoteFile>,
}

impl Offer {
    /// What the hub has under a name.
    pub fn of_hub(client: &Client, name: &HubName) -> Result<Self, OfferError> {
        let repo = &name.repo;
        let bad = |source| OfferError::Listing { repo: repo.to_string(), source };
        let api = format!("{}/api/models/{repo}", client.endpoint());
        let (revision, _) = client.json::<Revision>(&format!("{api}/revision/main"))?;
        let commit = revision.commit().map_err(bad)?;
        let listed = list(client, repo, &format!("{api}/tree/{commit}?recursive=true"))?;
        Self::of_listing(client.endpoint(), name, commit, listed)
    }

    /// What a listing holds for a name; asks nobody.
    pub fn of_listing(
        endpoint: &str,
        name: &HubName,
        commit: String,
        listed: Vec<ListedFile>,
    ) -> Result<Self, OfferError> {
        let repo = &name.repo;
        let base = format!("{endpoint}/{repo}/resolve/{commit}");
        let remote = |file: ListedFile| RemoteFile {
            url: format!("{base}/{}", encoded(&file.path)),
            path: file.path,
            bytes: file.bytes,
            sha256: file.sha256,
            etag: file.etag,
        };
        let files: Vec<RemoteFile> = listed.into_iter().map(remote).collect();
        let variants = group(files.iter().map(|file| (file.path.as_str(), file.bytes)))?;
        let candidates = select(repo.as_str(), &variants, &name.wanted)?;
        Ok(Self { source: Source::Hub { repo: repo.clone(), commit }, variants, candidates, files })
    }

    /// What lies at a URL, all parts; `sha256` is what the user knows of them.
    pub fn of_url(client: &Client, url: &UrlName, sha256: &[String]) -> Result<Self, OfferError> {
        let part = Part::of(&url.file);
        if !sha256.is_empty() && sha256.len() as u64 != part.count {
            return Err(OfferError::Checksums { given: sha256.len(), parts: part.count });
        }
        let digest = |number: u64| sha256.get(number as usize - 1).map(|given| checksum(given));
        let numbers: Vec<u64> = (1..=part.count).collect();
        let files = parallel::each(&numbers, CONNECTIONS, |number, _| {
            probe(client, url, &part.path(*number), digest(*number).transpose()?)
        })?;
        let variants = group(files.iter().map(|file| (file.path.as_str(), file.bytes)))?;
        Ok(Self { source: Source::Url(url.clone()), variants, candidates: vec![0], files })
    }

    /// The files of a variant, parts in order; all of them, or an error.
    pub fn parts(&self, variant: usize) -> Result<Vec<RemoteFile>, SelectError> {
        let variant = &self.variants[variant];
        if !variant.is_whole() {
            let (have, count) = (variant.files.len(), variant.count);
            let name = variant.label.clone();
            return Err(SelectError::Parts { of: self.to_string(), name, have, count });
        }
        Ok(variant.files.iter().map(|index| self.files[*index].clone()).collect())
    }

    /// What to type for a variant.
    pub fn name_of(&self, variant: usize) -> String {
        match &self.source {
            Source::Hub { repo, .. } => format!("{repo}:{}", typed(repo, &self.variants, variant)),
            Source::Url(url) => url.to_string(),
        }
    }
}

impl std::fmt::Display for Offer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Source::Hub { repo, .. } => write!(f, "{repo}"),
            Source::Url(url) => write!(f, "{url}"),
        }
    }
}

/// Every GGUF file of a tree, page by page.
fn list(client: &Client, repo: &RepoId, first: &str) -> Result<Vec<ListedFile>, OfferError> {
    let (mut files, mut seen, mut entries) = (Vec::new(), HashSet::new(), 0);
    let mut page = Some(first.to_owned());
    for _ in 0..MAX_PAGES {
        let Some(url) = page else { return Ok(files) };
        let (listed, next) = client.json::<Vec<Entry>>(&url)?;
        entries += listed.len();
        if entries > MAX_FILES {
            break;
        }
        for entry in listed {
            let bad = |source| OfferError::Listing { repo: repo.to_string(), source };
            let Some(file) = entry.model_file().map_err(bad)? else { continue };
            if !seen.insert(file.path.clone()) {
                return Err(OfferError::Twice { repo: repo.to_string(), path: file.path });
            }
            files.push(file);
        }
        page = next;
    }
    Err(OfferError::TooMany { repo: repo.to_string() })
}

/// Length and version of a file, from its first byte.
fn probe(
    client: &Client,
    url: &UrlName,
    file: &str,
    sha256: Option<String>,
) -> Result<RemoteFile, OfferError> {
    let whole = format!("{}{file}{}", url.folder, url.query);
    let piece = client.retry.until(|| client.piece(&whole, Span { from: 0, most: Some(1) }))?;
    let bytes = piece.whole_bytes.filter(|bytes| *bytes <= MAX_FILE_BYTES);
    let bytes = bytes.ok_or_else(|| OfferError::Length { url: piece.url.clone() })?;
    let version = format!("{bytes} {}", piece.etag.unwrap_or_default());
    let etag = hex(&Sha256::digest(version));
    Ok(RemoteFile { path: file.to_owned(), url: whole, bytes, sha256, etag })
}

fn checksum(given: &str) -> Result<String, OfferError> {
    let digits = given.trim().to_ascii_lowercase();
    match is_hex(&digits, 64) {
        true => Ok(digits),
        false => Err(OfferError::Checksum { given: given.to_owned() }),
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
