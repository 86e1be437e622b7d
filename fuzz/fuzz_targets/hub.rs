//! Any text as a model's name, and any bytes as what the hub lists under it: nothing panics, no file
//! leaves its folder, and what is offered is found again by the name it is shown under.
//!
//! The first line is the name, the rest one page of a listing.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use motley_hub::listing::{Entry, ListedFile};
use motley_hub::{HubName, ModelName, Offer};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (typed, page) = text.split_once('\n').unwrap_or((text, ""));
    let name = match ModelName::parse(Path::new(typed)) {
        Ok(ModelName::Hub(name)) => {
            assert_eq!(HubName::parse(&name.to_string()).as_ref(), Ok(&name));
            name
        }
        _ => HubName::parse("owner/repo").expect("a name"),
    };
    let Ok(entries) = serde_json::from_str::<Vec<Entry>>(page) else { return };
    let files: Vec<ListedFile> =
        entries.into_iter().filter_map(|entry| entry.model_file().ok().flatten()).collect();
    let inside =
        |path: &str| Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
    assert!(files.iter().all(|file| inside(&file.path) && inside(&file.etag)));
    offer(&name, files);
});

fn offer(name: &HubName, files: Vec<ListedFile>) {
    let of = |name: &HubName| {
        Offer::of_listing("https://hub.example", name, COMMIT.to_owned(), files.clone())
    };
    let Ok(offer) = of(name) else { return };
    for index in offer.candidates.iter().copied() {
        let Ok(parts) = offer.parts(index) else { continue };
        assert_eq!(parts.len() as u64, offer.variants[index].count);
        let shown = offer.name_of(index);
        let Ok(again) = HubName::parse(&shown) else { panic!("{shown} cannot be typed") };
        assert_eq!(of(&again).expect("the same files").candidates, [index], "{shown}");
    }
}
