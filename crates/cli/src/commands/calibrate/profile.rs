//! `motley calibrate MODEL --text …`: how the model routes (N1), and how far one text speaks
//! for another. The last fifth of every text is held out to check the rest against.

use super::chosen::Recorded;
use super::output::{Kind, write_new};
use super::passes;
use crate::args::{Calibrate, Global};
use crate::known::{Known, PROFILES, profile_stem};
use crate::load::execute;
use crate::page::{Fact, facts, percent, width_of};
use crate::recorder::header;
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result, bail, ensure};
use motley_engine::{
    Engine, Generation, RoutedBlock, RoutingWatcher, Runtime, Sampling, Seam, Session,
    SessionOptions,
};
use motley_plan::Outputs;
use motley_profile::profile::imbalance;
use motley_profile::{Held, Origin, Overlap, Profile, ProfileBuilder, overlap_at};
use motley_sched::cache::PolicyChoice;
use motley_sim::curves::policy_curve;
use motley_sim::holdout::Layout;
use motley_trace::{Phase, Trace, TraceHeader, Visit};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// Part of each text that is held out.
const HELD_OUT: f64 = 0.2;
/// Sizes of the sets compared, as the source compares them, and a quarter of the experts.
const TOP: [u16; 2] = [4, 8];

pub(super) fn run(
    global: &Global,
    args: &Calibrate,
    model: &Path,
    columns: Option<u16>,
) -> Result<()> {
    let runtime = Runtime::start(Seam::Registered)?;
    let mut known = Known::to_run(&runtime, global, model, args.trust)?;
    // What is chosen is better than the defaults, not than what was chosen before.
    known.profile.iter_mut().for_each(|profile| profile.header.chosen = None);
    let decision = known.decide(&args.wishes.asked(Outputs::All))?;
    let wishes = &args.wishes;
    let chooses = wishes.policy.is_none() && wishes.prefetch.is_none();
    let for_run = chooses.then(|| known.decide(&wishes.asked(Outputs::One))).transpose()?;
    let machine = known.machine.clone();
    let engine = execute(runtime, global, known, &decision, false)?;
    if !engine.spec().is_moe() {
        bail!("{}: a dense model has no routing to record", model.display());
    }
    let header = header(engine.spec(), model);
    let recorder = Arc::new(Mutex::new(Recorder::new(&header, &args.text)));
    let watcher = Box::new(Watcher(Arc::clone(&recorder)));
    let options = SessionOptions { scores: true, ..SessionOptions::of(&decision) };
    let mut session = engine.watched_session(&options, watcher)?;
    for (index, text) in args.text.iter().enumerate() {
        lock(&recorder).text = index;
        read_text(&engine, &mut session, args, text, &recorder)?;
    }
    drop(session);
    let threads = engine.threads();
    drop(engine);
    let recorder = std::mem::replace(&mut *lock(&recorder), Recorder::new(&header, &[]));
    let (mut profile, trace) = recorder.finish(&args.text)?;
    let mut told = Vec::new();
    if let Some(decision) = &for_run {
        let recorded = Recorded { machine: &machine, decision, model, trace: &trace };
        (profile.header.chosen, told) = recorded.chosen(global)?;
    }
    profile.header.passes = passes::measure(global, args, &runtime, threads)?;
    let stem = format!("{}-{}", profile_stem(&profile.header.model), moment().replace(':', "-"));
    let kind = Kind { folder: PROFILES, stem: &stem, extension: "jsonl" };
    let mut lines = Vec::new();
    profile.write(&mut lines)?;
    let path = write_new(args.output.as_deref(), &kind, &lines)?;
    tell(global, &profile, told, &path, width_of(columns))
}

/// Reads the beginning of a text, then its held-out end, in pieces that fit the context.
fn read_text(
    engine: &Engine,
    session: &mut Session,
    args: &Calibrate,
    path: &Path,
    recorder: &Arc<Mutex<Recorder>>,
) -> Result<()> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut tokens = engine.tokenize(&text)?;
    tokens.truncate(args.read);
    let context = session.options().context_tokens;
    let piece = (context as usize).saturating_sub(args.decode + 1);
    ensure!(piece > 0, "--context {context} leaves no room for text");
    ensure!(tokens.len() > 8, "{}: too short to learn from", path.display());
    let held = (tokens.len() as f64 * (1.0 - HELD_OUT)) as usize;
    for (tokens, held_out) in [(&tokens[..held], false), (&tokens[held..], true)] {
        for piece in tokens.chunks(piece) {
            lock(recorder).begin(held_out);
            session.clear();
            let generation = Generation {
                sampling: Sampling { temperature: 0.0, ..Sampling::default() },
                max_tokens: args.decode,
                ignore_end: true,
            };
            // With only the last token's logits wanted, the last layer would route that one only.
            let (before, last) = piece.split_at(piece.len() - 1);
            session.score(before, &mut |_, _| {})?;
            session.generate(last, &generation, &mut |_| {
                lock(recorder).phase = Phase::Decode;
                ControlFlow::Continue(())
            })?;
        }
    }
    Ok(())
}

/// `2026-01-31T12:00:00Z`.
fn moment() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

struct Watcher(Arc<Mutex<Recorder>>);

impl RoutingWatcher for Watcher {
    fn on_routed(&mut self, routed: &RoutedBlock) {
        lock(&self.0).on_routed(routed);
    }
}

fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().expect("nobody panics with this lock")
}

/// Counts every visit in all profiles it belongs to.
struct Recorder {
    trace: Trace,
    all: ProfileBuilder,
    learned: ProfileBuilder,
    held_out: ProfileBuilder,
    texts: Vec<ProfileBuilder>,
    text: usize,
    is_held_out: bool,
    phase: Phase,
    visit: Visit,
    last_layer: Option<u32>,
}

impl Recorder {
    fn new(header: &TraceHeader, texts: &[PathBuf]) -> Self {
        let builder = || ProfileBuilder::new(header);
        Self {
            trace: Trace { header: header.clone(), visits: Vec::new() },
            all: builder(),
            learned: builder(),
            held_out: builder(),
            texts: texts.iter().map(|_| builder()).collect(),
            text: 0,
            is_held_out: false,
            phase: Phase::Prefill,
            visit: Visit::default(),
            last_layer: None,
        }
    }

    /// A piece of text begins.
    fn begin(&mut self, held_out: bool) {
        (self.phase, self.is_held_out) = (Phase::Prefill, held_out);
    }

    fn on_routed(&mut self, routed: &RoutedBlock) {
        // Layers rise within a pass, so one that does not begins the next.
        if self.last_layer.is_some_and(|last| routed.layer <= last) {
            self.visit.pass += 1;
        }
        self.last_layer = Some(routed.layer);
        if routed.tokens() == 0 {
            return;
        }
        self.visit.layer = routed.layer as u16;
        self.visit.phase = self.phase;
        self.visit.positions = (0..routed.tokens() as u32).collect();
        self.visit.experts = routed.experts.iter().map(|&expert| expert as u16).collect();
        self.all.observe(&self.visit);
        let part = if self.is_held_out { &mut self.held_out } else { &mut self.learned };
        part.observe(&self.visit);
        self.texts[self.text].observe(&self.visit);
        self.trace.visits.push(self.visit.clone());
    }

    /// The profile of everything, with how far its parts agree; and the routing itself.
    fn finish(self, paths: &[PathBuf]) -> Result<(Profile, Trace)> {
        let names: Vec<String> = paths.iter().map(|path| crate::page::file_name(path)).collect();
        let origin = |sources: Vec<String>| Origin {
            sources,
            written_by: format!("motley {}", env!("CARGO_PKG_VERSION")),
            date: moment().split('T').next().unwrap_or_default().to_owned(),
            ..Origin::default()
        };
        let learned = self.learned.finish(origin(names.clone()));
        let held_out = self.held_out.finish(origin(vec!["the held-out fifth".into()]));
        let texts: Vec<Profile> = self
            .texts
            .into_iter()
            .zip(&names)
            .map(|(b, n)| b.finish(origin(vec![n.clone()])))
            .collect();
        let mut profile = self.all.finish(origin(names));
        let mut overlaps = compare(&learned, &held_out)?;
        for other in texts.iter().skip(1) {
            overlaps.extend(compare(&texts[0], other)?);
        }
        profile.header.overlaps = overlaps;
        profile.header.held = held(&self.trace)?;
        Ok((profile, self.trace))
    }
}

/// The routing again through caches of every size, under the policy runs use.
fn held(trace: &Trace) -> Result<Vec<Held>> {
    let curve = policy_curve(trace, Layout::Global, PolicyChoice::default())?;
    let known = curve.points.iter().any(|(_, hit_rate)| *hit_rate > 0.0);
    let points = curve.points.into_iter().filter(|_| known);
    Ok(points.map(|(share, hit_rate)| Held { share, hit_rate }).collect())
}

/// Overlap@K of both phases at every size.
fn compare(one: &Profile, other: &Profile) -> Result<Vec<Overlap>> {
    let quarter = one.header.experts / 4;
    let sizes = TOP.into_iter().chain((!TOP.contains(&quarter)).then_some(quarter));
    let sizes: Vec<u16> = sizes.filter(|k| (1..one.header.experts).contains(k)).collect();
    let mut found = Vec::new();
    for phase in [Phase::Prefill, Phase::Decode] {
        for &k in &sizes {
            found.push(overlap_at(one, other, phase, k)?);
        }
    }
    Ok(found)
}

fn tell(
    global: &Global,
    profile: &Profile,
    chosen: Vec<Fact>,
    path: &Path,
    width: u16,
) -> Result<()> {
    if global.json {
        let imbalances: Vec<_> = profile.visited().map(|layer| imbalance(&layer.both())).collect();
        let report = serde_json::json!({
            "file": path, "profile": profile.header, "imbalance": imbalances,
        });
        return print_json(&serde_json::to_string(&report)?);
    }
    let told: Vec<Fact> = summary(profile).into_iter().chain(chosen).collect();
    print_page(&format!("{}\n\n Kept in {}", facts(&told, width), path.display()))
}

fn summary(profile: &Profile) -> Vec<Fact> {
    let origin = &profile.header.origin;
    let mut facts = vec![
        ("Model", profile.header.model.clone()),
        (
            "Texts",
            format!(
                "{}: {} tokens read, {} decoded",
                origin.sources.join(", "),
                origin.prefill_tokens,
                origin.decode_tokens
            ),
        ),
        (
            "Imbalance",
            format!(
                "busiest expert over the mean: {:.2} in prefill, {:.2} in decode (layers' mean)",
                profile.mean_imbalance(Phase::Prefill),
                profile.mean_imbalance(Phase::Decode)
            ),
        ),
    ];
    for overlap in &profile.header.overlaps {
        let phase = if overlap.phase == Phase::Prefill { "prefill" } else { "decode" };
        facts.push((
            "Overlap",
            format!(
                "top {} in {phase}, {} shared with {}",
                overlap.k,
                percent(overlap.mean),
                overlap.against
            ),
        ));
    }
    facts
}
