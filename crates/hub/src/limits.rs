//! What a stranger's server may say and send. No logic; every bound of this crate is here.

use std::time::Duration;

/// Bytes of one JSON answer (a page of a listing has about 300 bytes for each of 1000 files).
pub(crate) const MAX_JSON_BYTES: u64 = 8 << 20;
/// Pages of one listing.
pub(crate) const MAX_PAGES: usize = 50;
/// Files of one listing (the largest repositories of quantisations have a few hundred).
pub(crate) const MAX_FILES: usize = 20_000;
/// Bytes of one file; the hub itself takes 50 GB, other servers may have more.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 44;
/// Bytes of all files of one model.
pub(crate) const MAX_MODEL_BYTES: u64 = 1 << 46;
/// Bytes of a file's path in a repository, and of each of its parts, as file systems have it.
pub(crate) const MAX_PATH_BYTES: usize = 1024;
pub(crate) const MAX_PATH_PART_BYTES: usize = 200;
/// Bytes of a URL.
pub(crate) const MAX_URL_BYTES: usize = 8192;
/// Bytes of the headers of one HTTP answer.
pub(crate) const MAX_HTTP_HEADER_BYTES: usize = 64 << 10;
/// Redirects followed for one request; the hub needs two.
pub(crate) const MAX_REDIRECTS: usize = 5;
/// Bytes of one file's GGUF header that are fetched (tokenizers of 250 000 words take 20 MB).
pub(crate) const MAX_HEADER_BYTES: u64 = 128 << 20;
/// Bytes shown of what a server says beside an error.
pub(crate) const MAX_SAID_BYTES: u64 = 300;
/// Bytes of a file that holds a token.
pub(crate) const MAX_TOKEN_BYTES: u64 = 4096;
/// Parts of one model, as `motley_model` has it.
pub(crate) const MAX_PARTS: u64 = motley_model::MAX_SHARDS;

/// First request for a header, and how many bytes one may grow to. A header of 10 MB takes seven.
pub(crate) const FIRST_HEADER_BYTES: u64 = 128 << 10;
pub(crate) const MOST_HEADER_BYTES: u64 = 8 << 20;

/// Time to connect, to the first byte of an answer, and between two reads.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(20);
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(60);
pub(crate) const READ_TIME: Duration = Duration::from_secs(30);
/// Longest wait a server may ask for with `Retry-After`.
pub(crate) const MAX_ASKED_WAIT: Duration = Duration::from_secs(60);

/// A connection that brought this many bytes before it broke does not count as failed: what is
/// bounded is attempts without progress.
pub(crate) const PROGRESS_BYTES: u64 = 64 << 10;
/// Attempts of a request that is no download: four seconds in all.
pub(crate) const QUESTION_ATTEMPTS: u32 = 4;
/// Connections at once.
pub(crate) const CONNECTIONS: usize = 4;
