//! What each path of the hub is answered with. Knows the protocol; sends nothing itself.
//!
//! | path | answer |
//! |---|---|
//! | `/api/models/{repo}/revision/{revision}` | the commit |
//! | `/api/models/{repo}/tree/{commit}` | the files, with sizes and checksums |
//! | `/{repo}/resolve/{revision}/{path}` | a redirect to the host of the bytes |
//! | `/bytes/{repo}/{path}` there | the bytes, in ranges |
//! | `/plain/{repo}/{path}` | the bytes at once, as any server would give them |

use super::message::{Reply, Request, Stored};
use super::state::State;
use serde_json::{Value, json};

/// The commit of every repository.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The answer to one request.
pub(super) fn answer(state: &State, request: &Request) -> Reply {
    let behaviour = state.behaviour();
    if let Some(reply) = behaviour.instead.as_ref().and_then(|instead| instead(request)) {
        return reply;
    }
    let wanted = behaviour.wants_token.as_ref().map(|token| format!("Bearer {token}"));
    if request.endpoint && wanted.is_some() && request.header("authorization") != wanted.as_deref()
    {
        return Reply::status(401);
    }
    drop(behaviour);
    let path = request.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["api", "models", owner, name, "revision", _] => {
            let repo = format!("{owner}/{name}");
            known(state, &repo, || json!({ "id": repo, "sha": COMMIT }))
        }
        ["api", "models", owner, name, "tree", _] => {
            let repo = format!("{owner}/{name}");
            known(state, &repo, || tree(state, &repo))
        }
        [owner, name, "resolve", _, ..] => {
            let repo = format!("{owner}/{name}");
            redirect(state, &repo, &parts[4..].join("/"))
        }
        ["bytes" | "plain", owner, name, ..] => {
            let key = (format!("{owner}/{name}"), parts[3..].join("/"));
            match state.files().get(&key) {
                Some(stored) => bytes(state, request, &key.1, stored),
                None => Reply::status(404),
            }
        }
        _ => Reply::status(404),
    }
}

fn known(state: &State, repo: &str, answer: impl FnOnce() -> Value) -> Reply {
    let is_there = state.files().keys().any(|(known, _)| known == repo);
    if is_there { Reply::json(&answer()) } else { Reply::status(404) }
}

fn tree(state: &State, repo: &str) -> Value {
    let files = state.files();
    let own = files.iter().filter(|((of, _), _)| of == repo);
    own.map(|((_, path), stored)| {
        json!({
            "type": "file", "path": path, "size": stored.bytes, "oid": &stored.sha256[..40],
            "lfs": { "oid": stored.sha256, "size": stored.bytes, "pointerSize": 135 },
        })
    })
    .collect()
}

fn redirect(state: &State, repo: &str, path: &str) -> Reply {
    let Some(stored) = state.files().get(&(repo.to_owned(), path.to_owned())).cloned() else {
        return Reply::status(404).with("x-error-code", "EntryNotFound");
    };
    let location = format!("http://{}/bytes/{repo}/{path}?signature=secret", state.bytes_host);
    Reply::status(302)
        .with("location", &location)
        .with("x-repo-commit", COMMIT)
        .with("x-linked-etag", &format!("\"{}\"", stored.sha256))
        .with("x-linked-size", &stored.bytes.to_string())
        .with("etag", &format!("\"{}\"", stored.sha256))
}

fn bytes(state: &State, request: &Request, path: &str, stored: &Stored) -> Reply {
    let etag = format!("\"{}\"", stored.sha256);
    let ranges = !state.behaviour().ignores_ranges;
    let whole = stored.bytes;
    let range = request.header("range").filter(|_| ranges).and_then(|range| {
        let (from, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        let last = last.parse().unwrap_or(u64::MAX).min(whole.saturating_sub(1));
        Some((from.parse::<u64>().ok()?, last))
    });
    let reply = match range {
        Some((from, last)) if from > last => {
            return Reply::status(416).with("content-range", &format!("bytes */{whole}"));
        }
        Some((from, last)) => Reply::file(206, stored.clone(), from, last + 1 - from)
            .with("content-range", &format!("bytes {from}-{last}/{whole}")),
        None => Reply::file(200, stored.clone(), 0, whole),
    };
    let damaged = state.behaviour().damages.as_deref() == Some(path);
    Reply { damaged, ..reply.with("etag", &etag).with("accept-ranges", "bytes") }
}
