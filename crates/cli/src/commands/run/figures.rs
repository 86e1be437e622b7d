//! What is said about an answer: one line after it, more of it with `-v`, all of it as JSON.

use super::talk::{Answer, Talk};
use crate::npu::{NpuFigures, NpuRow};
use motley_engine::{
    Engine, Finish, MachineHandle, MachineReport, PredictionAccuracy, SessionStats, StreamFigures,
};
use motley_model::format_bytes;
use motley_plan::Decision;
use motley_trace::{EnergyRecord, SpeculationRecord, WorkerRecord};
use serde::Serialize;
use std::time::Duration;

/// What an answer is measured against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    /// Decoded tokens per second; `None` where nobody measured.
    decode_tokens_per_s: Option<f64>,
    context_tokens: u32,
    /// Most tokens of an answer, as typed.
    tokens: Option<usize>,
}

impl Expected {
    pub(super) fn of(decision: &Decision, tokens: Option<usize>) -> Self {
        Self {
            decode_tokens_per_s: decision.costs_measured.then_some(decision.decode.tokens_per_s),
            context_tokens: decision.session.context_tokens,
            tokens,
        }
    }
}

/// The line after an answer: how fast, how fast it should be, what came from disk, and why it ended
/// if not by itself.
pub(super) fn closing(answer: &Answer, took: &Took, expected: &Expected) -> String {
    let mut parts = Vec::new();
    let said = answer.tokens.len();
    let expects = match expected.decode_tokens_per_s {
        Some(expects) if took.decode_tokens > 0 => format!(" (expected {expects:.1})"),
        _ => String::new(),
    };
    parts.push(match took.decode_tokens {
        0 => format!("{said} tokens"),
        tokens => format!("{said} tokens, {:.1}/s{expects}", rate(tokens, took.decode_time)),
    });
    if took.prefill_tokens > 0 {
        let speed = rate(took.prefill_tokens, took.prefill_time);
        parts.push(format!("prompt {} tokens, {speed:.0}/s", took.prefill_tokens));
    }
    if let Some(bytes) = took.disk_bytes {
        parts.push(format!("{} from disk", format_bytes(bytes)));
    }
    match (answer.finish, expected.tokens) {
        (Finish::End, _) => {}
        (Finish::Stopped, _) => parts.push("interrupted".into()),
        (Finish::Length, Some(most)) if said >= most => parts.push(format!("ended by -n {most}")),
        (Finish::Length, _) => parts.push(format!(
            "the context of {} tokens is full (--context gives more)",
            expected.context_tokens
        )),
    }
    parts.join("; ")
}

/// What one answer took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Took {
    prefill_tokens: u64,
    prefill_time: Duration,
    decode_tokens: u64,
    decode_time: Duration,
    /// `None` where experts are in memory.
    disk_bytes: Option<u64>,
}

impl Took {
    pub(super) fn between(before: &SessionStats, after: &SessionStats) -> Self {
        let read = |stats: &SessionStats| stats.stream.map(|stream| stream.disk.bytes);
        Self {
            prefill_tokens: after.prefill_tokens - before.prefill_tokens,
            prefill_time: after.prefill_time.saturating_sub(before.prefill_time),
            decode_tokens: after.decode_tokens - before.decode_tokens,
            decode_time: after.decode_time.saturating_sub(before.decode_time),
            disk_bytes: read(after).map(|bytes| bytes - read(before).unwrap_or(0)),
        }
    }
}

/// The engine, and what tells of the static graphs beside it.
pub(super) struct Units<'a> {
    pub(super) engine: &'a Engine,
    pub(super) on_graphs: Option<NpuFigures>,
}

impl Units<'_> {
    /// What static graphs did since the last time, all layers together.
    pub(super) fn graphs(&self) -> Option<NpuRow> {
        self.on_graphs.as_ref().and_then(|figures| figures().pop())
    }

    /// What units beside the CPU did, as the end of a line.
    pub(super) fn said(&self) -> String {
        let graphs = self.graphs().map_or(String::new(), |row| {
            let (share, dropped) = (100.0 * row.device_share, 100.0 * row.drop_rate);
            let (launches, spilled) = (row.launches, row.spilled);
            format!(
                "; static graphs computed {share:.0} % of prompts' pairs in {launches} launches, \
                 {spilled} went to other units, {dropped:.1} % were dropped"
            )
        });
        shared(self.engine) + &graphs
    }
}

/// Everything a session did so far, for `-v`.
pub(super) fn figures(stats: &SessionStats) -> String {
    let delegated = match stats.seam.delegated_reason {
        Some(reason) => format!("{} ({reason})", stats.seam.delegated),
        None => stats.seam.delegated.to_string(),
    };
    format!(
        "prefill {} tokens at {:.1}/s, decode {} at {:.1}/s; {} expert blocks, {delegated} delegated",
        stats.prefill_tokens,
        rate(stats.prefill_tokens, stats.prefill_time),
        stats.decode_tokens,
        rate(stats.decode_tokens, stats.decode_time),
        stats.seam.blocks,
    ) + &stats.speculation.map_or(String::new(), |made| format!("; {made}"))
        + &drafting(stats)
        + &changes(stats)
        + &stats.stream.map_or(String::new(), |stream| streamed(stats, &stream))
}

/// What the device beside the CPU did.
fn shared(engine: &Engine) -> String {
    let Some(report) = engine.devices().map(MachineHandle::report) else { return String::new() };
    let MachineReport { cache_slots, refused, refused_reason, figures } = report;
    let pairs = figures.routed_pairs.max(1) as f64;
    let refused = refused_reason
        .map_or(String::new(), |reason| format!(", {refused} blocks refused ({reason})"));
    format!(
        "; device with {cache_slots} experts computed {:.0} % of pairs in {} launches, {} copies \
         on demand, {} on a guess, {} of them unused{refused}",
        100.0 * figures.device_pairs as f64 / pairs,
        figures.launches,
        figures.demanded_copies,
        figures.guessed_copies,
        figures.guessed_unused,
    )
}

/// What a draft model took of both times.
fn drafting(stats: &SessionStats) -> String {
    let Some(DraftTimes { prefill_s, decode_s }) = DraftTimes::of(stats) else {
        return String::new();
    };
    format!(
        "; the draft model took {prefill_s:.2} s of prompts and {decode_s:.2} s of {:.2} s of decoding",
        stats.decode_time.as_secs_f64()
    )
}

/// How often other programs made decode go on with fewer or more threads.
fn changes(stats: &SessionStats) -> String {
    match stats.thread_changes {
        0 => String::new(),
        changes => format!(", threads changed {changes} times"),
    }
}

/// How much of the coming layers was known early, the nearest first, and what knowing it took.
fn guessed(seen: PredictionAccuracy, tokens: f64) -> String {
    let shares = seen.ahead.iter().filter_map(|guessed| guessed.share());
    let shares: Vec<String> = shares.map(|share| format!("{:.0} %", 100.0 * share)).collect();
    let layers = if shares.len() > 1 { "layers" } else { "layer" };
    let ms = 1e3 * seen.time.as_secs_f64() / tokens;
    match shares.is_empty() {
        true => String::new(),
        false => format!(", next {layers} predicted {} ({ms:.2} ms per token)", shares.join(", ")),
    }
}

/// What streaming did: hits, bytes per token, how busy the disk was, waiting.
fn streamed(stats: &SessionStats, stream: &StreamFigures) -> String {
    let tokens = (stats.prefill_tokens + stats.decode_tokens).max(1) as f64;
    let time = (stats.prefill_time + stats.decode_time).as_secs_f64().max(1e-9);
    let both = stats.prefill.plus(&stats.decode);
    let predicted = stream.predicted.map_or(String::new(), |seen| guessed(seen, tokens));
    let shrunk = match stream.slots < stream.slots_most {
        true => format!(", {} of {} slots while memory is scarce", stream.slots, stream.slots_most),
        false => String::new(),
    };
    let left_out = match both.left_out() {
        (pairs, weight) if pairs > 0.0 => {
            let (pairs, weight) = (100.0 * pairs, 100.0 * weight);
            format!(", {pairs:.1} % of routed pairs left out with {weight:.1} % of their weight")
        }
        _ => String::new(),
    };
    format!(
        "; {:.0} % of experts were resident, {:.1} MB read per token at {:.0} MB/s, disk busy {:.0} %, waited {:.1} ms per token{predicted}{left_out}{shrunk}",
        100.0 * both.hit_rate(),
        stream.disk.bytes as f64 / 1e6 / tokens,
        stream.disk.mb_per_s(),
        100.0 * stream.disk.busy.as_secs_f64() / time,
        1e3 * both.stall_s / tokens,
    )
}

fn rate(tokens: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
}

/// `run --json`.
#[derive(Serialize)]
pub(super) struct RunReport<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    thought: &'a str,
    tokens: &'a [i32],
    finish: &'static str,
    /// With which the same answer comes again.
    seed: u32,
    prompt_tokens: usize,
    prefill_tokens_per_s: f64,
    decode_tokens_per_s: f64,
    /// Absent where nobody measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_decode_tokens_per_s: Option<f64>,
    /// Absent where experts are in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,
    expert_blocks: u64,
    delegated_splits: u64,
    /// Where tokens were guessed ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    speculation: Option<SpeculationRecord>,
    /// Where a draft model guessed: what it took, within the times that speeds are of.
    #[serde(skip_serializing_if = "Option::is_none")]
    draft_times: Option<DraftTimes>,
    /// Where static graphs took part.
    #[serde(skip_serializing_if = "Option::is_none")]
    npu: Option<NpuRow>,
    /// Other machines that computed experts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workers: Vec<WorkerRecord>,
    /// Absent where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<EnergyRecord>,
}

/// A draft model's part of both phases.
#[derive(Debug, Clone, Copy, Serialize)]
struct DraftTimes {
    prefill_s: f64,
    decode_s: f64,
}

impl DraftTimes {
    fn of(stats: &SessionStats) -> Option<Self> {
        stats.speculation?.draft?;
        let prefill_s = stats.prefill_draft_time.as_secs_f64();
        Some(Self { prefill_s, decode_s: stats.decode_draft_time.as_secs_f64() })
    }
}

impl<'a> RunReport<'a> {
    pub(super) fn new(
        answer: &'a Answer,
        talk: &Talk<'_>,
        units: &Units<'_>,
        expected: &Expected,
    ) -> Self {
        let stats = talk.session.stats();
        Self {
            text: &answer.text,
            thought: &answer.thought,
            tokens: &answer.tokens,
            finish: match answer.finish {
                Finish::End => "end",
                Finish::Length => "length",
                Finish::Stopped => "stopped",
            },
            seed: talk.generation.sampling.seed,
            prompt_tokens: answer.prompt_tokens,
            prefill_tokens_per_s: rate(stats.prefill_tokens, stats.prefill_time),
            decode_tokens_per_s: rate(stats.decode_tokens, stats.decode_time),
            expected_decode_tokens_per_s: expected.decode_tokens_per_s,
            disk_bytes: stats.stream.map(|stream| stream.disk.bytes),
            expert_blocks: stats.seam.blocks,
            delegated_splits: stats.seam.delegated,
            speculation: stats.speculation,
            draft_times: DraftTimes::of(&stats),
            npu: units.graphs(),
            workers: talk.engine.workers(),
            energy: talk.engine.record(&talk.session).energy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_tells_speed_disk_and_why_it_ended() {
        let answer = |finish, tokens| Answer {
            text: String::new(),
            thought: String::new(),
            tokens: vec![1; tokens],
            prompt_tokens: 20,
            finish,
        };
        let took = Took {
            prefill_tokens: 20,
            prefill_time: Duration::from_millis(200),
            decode_tokens: 9,
            decode_time: Duration::from_secs(1),
            disk_bytes: Some(3_000_000_000),
        };
        let expected =
            Expected { decode_tokens_per_s: Some(8.25), context_tokens: 4096, tokens: Some(10) };
        assert_eq!(
            closing(&answer(Finish::End, 10), &took, &expected),
            "10 tokens, 9.0/s (expected 8.2); prompt 20 tokens, 100/s; 2.8 GiB from disk"
        );
        let in_memory = Took { disk_bytes: None, ..took };
        let unknown = Expected { decode_tokens_per_s: None, ..expected };
        assert_eq!(
            closing(&answer(Finish::Length, 10), &in_memory, &unknown),
            "10 tokens, 9.0/s; prompt 20 tokens, 100/s; ended by -n 10"
        );
        let full = closing(&answer(Finish::Length, 9), &in_memory, &unknown);
        assert!(full.ends_with("the context of 4096 tokens is full (--context gives more)"));
        let stopped = closing(&answer(Finish::Stopped, 0), &Took::default(), &expected);
        assert_eq!(stopped, "0 tokens; interrupted");
    }
}
