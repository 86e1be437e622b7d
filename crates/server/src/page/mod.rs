//! The page at `/` and its files, all of them in the binary: nothing is built before and nothing
//! is loaded from elsewhere. Anyone may read them; what they ask the API for needs the key.

use crate::api::refused;
use crate::models::Models;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The page runs its own files only, asks this server only, shows no other's pages, and no text
/// becomes markup or a script: browsers that know trusted types refuse it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the page.
struct PageFile {
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const INDEX: PageFile =
    PageFile { name: "index.html", content_type: HTML, text: include_str!("index.html") };

macro_rules! files {
    ($($name:literal $content_type:ident),* $(,)?) => {
        [$(PageFile { name: $name, content_type: $content_type, text: include_str!($name) }),*]
    };
}

/// What `/` loads, from `/motley/page/`.
const FILES: [PageFile; 15] = files![
    "icon.svg" PICTURE,
    "style.css" STYLE,
    "answers.css" STYLE,
    "panel.css" STYLE,
    "theme.js" SCRIPT,
    "app.js" SCRIPT,
    "api.js" SCRIPT,
    "blocks.js" SCRIPT,
    "chat.js" SCRIPT,
    "dashboard.js" SCRIPT,
    "dom.js" SCRIPT,
    "history.js" SCRIPT,
    "inline.js" SCRIPT,
    "settings.js" SCRIPT,
    "turns.js" SCRIPT,
];

/// The page and its files.
pub(crate) fn router() -> Router<Arc<Models>> {
    Router::new().route("/", get(page)).route("/motley/page/{name}", get(file))
}

async fn page(headers: HeaderMap) -> Response {
    answer(&INDEX, &headers)
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => answer(file, &headers),
        None => refused::not_found().await.into_response(),
    }
}

/// The file, or that it has not changed. Browsers ask each time, so that a new version of the
/// server is never shown with files of the old one.
fn answer(file: &PageFile, headers: &HeaderMap) -> Response {
    let tag = tag(file.text);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let same = known.is_some_and(|known| known.split(',').any(|one| is_same(one, &tag)));
    let always: [(HeaderName, HeaderValue); 2] = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    let tagged = [(header::ETAG, tag)];
    if same {
        return (StatusCode::NOT_MODIFIED, always, tagged).into_response();
    }
    (always, tagged, [(header::CONTENT_TYPE, file.content_type)], file.text).into_response()
}

/// A name for this very text.
fn tag(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

/// A proxy that compresses makes tags weak.
fn is_same(known: &str, tag: &str) -> bool {
    let known = known.trim();
    known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tags: &'static str) -> StatusCode {
        let headers = [(header::IF_NONE_MATCH, HeaderValue::from_static(tags))];
        answer(&INDEX, &HeaderMap::from_iter(headers)).status()
    }

    #[test]
    fn a_file_is_sent_once() {
        let sent = answer(&INDEX, &HeaderMap::new());
        assert_eq!(sent.status(), StatusCode::OK);
        let tag = tag(INDEX.text);
        assert_eq!(sent.headers()[header::ETAG], tag);
        let both: &'static str = format!("\"other\", W/{tag}").leak();
        assert_eq!(asked(both), StatusCode::NOT_MODIFIED);
        assert_eq!(asked("*"), StatusCode::NOT_MODIFIED);
        assert_eq!(asked("\"other\""), StatusCode::OK);
    }

    /// No file asks for another that is not there, and none names another server.
    #[test]
    fn files_name_files_that_are_there() {
        let all = || FILES.iter().chain([&INDEX]);
        for file in all() {
            let quoted = file.text.split('"').skip(1).step_by(2);
            let own = quoted.filter_map(|word| {
                word.strip_prefix("motley/page/").or_else(|| word.strip_prefix("./"))
            });
            for name in own {
                assert!(all().any(|one| one.name == name), "{} names {name}", file.name);
            }
            assert!(!file.text.contains("innerHTML"), "{}", file.name);
            assert!(!file.text.contains(" style=\""), "{}", file.name);
        }
    }
}
