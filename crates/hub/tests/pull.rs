//! Models fetched from a local hub: whole, in parts, through broken connections, beside another
//! process, from a URL; never a file under its name that is not right.

#![allow(clippy::disallowed_methods, reason = "a test may own threads")]

mod support;

use motley_hub::{
    HubName, KeptError, ModelName, Offer, Pull, PullError, Silent, Wanted, find, list, removal,
};
use motley_model::ModelSpec;
use motley_testkit::hub::{COMMIT, sha256};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use support::{
    Counted, PARTS, REPO, World, client, ending, fetch, model, model_name, name, same_bytes,
};

#[test]
fn twenty_parts_come_whole_and_lie_as_other_tools_expect() {
    let world = World::new();
    let settings = world.settings();
    let counted = Counted::default();
    let path = fetch(&settings, &counted).unwrap();
    assert!(same_bytes(&path, &world.model));
    let folder = settings.hub_cache.join("models--owner--Small-GGUF");
    assert_eq!(std::fs::read_to_string(folder.join("refs/main")).unwrap(), COMMIT);
    let pointer = folder.join("snapshots").join(COMMIT).join("small-Q4_0-00001-of-00020.gguf");
    assert_eq!(path, pointer);
    let blob = Path::new("../../blobs").join(sha256(&world.model).unwrap());
    assert_eq!(std::fs::read_link(&pointer).unwrap(), blob);
    assert_eq!(ending(&folder, ".incomplete"), Vec::<std::path::PathBuf>::new());
    let bytes: u64 =
        ending(&folder.join("blobs"), "").iter().map(|b| b.metadata().unwrap().len()).sum();
    assert_eq!((counted.came(), counted.here()), (bytes, 0));

    // Again: nothing comes, and nothing is asked for but the list.
    let before = world.hub.log().len();
    let counted = Counted::default();
    fetch(&settings, &counted).unwrap();
    assert_eq!((counted.came(), counted.here()), (0, bytes));
    assert!(world.hub.log()[before..].iter().all(|asked| asked.path.starts_with("/api/")));
}

#[test]
fn headers_are_read_before_weights_and_describe_the_same_model() {
    let world = World::new();
    let settings = world.settings();
    let client = client(&settings);
    let offer = Offer::of_hub(&client, &name(REPO)).unwrap();
    let pull = Pull::new(&client, &settings, &offer, 0).unwrap();
    let headers = pull.headers().unwrap();
    let (spec, files) = ModelSpec::open(&world.model).unwrap();
    assert_eq!(headers, files.headers);
    assert_eq!(ModelSpec::from_headers(&headers).unwrap(), spec);
    assert_eq!(pull.files.len(), PARTS as usize);
    assert!(!world.hub.log().iter().any(|asked| asked.is_for_weights()));
}

#[test]
fn connections_that_break_at_random_bytes_are_resumed() {
    let world = World::new();
    world.hub.behave(|behaviour| behaviour.breaks = Some(7));
    let settings = world.settings();
    let counted = Counted::default();
    let path = fetch(&settings, &counted).unwrap();
    assert!(same_bytes(&path, &world.model));
    assert!(counted.again.load(Relaxed) >= 10, "{counted:?}");
    // Resumed, not begun again.
    assert_eq!(counted.lost(), 0);
    let resumed = |asked: &motley_testkit::hub::Asked| {
        asked.is_for_weights() && asked.range.as_deref().is_some_and(|range| range != "bytes=0-")
    };
    assert!(world.hub.log().iter().any(resumed));
}

#[test]
fn wrong_bytes_are_refused_and_not_kept() {
    let world = World::new();
    let damaged = "small-Q4_0-00007-of-00020.gguf";
    world.hub.behave(|behaviour| behaviour.damages = Some(damaged.to_owned()));
    let settings = world.settings();
    let error = fetch(&settings, &Silent).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error.downcast_ref(), Some(PullError::Checksum { .. })), "{said}");
    assert!(said.contains(damaged) && said.contains("checksum"), "{said}");
    let blob = sha256(&world.model.with_file_name("model-00007-of-00020.gguf")).unwrap();
    let blobs = settings.hub_cache.join("models--owner--Small-GGUF/blobs");
    assert!(!blobs.join(&blob).exists() && !blobs.join(format!("{blob}.incomplete")).exists());
    // Not a model that is here, either.
    assert!(matches!(find(&settings, &model_name(REPO)), Err(KeptError::NotHere { .. })));

    world.hub.behave(|behaviour| behaviour.damages = None);
    assert!(same_bytes(&fetch(&settings, &Silent).unwrap(), &world.model));
}

#[test]
fn a_damaged_beginning_from_before_comes_again() {
    let world = World::with_parts(1);
    let settings = world.settings();
    let blobs = settings.hub_cache.join("models--owner--Small-GGUF/blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    let blob = sha256(&world.model).unwrap();
    std::fs::write(blobs.join(format!("{blob}.incomplete")), vec![7; 100_000]).unwrap();
    let counted = Counted::default();
    let path = fetch(&settings, &counted).unwrap();
    assert!(same_bytes(&path, &world.model));
    assert_eq!(counted.here(), 100_000);
    assert_eq!(counted.lost(), world.model.metadata().unwrap().len());
}

#[test]
fn a_server_without_ranges_works_too() {
    let world = World::with_parts(2);
    world.hub.behave(|behaviour| {
        behaviour.ignores_ranges = true;
        behaviour.breaks = Some(3);
    });
    let settings = world.settings();
    let client = client(&settings);
    let offer = Offer::of_hub(&client, &name(REPO)).unwrap();
    let pull = Pull::new(&client, &settings, &offer, 0).unwrap();
    assert_eq!(pull.headers().unwrap().len(), 2);
    assert!(same_bytes(&pull.fetch(&Silent).unwrap(), &world.model));
}

#[test]
fn two_at_once_fetch_every_byte_once() {
    let world = World::new();
    world.hub.behave(|behaviour| behaviour.bytes_per_s = Some(4 << 20));
    let settings = world.settings();
    let (one, two) = (Counted::default(), Counted::default());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| fetch(&settings, &one).unwrap());
        let second = scope.spawn(|| fetch(&settings, &two).unwrap());
        assert_eq!(first.join().unwrap(), second.join().unwrap());
    });
    let path = find(&settings, &model_name(REPO)).unwrap().remove(0).path;
    assert!(same_bytes(&path, &world.model));
    let bytes: u64 = find(&settings, &model_name(REPO)).unwrap()[0].bytes;
    assert_eq!(one.came() + two.came(), bytes);
    assert!(one.waits.load(Relaxed) + two.waits.load(Relaxed) > 0);
}

#[test]
fn a_url_is_fetched_with_all_its_parts() {
    let world = World::with_parts(3);
    let settings = world.settings();
    let client = client(&settings);
    let first =
        format!("{}/plain/{REPO}/small-Q4_0-00001-of-00003.gguf?key=s", world.hub.endpoint());
    let ModelName::Url(url) = model_name(&first) else { panic!("a URL") };
    let part = |n: u32| world.model.with_file_name(format!("model-{n:05}-of-00003.gguf"));
    let sums: Vec<String> = (1..=3).map(|n| sha256(&part(n)).unwrap()).collect();
    let offer = Offer::of_url(&client, &url, &sums).unwrap();
    let pull = Pull::new(&client, &settings, &offer, 0).unwrap();
    assert_eq!(pull.headers().unwrap().len(), 3);
    let path = pull.fetch(&Silent).unwrap();
    assert!(same_bytes(&path, &world.model));
    assert!(path.starts_with(&settings.url_cache));
    // Whatever the query, it is the same model; the secret in it is not kept.
    let again = model_name(first.split('?').next().unwrap());
    assert_eq!(find(&settings, &again).unwrap()[0].path, path);
    let listed = list(&settings).unwrap();
    assert!(listed[0].is_whole() && !listed[0].name.contains("key="), "{listed:?}");

    let wrong = vec!["0".repeat(64); 3];
    removal(&settings, &again).unwrap().run().unwrap();
    assert_eq!(list(&settings).unwrap(), []);
    let offer = Offer::of_url(&client, &url, &wrong).unwrap();
    let pull = Pull::new(&client, &settings, &offer, 0).unwrap();
    assert!(matches!(pull.fetch(&Silent), Err(PullError::Checksum { .. })));
    assert!(matches!(find(&settings, &again), Err(KeptError::NotHere { .. })));
    assert!(Offer::of_url(&client, &url, &wrong[..1]).is_err(), "one for three parts");
}

#[test]
fn what_is_here_is_found_listed_and_removed_with_what_nothing_else_links_to() {
    let world = World::with_parts(2);
    let other = model(&world.folder.path().join("other"), 1);
    world.hub.add_model(REPO, "small-Q8_0", &other).unwrap();
    // The same bytes under another name.
    world.hub.add_model(REPO, "small-F16", &other).unwrap();
    let settings = world.settings();
    let client = client(&settings);
    for quant in ["Q4_0", "Q8_0", "F16"] {
        let offer = Offer::of_hub(&client, &name(&format!("{REPO}:{quant}"))).unwrap();
        let pull = Pull::new(&client, &settings, &offer, offer.candidates[0]).unwrap();
        pull.fetch(&Silent).unwrap();
    }
    let listed = list(&settings).unwrap();
    let names: Vec<(&str, u64, bool)> =
        listed.iter().map(|kept| (kept.label.as_str(), kept.count, kept.is_whole())).collect();
    assert_eq!(names, [("F16", 1, true), ("Q4_0", 2, true), ("Q8_0", 1, true)]);

    let of = |quant: &str| {
        let wanted = Wanted::Quantisation(quant.to_owned());
        ModelName::Hub(HubName { wanted, ..name(REPO) })
    };
    let shared = removal(&settings, &of("F16")).unwrap();
    assert_eq!((shared.freed_bytes, shared.shared_bytes), (0, other.metadata().unwrap().len()));
    shared.run().unwrap();
    assert!(matches!(find(&settings, &of("F16")), Err(KeptError::NotHere { .. })));
    assert!(same_bytes(&find(&settings, &of("Q8_0")).unwrap()[0].path, &other));
    let last = removal(&settings, &of("Q8_0")).unwrap();
    assert_eq!(last.freed_bytes, other.metadata().unwrap().len());
    last.run().unwrap();
    removal(&settings, &model_name(REPO)).unwrap().run().unwrap();
    assert!(!settings.hub_cache.join("models--owner--Small-GGUF").exists());
    assert!(matches!(removal(&settings, &model_name(REPO)), Err(KeptError::NotHere { .. })));
}
