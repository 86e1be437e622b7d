//! What the page on disk, RAM and GPUs at once says holds on a short version of it.

use motley_reproduce::compared::model::Model;
use motley_reproduce::compared::routing::{Length, Stream};
use motley_reproduce::machines::ASSUMED;
use motley_reproduce::tiers::models::MODELS;
use motley_reproduce::tiers::rows::row;
use motley_reproduce::tiers::systems::Pair;
use motley_reproduce::tiers::{GOAL, MACHINES, Row, figures_of};

const SHORT: Length = Length { counted: 96, decoded: 24, prompt: 64 };

fn rows(model: &Model, machines: &[&str], prompt: Option<u32>) -> Vec<Row> {
    let stream = Stream::of_length(model, 1.0, SHORT).expect("routing");
    let row = |name: &&str| {
        let machine = motley_machine::find(name).expect("a ready machine");
        row(&Pair { machine: &machine, model, stream: &stream, open: ASSUMED }, prompt)
    };
    machines.iter().map(row).collect::<Result<_, _>>().expect("a comparison")
}

/// Nobody is faster than the bound, and no lane is busy longer than the token.
fn is_possible(row: &Row) {
    let decode = &row.decode;
    let all = [decode.today, decode.split, decode.tiers, decode.pinned.unwrap_or(0.0)];
    let most = 1e3 / row.bound.token_ms;
    assert!(all.iter().all(|speed| *speed <= most), "{row:?}");
    assert!(decode.gain() <= row.most_gain(), "{row:?}");
    for lanes in [row.lanes, row.lanes_today] {
        let in_turn = lanes.dense_ms + lanes.cpu_ms;
        assert!(in_turn.max(lanes.disk_ms) <= 1.01 * lanes.token_ms, "{row:?}");
    }
}

#[test]
fn all_memories_beat_two_and_nobody_passes_the_bound() {
    for row in rows(&MODELS[0], &MACHINES, Some(64)) {
        is_possible(&row);
        let one_gpu_in_ram = !row.beyond_ram && row.machine == "desktop-16gb-gpu";
        if one_gpu_in_ram {
            assert_eq!(row.decode.gain(), 1.0, "there is no third memory: {row:?}");
            continue;
        }
        assert!(row.decode.gain() > 1.1, "{row:?}");
        assert!(row.decode.tiers > row.decode.split, "{row:?}");
        if row.beyond_ram {
            assert!(row.hits > row.hits_today && row.held > row.held_today, "{row:?}");
            assert!(row.decode.pinned.is_none(), "pinned experts need all in RAM");
        }
    }
}

#[test]
fn a_gpu_that_adds_much_to_ram_reaches_the_goal_and_one_that_adds_little_does_not() {
    let much = rows(&MODELS[2], &["desktop-24gb-gpu-32gb"], None);
    let little = rows(&MODELS[3], &["laptop-8gb-gpu"], None);
    for row in much.iter().chain(&little) {
        is_possible(row);
        assert!(row.decode.gain() >= 0.99, "never worse than two memories: {row:?}");
    }
    assert!(much[0].held - much[0].held_today > 0.15 && much[0].decode.gain() >= GOAL);
    assert!(little[0].held - little[0].held_today < 0.05 && little[0].decode.gain() < GOAL);
    assert_eq!(figures_of(&much)[0].ours, much[0].decode.gain());
}
