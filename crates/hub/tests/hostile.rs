//! A hub that means harm: names that leave their folder, sizes no disk has, answers without an end,
//! redirects that collect tokens. Every one is an error in words, and nothing is written.

mod support;

use motley_hub::{FetchError, HeaderError, Offer, OfferError, Pull, Silent};
use motley_testkit::hub::{COMMIT, Hub, Reply, Request};
use serde_json::{Value, json};
use support::{REPO, World, client, fetch, name};

/// A hub whose tree is `tree`.
fn listing(tree: Value) -> World {
    let world = World::with_parts(1);
    instead(&world.hub, move |request| request.path.contains("/tree/").then(|| Reply::json(&tree)));
    world
}

fn instead(hub: &Hub, answer: impl Fn(&Request) -> Option<Reply> + Send + 'static) {
    hub.behave(|behaviour| behaviour.instead = Some(Box::new(answer)));
}

fn offered(world: &World) -> Result<Offer, OfferError> {
    Offer::of_hub(&client(&world.settings()), &name(REPO))
}

fn refused(world: &World, words: &str) {
    let error = fetch(&world.settings(), &Silent).expect_err(words).to_string();
    assert!(error.contains(words), "{error}");
    assert!(error.len() < 1000, "{error}");
    let written = support::ending(&world.settings().hub_cache, "");
    assert!(written.iter().all(|path| path.ends_with(".lock")), "{written:?}");
}

fn file(path: &str, size: u64) -> Value {
    json!({ "type": "file", "path": path, "size": size, "oid": "", "lfs": { "oid": "0".repeat(64), "size": size } })
}

#[test]
fn names_and_sizes_of_a_stranger_are_checked() {
    for path in ["../../../x.gguf", "/etc/x.gguf", "a/../../x.gguf", "a\\..\\x.gguf", "a\u{7}.gguf"]
    {
        refused(&listing(json!([file(path, 1)])), "outside its folder");
    }
    refused(&listing(json!([file("x.gguf", u64::MAX)])), "at most");
    refused(&listing(json!([file("x.gguf", 1), file("x.gguf", 2)])), "twice");
    refused(&listing(json!([file("x-00001-of-00003.gguf", 1)])), "1 of the 3 parts");
    refused(&listing(json!([])), "no GGUF model");
    refused(&listing(json!({ "error": "x" })), "cannot be used");
    // A disk for this is nowhere.
    refused(&listing(json!([file("x.gguf", 1 << 43)])), "HF_HUB_CACHE");
}

#[test]
fn a_commit_is_forty_digits() {
    let world = World::with_parts(1);
    instead(&world.hub, |request| {
        let sha = json!({ "sha": "../../../../tmp" });
        request.path.contains("/revision/").then(|| Reply::json(&sha))
    });
    refused(&world, "40 hexadecimal digits");
}

#[test]
fn answers_without_an_end_are_cut_off() {
    let world = World::with_parts(1);
    instead(&world.hub, |request| request.path.starts_with("/api/").then(Reply::endless));
    refused(&world, "more than the limit");
    let pages = World::with_parts(1);
    instead(&pages.hub, |request| {
        let link = format!("</api/models/{REPO}/tree/{COMMIT}?recursive=true>; rel=\"next\"");
        request.path.contains("/tree/").then(|| Reply::json(&json!([])).with("link", &link))
    });
    refused(&pages, "pages");
    let elsewhere = World::with_parts(1);
    instead(&elsewhere.hub, |request| {
        let link = "<http://elsewhere.example/x>; rel=\"next\"";
        request.path.contains("/tree/").then(|| Reply::json(&json!([])).with("link", link))
    });
    refused(&elsewhere, "next page");
}

#[test]
fn redirects_end_and_go_only_where_they_may() {
    for (to, words) in [
        ("/round", "one redirect too many"),
        ("file:///etc/passwd", "no URL that is followed"),
        ("", "no URL that is followed"),
    ] {
        let world = World::with_parts(1);
        instead(&world.hub, move |_| Some(Reply::status(302).with("location", to)));
        refused(&world, words);
    }
}

#[test]
fn a_token_is_shown_to_the_endpoint_alone() {
    let world = World::with_parts(1);
    world.hub.behave(|behaviour| behaviour.wants_token = Some("hf_secret".to_owned()));
    let denied = fetch(&world.settings(), &Silent).unwrap_err().to_string();
    assert!(denied.contains("HF_TOKEN"), "{denied}");
    let settings = world.settings_with(&[("HF_TOKEN", "hf_secret")]);
    fetch(&settings, &Silent).unwrap();
    let log = world.hub.log();
    let shown = |asked: &&motley_testkit::hub::Asked| asked.token.is_some();
    assert!(log.iter().filter(shown).count() >= 3);
    assert!(log.iter().filter(shown).all(|asked| asked.endpoint), "{log:?}");
    assert!(log.iter().any(|asked| !asked.endpoint), "{log:?}");
}

#[test]
fn a_header_that_is_none_or_another_range_is_refused() {
    let header_of = |answer: fn(&Request) -> Option<Reply>| {
        let world = World::with_parts(1);
        instead(&world.hub, answer);
        let settings = world.settings();
        let client = client(&settings);
        let offer = offered(&world).expect("a list");
        Pull::new(&client, &settings, &offer, 0).unwrap().headers().expect_err("refused")
    };
    let text = header_of(|request| {
        (!request.endpoint).then(|| Reply::bytes(200, b"<html>".repeat(1 << 20)))
    });
    assert!(matches!(text, HeaderError::Fetch(FetchError::Range { .. })), "{text}");
    let other = header_of(|request| {
        let range = "bytes 7-9/10";
        (!request.endpoint).then(|| Reply::bytes(206, vec![0; 3]).with("content-range", range))
    });
    assert!(matches!(other, HeaderError::Fetch(FetchError::Range { .. })), "{other}");
    // As long as the file, and no GGUF.
    let zeros = header_of(|request| (!request.endpoint).then(Reply::endless));
    assert!(matches!(zeros, HeaderError::Header { .. }), "{zeros}");
}

#[test]
fn a_file_that_grew_since_it_was_listed_is_refused() {
    let world = World::with_parts(1);
    instead(&world.hub, |request| {
        let range = "bytes 0-9/10";
        (!request.endpoint).then(|| Reply::bytes(206, vec![0; 10]).with("content-range", range))
    });
    let error = fetch(&world.settings(), &Silent).unwrap_err().to_string();
    assert!(error.contains("has 10 bytes now"), "{error}");
}

#[test]
fn what_a_server_says_beside_an_error_is_short_and_on_one_line() {
    let world = World::with_parts(1);
    let text = "no\nmotley: run `rm -rf ~`\n".repeat(1000);
    instead(&world.hub, move |_| Some(Reply::bytes(418, text.clone().into_bytes())));
    let error = fetch(&world.settings(), &Silent).unwrap_err().to_string();
    assert!(error.contains("418") && !error.contains('\n'), "{error}");
    assert!(error.len() < 600, "{error}");
}

#[test]
fn nothing_is_asked_when_the_environment_says_offline() {
    let world = World::with_parts(1);
    let settings = world.settings_with(&[("HF_HUB_OFFLINE", "1")]);
    let error = fetch(&settings, &Silent).unwrap_err().to_string();
    assert!(error.contains("HF_HUB_OFFLINE"), "{error}");
    assert_eq!(world.hub.log(), []);
}
