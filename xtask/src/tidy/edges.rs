//! Rule: crates depend only on the floors below them (DESIGN, "the house"; ARCHITECTURE.md).
//!
//! Judgement never touches the world; hands never choose; only drivers know both. The table
//! lists every edge that may exist; an edge or a crate that is not in it is a finding, so a
//! change of the house begins here.

use super::{Finding, Tree};
use toml::{Table, Value};

/// What one crate may depend on.
struct Room {
    /// Package name without the `motley-` prefix.
    name: &'static str,
    /// Crates of this workspace it may use.
    uses: &'static [&'static str],
    /// Crates of this workspace only its tests may use in addition.
    tests_use: &'static [&'static str],
}

const fn room(name: &'static str, uses: &'static [&'static str]) -> Room {
    Room { name, uses, tests_use: &[] }
}

const fn tested(mut room: Room, tests_use: &'static [&'static str]) -> Room {
    room.tests_use = tests_use;
    room
}

const NOUNS_JUDGEMENT_AND_HANDS: &[&str] = &[
    "model", "machine", "trace", "profile", "cost", "plan", "sched", "ggml", "store", "host",
    "npu", "wire",
];

/// What tests share: any crate may use it in tests, none but the automation otherwise.
const TESTKIT: &str = "testkit";

/// The house, floor by floor. Nothing may depend on `xtask`.
const HOUSE: &[Room] = &[
    // nouns
    room("model", &[]),
    room("machine", &[]),
    room("trace", &["model"]),
    room("profile", &["model", "machine", "trace"]),
    // judgement: nouns and the judgement before it
    room("cost", &["model", "machine", "trace", "profile"]),
    room("sched", &["model", "machine", "trace", "profile", "cost"]),
    room("plan", &["model", "machine", "trace", "profile", "cost", "sched"]),
    // hands: nouns only
    room("store", &["model", "machine", "trace", "profile"]),
    // The one edge between hands: ggml computes from slots only with store's leases on them.
    room("ggml", &["model", "machine", "trace", "profile", "store"]),
    room("host", &["model", "machine", "trace", "profile"]),
    room("npu", &["model", "machine", "trace", "profile"]),
    room("hub", &["model", "machine", "trace", "profile"]),
    room("wire", &["model", "machine", "trace", "profile"]),
    // drivers: sim and reproduce have no hands
    tested(room("engine", NOUNS_JUDGEMENT_AND_HANDS), &["sim"]),
    room("sim", &["model", "machine", "trace", "profile", "cost", "plan", "sched"]),
    room("reproduce", &["model", "machine", "trace", "profile", "cost", "plan", "sched", "sim"]),
    // The engine's own parts in virtual time.
    room("faultsim", &["cost", "model", "trace", "sched", "store", "engine"]),
    room("calibrate", NOUNS_JUDGEMENT_AND_HANDS),
    // doors: drivers, and the nouns they speak of
    room("server", &["model", "machine", "trace", "profile", "engine", "calibrate"]),
    // The door that other machines of ours come through.
    room("worker", &["model", "engine", "wire"]),
    room(
        "cli",
        &[
            "model",
            "machine",
            "trace",
            "profile",
            "cost",
            "plan",
            "sched",
            "engine",
            "sim",
            "reproduce",
            "calibrate",
            "server",
            // Files by name are no engine's business; the door fetches them before one starts.
            "hub",
            // Keys, and who is met by a code, are the user's business.
            "wire",
            "worker",
        ],
    ),
    // The one door that speaks to ggml itself: it comes in through it.
    room("dropin", &["model", "trace", "plan", "ggml", "engine", "calibrate"]),
    // outside the floors: what tests share, and automation
    room(TESTKIT, &["model"]),
    room("xtask", &["model", "cost", "plan", "host", TESTKIT]),
];

/// Edges and crates that are not in the table.
pub fn check(tree: &Tree) -> Vec<Finding> {
    // Below `build/` manifests say what is fetched; they are no crates of the house.
    let crates = |dir: &str| dir != "fuzz" && !dir.contains("/fuzz") && !dir.starts_with("build/");
    let manifest = |path: &str| path.strip_suffix("/Cargo.toml").is_some_and(crates);
    tree.files()
        .iter()
        .filter(|file| manifest(&file.path))
        .flat_map(|file| match file.text.parse::<Table>() {
            Ok(table) => check_manifest(&file.path, &table),
            Err(error) => vec![Finding::file(&file.path, error.message())],
        })
        .collect()
}

fn check_manifest(path: &str, manifest: &Table) -> Vec<Finding> {
    let package = manifest.get("package").and_then(|package| package.get("name"));
    let name = short(package.and_then(Value::as_str).unwrap_or_default());
    let Some(room) = HOUSE.iter().find(|room| room.name == name) else {
        let message = format!("crate `{name}` has no room in the table of tidy/edges.rs");
        return vec![Finding::file(path, message)];
    };
    let used = dependencies(manifest, &["dependencies", "build-dependencies"]);
    let in_tests = dependencies(manifest, &["dev-dependencies"]);
    let bad_use = used.into_iter().filter(|dep| !room.uses.contains(&dep.as_str()));
    let bad_test = in_tests.into_iter().filter(|dep| {
        let known = room.uses.iter().chain(room.tests_use).any(|used| used == dep);
        !known && dep != name && dep != TESTKIT
    });
    bad_use
        .map(|dep| format!("`{name}` may not depend on `{dep}` (table in tidy/edges.rs)"))
        .chain(bad_test.map(|dep| format!("tests of `{name}` may not use `{dep}`")))
        .map(|message| Finding::file(path, message))
        .collect()
}

/// Crates of this workspace in the named sections, also the sections under `target`.
fn dependencies(manifest: &Table, sections: &[&str]) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = targets.into_iter().flat_map(|t| t.values().filter_map(Value::as_table));
    std::iter::once(manifest)
        .chain(tables)
        .flat_map(|table| sections.iter().filter_map(|section| table.get(*section)?.as_table()))
        .flatten()
        .map(|(key, value)| value.get("package").and_then(Value::as_str).unwrap_or(key))
        .filter(|package| package.starts_with("motley-") || *package == "xtask")
        .map(|package| short(package).to_owned())
        .collect()
}

fn short(package: &str) -> &str {
    package.strip_prefix("motley-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, rest: &str) -> Vec<String> {
        let text = format!("[package]\nname = \"{name}\"\n{rest}");
        let tree = Tree::of_pairs(&[("crates/x/Cargo.toml", &text)]);
        check(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn edges_to_lower_floors_pass() {
        let none: Vec<String> = Vec::new();
        let deps = "[dependencies]\nmotley-model.workspace = true\nserde = \"1\"\n";
        assert_eq!(findings("motley-sched", deps), none);
        assert_eq!(findings("motley-ggml", deps), none);
        assert_eq!(findings("motley-engine", "[dependencies]\nmotley-ggml = \"0\"\n"), none);
    }

    #[test]
    fn judgement_and_the_simulator_have_no_hands() {
        let deps = "[dependencies]\nmotley-ggml.workspace = true\n";
        for name in ["motley-sim", "motley-sched", "motley-cost", "motley-model"] {
            assert_eq!(findings(name, deps).len(), 1, "{name}");
        }
    }

    #[test]
    fn hands_never_judge_however_the_edge_is_written() {
        for deps in [
            "[dependencies]\nmotley-sched.workspace = true\n",
            "[dependencies]\nother = { package = \"motley-sched\", path = \"../sched\" }\n",
            "[build-dependencies]\nmotley-cost = \"0\"\n",
            "[target.'cfg(unix)'.dependencies]\nmotley-plan = \"0\"\n",
            "[dev-dependencies]\nmotley-sim = \"0\"\n",
        ] {
            assert_eq!(findings("motley-store", deps).len(), 1, "{deps}");
        }
    }

    #[test]
    fn tests_may_use_more() {
        let deps = "[dev-dependencies]\nmotley-sim = { path = \"../sim\" }\n";
        assert!(findings("motley-engine", deps).is_empty());
        assert_eq!(findings("motley-sched", deps).len(), 1);
    }

    #[test]
    fn the_testkit_is_for_tests_and_automation_is_for_nobody() {
        for name in ["motley-engine", "motley-sched", "motley-model"] {
            let kit = "dependencies]\nmotley-testkit.workspace = true\n";
            assert!(findings(name, &format!("[dev-{kit}")).is_empty(), "{name}");
            assert_eq!(findings(name, &format!("[{kit}")).len(), 1, "{name}");
            for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
                assert_eq!(findings(name, &format!("[{section}]\nxtask = \"0\"\n")).len(), 1);
            }
        }
        let kit = "[dependencies]\nmotley-testkit.workspace = true\n";
        assert!(findings("xtask", kit).is_empty());
    }

    #[test]
    fn unknown_crates_and_bad_manifests_are_found() {
        assert_eq!(findings("motley-shed", "").len(), 1);
        assert_eq!(findings("motley-model", "[dependencies").len(), 1);
    }

    #[test]
    fn the_table_has_no_circle() {
        for (index, room) in HOUSE.iter().enumerate() {
            for used in room.uses {
                let below = HOUSE.iter().position(|other| other.name == *used);
                // `cli` uses `server`; both are doors, and the order of the table says which.
                assert!(below.is_some_and(|below| below < index), "{} uses {used}", room.name);
            }
        }
    }
}
