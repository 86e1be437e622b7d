//! The doors to this machine: `doctor` speaks to people and programs.

mod support;

use serde_json::Value;
use support::motley;

#[test]
fn doctor_fits_eighty_columns_and_speaks_json() {
    let output = motley(&["doctor"]);
    assert!(output.status.success());
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!page.contains('\u{1b}'), "colours in a pipe: {page}");
    for topic in ["Processor", "Memory", "Disk", "Direct reads", "GPU", "Energy meter", "Sandbox"] {
        assert!(page.contains(topic), "no {topic} in {page}");
    }
    let output = motley(&["doctor", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json["cores"].as_u64().is_some_and(|cores| cores > 0), "{json}");
    assert!(json["sandbox"]["seccomp"].is_boolean(), "{json}");
    assert!(json["lines"].as_array().is_some_and(|lines| lines.len() > 8), "{json}");
}

#[test]
fn doctor_names_a_path_that_is_not_there() {
    let output = motley(&["doctor", "no-such-model.gguf"]);
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.contains("no-such-model.gguf: no such file or folder"), "{error}");
}

#[test]
fn calibrate_keeps_what_it_measured_in_new_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("this.toml");
    let file = file.to_str().expect("UTF-8");
    let disk = folder.path().to_str().expect("UTF-8");
    let args =
        ["calibrate", "--seconds", "2", "--threads", "1", "--disk", disk, "-o", file, "--json"];
    let output = motley(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let measured = &json["calibration"];
    assert!(measured["memory"][0]["gb_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{json}");
    assert!(measured["disk"]["gb_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{json}");
    let experts = measured["expert"].as_array().expect("experts");
    for quantisation in ["q4_0", "q4_K", "q8_0", "mxfp4", "f16"] {
        let found = experts.iter().find(|cost| cost["quantisation"] == quantisation);
        let found = found.unwrap_or_else(|| panic!("no {quantisation} in {json}"));
        assert!(found["measured"][0]["took_us"].as_f64().is_some_and(|us| us > 0.0), "{found}");
    }
    let text = std::fs::read_to_string(file).expect("a file");
    let read = motley_cost::CalibrationFile::parse(&text, file).expect("a calibration");
    assert_eq!(read.machine.provenance, motley_machine::Provenance::Measured);
    // What is there is never written over.
    let again = motley(&args);
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already"));
    assert_eq!(std::fs::read_to_string(file).expect("a file"), text);
}

#[test]
fn a_profile_tells_how_far_one_text_speaks_for_another() {
    let Some(model) = support::shared("tiny-wiki-moe/tiny-wiki-moe-q8_0.gguf") else { return };
    let Some(wiki) = support::shared("tiny-wiki-moe/val.txt") else { return };
    let Some(plays) = support::shared("tiny-wiki-moe/shakespeare_val.txt") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("p.jsonl");
    let paths = [&model, &wiki, &plays, &file].map(|path| path.to_str().expect("UTF-8"));
    let args = [
        "calibrate",
        paths[0],
        "--text",
        paths[1],
        paths[2],
        "--read",
        "1500",
        "--decode",
        "16",
        "--context",
        "512",
        "--threads",
        "1",
        "-o",
        paths[3],
    ];
    let output = motley(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(
        page.lines().all(|line| line.contains("Kept in") || line.chars().count() <= 80),
        "{page}"
    );
    let reader = std::io::BufReader::new(std::fs::File::open(&file).expect("a file"));
    let profile = motley_profile::Profile::read(reader).expect("a profile");
    let origin = &profile.header.origin;
    assert_eq!(origin.sources, ["val.txt", "shakespeare_val.txt"]);
    assert_eq!(origin.prefill_tokens, 3000);
    assert!(origin.decode_tokens > 0 && profile.header.reuse.is_known());
    let overlap = |against: &str| {
        let prefill = |o: &&motley_profile::Overlap| o.phase == motley_trace::Phase::Prefill;
        let of = |o: &&motley_profile::Overlap| o.against == against;
        profile.header.overlaps.iter().filter(prefill).find(of).expect("an overlap").mean
    };
    let (held_out, across) = (overlap("the held-out fifth"), overlap("shakespeare_val.txt"));
    assert!(held_out > across, "unseen text of the same kind is closer: {held_out} {across}");
    assert_eq!(profile.header.chosen, None, "every expert was in one memory");
    // Rules nobody has, and where they are written.
    let text = std::fs::read_to_string(&file).expect("a file");
    let arrangement = r#"{"machine":"m","from_disk":true,"ram":0.5,"devices":0.0}"#;
    let chosen = format!(
        r#","chosen":{{"arrangement":{arrangement},"policy":"magic","prefetch":"none","gain":0.1,"tokens":9}}}}"#
    );
    let (header, layers) = text.split_once('\n').expect("lines");
    let header = header.strip_suffix('}').expect("JSON");
    std::fs::write(&file, format!("{header}{chosen}\n{layers}")).expect("a file");
    let output = motley(&["plan", paths[0], "--profile", paths[3]]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(paths[3]), "{said}");
    assert!(said.contains("unknown cache policy `magic`"), "{said}");
}

#[test]
fn a_profile_keeps_what_replay_of_it_chose() {
    let Some(model) = support::shared("tiny-wiki-moe/tiny-wiki-moe-q8_0.gguf") else { return };
    let Some(wiki) = support::shared("tiny-wiki-moe/val.txt") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("p.jsonl");
    let [model, wiki, file] = [&model, &wiki, &file].map(|path| path.to_str().expect("UTF-8"));
    let small = ["--memory", "210M", "--context", "512", "--threads", "1"];
    let record =
        ["calibrate", model, "--text", wiki, "--read", "600", "--decode", "48", "-o", file];
    let output = motley(&[&record[..], &small].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let page = String::from_utf8(output.stdout).expect("text");
    assert!(page.contains("Fastest") && page.contains("Held out"), "{page}");
    let reader = std::io::BufReader::new(std::fs::File::open(file).expect("a file"));
    let profile = motley_profile::Profile::read(reader).expect("a profile");
    let plan = motley(&[&["plan", model, "--profile", file][..], &small].concat());
    let plan = String::from_utf8(plan.stdout).expect("text");
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(page.contains("kept"), profile.header.chosen.is_some(), "{page}");
    assert_eq!(plan.contains("chosen by replay"), profile.header.chosen.is_some(), "{plan}");
}
