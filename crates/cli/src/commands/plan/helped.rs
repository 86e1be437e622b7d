//! Whether other machines pay: their cables and cores measured, and three ways beside each other.

use crate::args::PlanArgs;
use crate::known::Known;
use crate::page::{Fact, number, printable};
use crate::workers::Workers;
use anyhow::{Context, Result};
use motley_cost::HostLink;
use motley_engine::Runtime;
use motley_engine::blocks::remote::{MeasuredWorker, RemoteWorker};
use motley_plan::hosts::{Advised, Host, Others, RemoteAdvice};
use motley_plan::{Asked, Decision};
use serde::Serialize;

/// What others would do for a plan.
#[derive(Serialize)]
pub(super) struct Helped {
    workers: Vec<Helper>,
    #[serde(flatten)]
    advice: RemoteAdvice,
}

/// One machine.
#[derive(Serialize)]
struct Helper {
    name: String,
    /// Experts in its memory.
    slots: u32,
    /// Its speed at experts over this CPU's.
    speed: f64,
    round_trip_us: f64,
    gb_per_s: f64,
}

impl Helped {
    /// Reaches and measures those that were named; `None` if none was.
    pub(super) fn ask(
        args: &PlanArgs,
        runtime: Option<Runtime>,
        known: &Known,
        (asked, decision): (&Asked, &Decision),
    ) -> Result<Option<Self>> {
        if args.workers.workers.is_empty() {
            return Ok(None);
        }
        let runtime =
            runtime.context("--workers measures machines from this one, not --machine")?;
        let path = &known.files.paths[0];
        let reached = Workers::reach(&args.workers, runtime, path, false)?;
        let reached = reached.context("at least one was named")?;
        let measured = reached.measure(runtime, path)?;
        let helper = |(worker, measured): (&RemoteWorker, &MeasuredWorker)| {
            let HostLink { round_trip_us, gb_per_s } = measured.link;
            let (name, slots, speed) = (worker.name.clone(), worker.slots, measured.speed());
            Helper { name, slots, speed, round_trip_us, gb_per_s }
        };
        let workers: Vec<Helper> = reached.reached().iter().zip(&measured).map(helper).collect();
        let hosts: Vec<Host> =
            workers.iter().map(|one| Host { slots: one.slots, speed: one.speed }).collect();
        let others = Others { workers: &hosts, link: slowest(&workers), streams: 1 };
        let advice = known.workers_pay(asked, decision, others)?;
        Ok(Some(Self { workers, advice }))
    }

    /// For people.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let mut all: Vec<Fact> = self.workers.iter().map(|one| ("Worker", one.said())).collect();
        let RemoteAdvice { with_workers, alone, split, advised } = self.advice;
        let [with_workers, alone, split] = [with_workers, alone, split].map(number);
        let use_what = match advised {
            Advised::Workers => "use the workers",
            Advised::Alone => "run alone",
            Advised::LayerSplit => "whole layers on each machine, as llama.cpp's RPC has them",
        };
        let figures = format!(
            "decode {with_workers}/s with workers, {alone} alone, {split} as whole layers on each"
        );
        all.push(("Advice", format!("{use_what}: {figures}")));
        all
    }
}

impl Helper {
    fn said(&self) -> String {
        format!(
            "{}: {} experts in memory, {:.2} × this CPU, round trip {:.0} µs, {:.2} GB/s",
            printable(&self.name),
            self.slots,
            self.speed,
            self.round_trip_us,
            self.gb_per_s
        )
    }
}

/// A plan knows one cable: the worst of all.
fn slowest(workers: &[Helper]) -> HostLink {
    let longest = workers.iter().map(|one| one.round_trip_us).fold(0.0, f64::max);
    let least = workers.iter().map(|one| one.gb_per_s).fold(f64::INFINITY, f64::min);
    HostLink { round_trip_us: longest, gb_per_s: least }
}
