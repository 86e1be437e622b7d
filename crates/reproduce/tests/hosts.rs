//! What the page on several machines says holds on a short version of it.

use motley_reproduce::hosts::assumed::LINKS;
use motley_reproduce::hosts::rows::MODELS;
use motley_reproduce::hosts::{ASSUMED, Assumptions, DISK_GOAL, Row, SPLIT_GOAL, Wanted};
use motley_reproduce::hosts::{figures_of, rows};

fn goals(open: Assumptions) -> Vec<Row> {
    rows(open, &Wanted::GOALS).expect("a comparison")
}

#[test]
fn the_goal_over_whole_layers_is_reached_and_the_one_over_the_disk_where_half_is_held() {
    let rows = goals(ASSUMED);
    let two: Vec<&Row> = rows.iter().filter(|row| row.fits_two()).collect();
    assert!(two.len() >= 3, "{two:?}");
    for row in &two {
        let reached = row.over_alone() >= DISK_GOAL;
        assert_eq!(reached, row.held_alone < 0.6, "{row:?}");
        assert!(row.over_alone() > 1.0, "{row:?}");
    }
    let gpu_and_two = rows.iter().filter(|row| row.head.name() != "no GPU" && row.workers == 2);
    assert!(gpu_and_two.into_iter().all(|row| row.over_split() >= SPLIT_GOAL), "{rows:?}");
    let figures = figures_of(&rows);
    assert!(figures[0].ours < DISK_GOAL && figures[1].ours > SPLIT_GOAL, "{figures:?}");
    for row in &rows {
        let parts = row.parts;
        assert!(parts.dense + parts.waited < 1.0 && row.split <= row.pipelined, "{row:?}");
    }
}

#[test]
fn slower_disks_make_workers_worth_more() {
    let slow = figures_of(&goals(Assumptions { disk_share: 0.25, ..ASSUMED }));
    assert!(slow[0].ours >= DISK_GOAL, "{slow:?}");
}

#[test]
fn a_faster_cable_is_faster_and_so_are_more_streams() {
    let wanted = Wanted {
        models: &MODELS[1..2],
        workers: &[4],
        links: &LINKS,
        streams: &[1, 16],
        ..Wanted::GOALS
    };
    let rows = rows(ASSUMED, &wanted).expect("a comparison");
    for cables in rows.chunks(LINKS.len()) {
        assert!(cables.is_sorted_by(|a, b| a.ours <= b.ours), "{cables:?}");
    }
    for row in rows.iter().filter(|row| row.streams == 16) {
        let same = |other: &&Row| other.head == row.head && other.link == row.link;
        let one = rows.iter().filter(same).find(|other| other.streams == 1).expect("one stream");
        assert!(row.ours > 2.0 * one.ours, "{row:?} {one:?}");
    }
}
