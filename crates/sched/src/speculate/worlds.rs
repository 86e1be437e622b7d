//! Texts and machines on which guesses are right more and less often and cost more and less: what is
//! won, and that little is ever lost. Numbers look random and are the same every time.

use super::draft::CLASSES;
use super::{Asked, Guess, Kind, MOST_GUESSES, Pass, Speculation};
use std::f64::consts::TAU;

const PLAIN_US: f64 = 100_000.0;
/// Length of a match, where there is one.
const MATCHED: usize = 4;

/// A draft model in a world.
#[derive(Clone, Copy)]
struct Model {
    /// What a token takes, over a plain pass.
    cost: f64,
    /// How often its tokens are of each class, and right then.
    often: [f64; CLASSES],
    right: [f64; CLASSES],
}

/// Sure of half of its tokens, and right as often as it says.
const HONEST: Model =
    Model { cost: 0.05, often: [0.2, 0.1, 0.1, 0.1, 0.5], right: [0.2, 0.5, 0.7, 0.9, 0.98] };

struct World {
    /// How often a found guess is right, the first and those after it; `None` finds nothing.
    found: Option<(f64, f64)>,
    model: Option<Model>,
    growth: f64,
    /// Times vary by this share to both sides.
    noise: f64,
    /// The machine gets faster and slower again by this share, in so many passes.
    drift: (f64, f64),
    /// What a pass of another width than the one before takes more, over a plain one: its graph is
    /// built anew.
    anew: f64,
    /// Passes so far, and the last one's width.
    before: (u32, usize),
    state: u64,
}

impl World {
    fn new(first: f64, further: f64, growth: f64) -> Self {
        let found = Some((first, further));
        let (drift, before) = ((0.0, 1.0), (0, 0));
        Self { found, model: None, growth, noise: 0.3, drift, anew: 0.0, before, state: 7 }
    }

    fn drafted(model: Model, growth: f64) -> Self {
        Self { found: None, model: Some(model), ..Self::new(0.0, 0.0, growth) }
    }

    fn speculation(&self, believed: f64) -> Speculation {
        let mut speculation = Speculation::new(believed);
        if let Some(model) = self.model {
            speculation.use_draft();
            let asked = Asked { tokens: 1, behind: 0, time_us: model.cost * PLAIN_US };
            speculation.learn_asked(&asked);
        }
        speculation
    }

    /// Between 0 and 1.
    fn number(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 40) as f64 / (1u64 << 24) as f64
    }

    fn varied(&mut self) -> f64 {
        1.0 + self.noise * (2.0 * self.number() - 1.0)
    }

    /// A guess, and what asking for it took; as an engine makes it.
    fn guess(&mut self, speculation: &Speculation) -> (Guess, Asked) {
        let mut guess = Guess::default();
        if self.found.is_some() {
            for at in 0..MOST_GUESSES {
                let kind = if at == 0 { Kind::Matched(MATCHED) } else { Kind::Continued };
                guess.push(0, kind);
            }
            speculation.choose(&mut guess, &Asked::default());
        }
        let (mut drafted, mut asked) = (Guess::default(), Asked::default());
        let Some(model) = self.model.filter(|_| speculation.thinks_of_draft(&guess)) else {
            return (guess, asked);
        };
        while speculation.asks(&drafted, &asked, MOST_GUESSES) {
            let mut left = self.number();
            let class = model.often.iter().position(|often| {
                left -= often;
                left < 0.0
            });
            drafted.push(0, Kind::Drafted(class.unwrap_or(CLASSES - 1)));
            asked.tokens += 1;
            asked.time_us += model.cost * PLAIN_US * self.varied();
        }
        if drafted.tokens.is_empty() {
            return (guess, asked);
        }
        speculation.choose(&mut drafted, &asked);
        (drafted, asked)
    }

    /// How often a guess of this kind is right.
    fn share(&self, kind: Kind) -> f64 {
        match (kind, self.found, self.model) {
            (Kind::Matched(_), Some((first, _)), _) => first,
            (Kind::Continued, Some((_, further)), _) => further,
            (Kind::Drafted(class), _, Some(model)) => model.right[class],
            _ => 0.0,
        }
    }

    /// Computes a pass and has it judged; tokens it gave, and guesses that were computed.
    fn pass(&mut self, speculation: &mut Speculation) -> (usize, usize, f64) {
        let (guess, asked) = self.guess(speculation);
        let known = (guess.width + 1).min(guess.kinds.len());
        let mut right = 0;
        while right < known && self.number() < self.share(guess.kinds[right]) {
            right += 1;
        }
        let width = guess.width;
        let steady_us = self.steady_us(width);
        let time_us = steady_us * self.varied() * self.drifted();
        speculation.record(&Pass { kinds: &guess.kinds, width, right, time_us, asked });
        let cost = self.model.map_or(0.0, |model| model.cost) * asked.tokens as f64;
        (1 + right.min(width), width, steady_us + cost * PLAIN_US)
    }

    /// What a pass takes, as if times did not vary.
    fn steady_us(&mut self, width: usize) -> f64 {
        let (passes, before) = self.before;
        self.before = (passes + 1, width);
        let anew = if width == before { 0.0 } else { self.anew };
        PLAIN_US * (1.0 + self.growth * width as f64 + anew)
    }

    fn drifted(&self) -> f64 {
        let (share, passes) = self.drift;
        1.0 + share * (TAU * f64::from(self.before.0) / passes).sin()
    }

    /// Speed over that of plain passes, for `tokens` of text, as if times did not vary.
    fn speed(&mut self, speculation: &mut Speculation, tokens: usize) -> f64 {
        let (mut said, mut all_us) = (0, 0.0);
        while said < tokens {
            let (gave, _, time_us) = self.pass(speculation);
            said += gave;
            all_us += time_us;
        }
        said as f64 * PLAIN_US / all_us
    }
}

/// The mean of `speed` over texts with numbers of their own: one of them can be unlucky.
fn mean_over_texts(speed: impl Fn(u64) -> f64) -> f64 {
    const TEXTS: u64 = 40;
    (1..=TEXTS).map(|text| speed(7919 * text)).sum::<f64>() / TEXTS as f64
}

#[test]
fn a_text_that_repeats_is_faster() {
    for (growth, least) in [(0.3, 2.1), (0.6, 1.3), (0.7, 1.15)] {
        for believed in [0.2, 0.6, 0.9] {
            let speed = mean_over_texts(|state| {
                let mut world = World { state, ..World::new(0.97, 0.99, growth) };
                world.speed(&mut Speculation::new(believed), 400)
            });
            assert!(speed >= least, "{growth} {believed}: {speed}");
        }
    }
}

#[test]
fn no_text_is_much_slower() {
    for growth in [0.2, 0.6, 0.9, 1.3] {
        for (first, further) in [(0.0, 0.0), (0.1, 0.5), (0.3, 0.3), (0.5, 0.8), (0.8, 0.2)] {
            for believed in [0.1, 0.6, 1.0] {
                let mut speculation = Speculation::new(believed);
                let speed = World::new(first, further, growth).speed(&mut speculation, 300);
                assert!(speed >= 0.97, "{first} {further} {growth}: {speed}");
            }
        }
    }
}

/// Texts of 128 tokens on a `machine`: the least mean over texts of one kind, and the part of all texts
/// that lost more than 3 percent.
fn lost(machine: impl Fn(World) -> World) -> (f64, f64) {
    const TEXTS: u32 = 30;
    let (mut least, mut all) = (f64::MAX, Vec::new());
    for growth in [0.2, 0.6, 0.9, 1.3] {
        for (first, further) in [(0.0, 0.0), (0.1, 0.5), (0.3, 0.3), (0.5, 0.8), (0.7, 0.7)] {
            let speeds = (1..=TEXTS).map(|text| {
                let (state, before) = (7919 * u64::from(text), (7 * text, 0));
                let world = World { state, before, ..World::new(first, further, growth) };
                machine(world).speed(&mut Speculation::new(0.5), 128)
            });
            let speeds: Vec<f64> = speeds.collect();
            least = least.min(speeds.iter().sum::<f64>() / f64::from(TEXTS));
            all.extend(speeds);
        }
    }
    let many = all.iter().filter(|speed| **speed < 0.97).count();
    (least, many as f64 / all.len() as f64)
}

#[test]
fn little_is_lost_on_a_machine_that_gets_faster_and_slower() {
    for (passes, most) in [(20.0, 0.06), (60.0, 0.03), (200.0, 0.03)] {
        let (least, many) = lost(|world| World { noise: 0.15, drift: (0.3, passes), ..world });
        assert!(least >= 0.975 && many <= most, "{passes}: {least} {many}");
    }
}

#[test]
fn little_is_lost_where_every_other_width_costs_a_graph() {
    for anew in [0.0, 0.03, 0.1, 0.3] {
        let (least, many) = lost(|world| World { anew, ..world });
        assert!(least >= 0.98 && many <= 0.025, "{anew}: {least} {many}");
    }
}

#[test]
fn no_text_is_much_slower_with_a_draft_model_whatever_it_says() {
    let liar = Model { right: [0.3, 0.2, 0.1, 0.1, 0.05], ..HONEST };
    let blind = Model { often: [0.0, 0.0, 0.0, 0.0, 1.0], right: [0.5; CLASSES], ..HONEST };
    let wrong = Model { right: [0.0; CLASSES], ..HONEST };
    for model in [HONEST, liar, blind, wrong] {
        for cost in [0.01, 0.05, 0.2, 0.5, 1.5] {
            for growth in [0.2, 0.6, 0.9, 1.3] {
                for found in [None, Some((0.1, 0.5)), Some((0.5, 0.8))] {
                    let mut world = World::drafted(Model { cost, ..model }, growth);
                    world.found = found;
                    let mut speculation = world.speculation(0.6);
                    let speed = world.speed(&mut speculation, 300);
                    assert!(speed >= 0.97, "{:?} {cost} {growth} {found:?}: {speed}", model.right);
                }
            }
        }
    }
}

#[test]
fn a_draft_model_that_is_often_right_pays_as_far_as_its_own_time_allows() {
    let mut before = f64::MAX;
    for (cost, least) in [(0.02, 1.5), (0.1, 1.3), (0.3, 1.05)] {
        let speed = mean_speed(Model { cost, ..HONEST }, 0.3, 0.5);
        assert!(speed >= least && speed < before, "{cost}: {speed}");
        before = speed;
    }
    // Beyond RAM a token costs most of one: only those the model is sure of are worth it.
    let speed = mean_speed(Model { cost: 0.02, ..HONEST }, 0.6, 0.8);
    assert!(speed >= 1.1, "{speed}");
    // And all of one where tokens next to each other share no experts: little is lost then.
    let speed = mean_speed(Model { cost: 0.02, ..HONEST }, 0.9, 0.8);
    assert!(speed >= 0.98, "{speed}");
}

/// Over texts of 600 tokens.
fn mean_speed(model: Model, growth: f64, believed: f64) -> f64 {
    mean_over_texts(|state| {
        let mut world = World { state, ..World::drafted(model, growth) };
        let mut speculation = world.speculation(believed);
        world.speed(&mut speculation, 600)
    })
}

#[test]
fn a_draft_model_that_agrees_always_gives_the_widest_passes() {
    let own = Model { cost: 0.02, often: [0.0, 0.0, 0.0, 0.0, 1.0], right: [1.0; CLASSES] };
    let mut world = World::drafted(own, 0.1);
    let mut speculation = world.speculation(0.5);
    world.speed(&mut speculation, 300);
    let widest = (0..60).map(|_| world.pass(&mut speculation).1).max();
    assert_eq!(widest, Some(MOST_GUESSES));
}

#[test]
fn guesses_come_back_when_the_text_begins_to_repeat_and_go_when_it_ends() {
    let mut speculation = Speculation::new(0.6);
    let mut world = World::new(0.0, 0.0, 0.6);
    let before = world.speed(&mut speculation, 300);
    assert!(before >= 0.97, "{before}");
    world.found = Some((0.97, 0.99));
    let again = world.speed(&mut speculation, 300);
    assert!(again >= 1.2, "{again}");
    world.found = Some((0.0, 0.0));
    let ended = world.speed(&mut speculation, 300);
    assert!(ended >= 0.93, "{ended}");
}

#[test]
fn a_draft_model_is_asked_again_when_it_begins_to_be_right() {
    let wrong = Model { right: [0.0; CLASSES], ..HONEST };
    let mut world = World::drafted(wrong, 0.3);
    let mut speculation = world.speculation(0.5);
    let before = world.speed(&mut speculation, 300);
    assert!(before >= 0.97, "{before}");
    world.model = Some(HONEST);
    world.speed(&mut speculation, 300);
    let again = world.speed(&mut speculation, 300);
    assert!(again >= 1.1, "{again}");
}

#[test]
fn plain_passes_are_measured_while_all_guesses_are_right() {
    let mut speculation = Speculation::new(0.1);
    let mut world = World::new(1.0, 1.0, 0.1);
    let plain = (0..480).filter(|_| world.pass(&mut speculation).1 == 0).count();
    assert!((9..=20).contains(&plain), "{plain}");
}
