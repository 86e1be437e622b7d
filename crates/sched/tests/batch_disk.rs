//! Beginnings of prompts on disk: what a restart costs, what goes when there is no room, and when
//! computing is the faster way.

use motley_sched::batch::{
    BatchLimits, Change, ClientId, Planner, Prompt, RequestId, Segment, SegmentKey, SegmentLengths,
    SegmentLimits, Sharing,
};
use std::collections::BTreeMap;
use std::time::Duration;

const LIMITS: BatchLimits = BatchLimits {
    sequences: 2,
    cells: 40_000,
    longest_tokens: u32::MAX,
    step_tokens: 512,
    prefill_beside_decode: 128,
    step_time: None,
    waiting: 8,
    sharing: Sharing::Prefixes,
};

const DISK: SegmentLimits = SegmentLimits {
    lengths: SegmentLengths {
        each: 256,
        with_state_min: 256,
        with_state_max: 4096,
        prompt_min: 512,
    },
    root: SegmentKey([3; 32]),
    most_bytes: 1 << 30,
    token_bytes: 10_000,
    state_bytes: 1_000_000,
    read_bytes_per_second: 1e9,
};

/// What a token of a prompt takes.
const TOKEN_TIME: Duration = Duration::from_millis(5);

/// A driver with a disk that does what it is told, and notes it.
#[derive(Default)]
struct Driver {
    disk: BTreeMap<SegmentKey, Segment>,
    requests: u64,
}

impl Driver {
    /// Runs a prompt to its end; its tokens that were computed.
    fn answer(&mut self, planner: &mut Planner, tokens: &[i32]) -> u32 {
        self.requests += 1;
        let request = RequestId(self.requests);
        let boundaries = vec![1000, 9000, tokens.len() as u32 - 100];
        let tokens = tokens.to_vec();
        let prompt = Prompt { client: ClientId(0).into(), tokens, chunk_tokens: 512, boundaries };
        planner.submit(request, prompt).unwrap();
        let mut computed = 0;
        for _ in 0..1000 {
            let step = planner.plan();
            self.carry_out(planner, &step.changes);
            let tokens: u32 = step.parts.iter().map(|part| part.tokens).sum();
            computed += tokens;
            planner.on_computed(TOKEN_TIME * tokens);
            if step.parts.iter().any(|part| part.samples) {
                break;
            }
        }
        planner.finish(request, true);
        while planner.has_to_store() {
            let step = planner.plan();
            assert!(step.parts.is_empty() && !step.changes.is_empty());
            self.carry_out(planner, &step.changes);
        }
        computed
    }

    fn carry_out(&mut self, planner: &mut Planner, changes: &[Change]) {
        for change in changes {
            match *change {
                Change::Store { segment, .. } => {
                    self.disk.insert(segment.key, segment);
                    planner.on_stored(segment);
                }
                Change::Load { segment, .. } => {
                    assert!(self.disk.contains_key(&segment.key));
                    planner.on_loaded(&segment, Duration::from_millis(3));
                }
                Change::Erase { segment } => assert!(self.disk.remove(&segment).is_some()),
                _ => {}
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.disk.values().map(|segment| segment.bytes).sum()
    }

    /// A planner after a restart.
    fn planner(&self, sharing: Sharing, limits: SegmentLimits) -> Planner {
        let mut planner = Planner::new(BatchLimits { sharing, ..LIMITS });
        planner.keep_on_disk(limits, &self.disk.values().copied().collect::<Vec<_>>());
        planner
    }
}

fn conversation(tokens: i32, from: i32) -> Vec<i32> {
    (0..9000).chain(from..from + tokens - 9000).collect()
}

/// Its deadline passes meanwhile. What was to be read for it is nobody's prefix.
#[test]
fn a_request_that_ends_while_it_is_read_from_disk_is_not_kept() {
    for sharing in [Sharing::Prefixes, Sharing::States { most: 8 }] {
        let mut driver = Driver::default();
        let tokens = conversation(10_000, 20_000);
        driver.answer(&mut driver.planner(sharing, DISK), &tokens);
        let mut planner = driver.planner(sharing, DISK);
        let prompt = Prompt {
            client: ClientId(0).into(),
            tokens: tokens.clone(),
            chunk_tokens: 512,
            boundaries: vec![1000, 9000, 9900],
        };
        planner.submit(RequestId(0), prompt).unwrap();
        for _ in 0..3 {
            let step = planner.plan();
            driver.carry_out(&mut planner, &step.changes);
        }
        let figures = planner.figures();
        assert!((1..9000).contains(&figures.loaded_tokens), "{sharing:?}: {figures:?}");
        assert_eq!(figures.cells_active, figures.cells_used, "{sharing:?}");
        planner.finish(RequestId(0), true);
        let figures = planner.figures();
        assert_eq!((figures.kept, figures.cells_used, figures.cells_active), (0, 0, 0));
        let computed = driver.answer(&mut planner, &tokens);
        assert!(computed <= 300, "{sharing:?}: {computed}");
    }
}

#[test]
fn after_a_restart_only_the_end_of_a_prompt_is_computed() {
    for sharing in [Sharing::Prefixes, Sharing::States { most: 8 }] {
        let mut driver = Driver::default();
        let mut planner = driver.planner(sharing, DISK);
        let prompt = conversation(10_000, 20_000);
        assert_eq!(driver.answer(&mut planner, &prompt), 10_000);
        let written = driver.disk.len();

        let mut planner = driver.planner(sharing, DISK);
        let computed = driver.answer(&mut planner, &prompt);
        assert!(computed <= 300, "{sharing:?}: {computed}");
        assert_eq!(planner.figures().loaded_tokens, u64::from(10_000 - computed));
        assert_eq!(driver.disk.len(), written, "nothing is written twice");

        // Another that begins alike has most of it from memory and computes what is new.
        let other = driver.answer(&mut planner, &conversation(10_000, 40_000));
        assert!((900..=1300).contains(&other), "{sharing:?}: {other}");

        let mut stranger =
            driver.planner(sharing, SegmentLimits { root: SegmentKey([4; 32]), ..DISK });
        assert_eq!(driver.answer(&mut stranger, &prompt), 10_000, "of another model");
    }
}

#[test]
fn a_slow_disk_is_not_waited_for() {
    let mut driver = Driver::default();
    let mut planner = driver.planner(Sharing::Prefixes, DISK);
    let prompt = conversation(10_000, 20_000);
    driver.answer(&mut planner, &prompt);
    let slow = SegmentLimits { read_bytes_per_second: 1e6, ..DISK };
    let mut planner = driver.planner(Sharing::Prefixes, slow);
    // What computing takes is known from here on.
    driver.answer(&mut planner, &(50_000..50_600).collect::<Vec<_>>());
    assert_eq!(driver.answer(&mut planner, &prompt), 10_000);
}

#[test]
fn the_disk_holds_no_more_than_it_may_and_keeps_what_was_used_last() {
    for sharing in [Sharing::Prefixes, Sharing::States { most: 8 }] {
        let mut driver = Driver::default();
        let limits = SegmentLimits { most_bytes: 150_000_000, ..DISK };
        let mut planner = driver.planner(sharing, limits);
        for from in [20_000, 40_000, 60_000, 80_000] {
            driver.answer(&mut planner, &conversation(10_000, from));
            assert!(driver.bytes() <= limits.most_bytes, "{}", driver.bytes());
        }
        let mut planner = driver.planner(sharing, limits);
        assert!(driver.answer(&mut planner, &conversation(10_000, 80_000)) <= 300);
        let smaller = SegmentLimits { most_bytes: 20_000_000, ..DISK };
        let mut planner = driver.planner(sharing, smaller);
        let step = planner.plan();
        driver.carry_out(&mut planner, &step.changes);
        assert!(driver.bytes() <= smaller.most_bytes, "less room than before");
    }
}

#[test]
fn two_prompts_that_do_not_fit_beside_each_other_are_not_written_for_ever() {
    let limits = SegmentLimits { most_bytes: 60_000_000, ..DISK };
    let mut driver = Driver::default();
    let mut planner = driver.planner(Sharing::Prefixes, limits);
    for from in [0, 50_000, 0, 50_000] {
        driver.answer(&mut planner, &(from..from + 4000).collect::<Vec<_>>());
        assert!(driver.bytes() <= limits.most_bytes);
    }
    // The beginning of what was asked last is there, and can be read.
    let mut planner = driver.planner(Sharing::Prefixes, limits);
    let computed = driver.answer(&mut planner, &(50_000..54_000).collect::<Vec<_>>());
    assert!(computed < 4000, "{computed}");
}
