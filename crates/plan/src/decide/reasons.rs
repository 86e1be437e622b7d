//! Why a decision is as it is, in words for people: one reason for each part of it.

use motley_machine::Regime;
use motley_model::format_bytes;
use motley_profile::ChosenRules;

use super::asked::{Asked, CHUNKS, DevicesAsked, Goal, Loading};
use super::attempt::{Attempt, KvWhy};
use super::context;
use super::decision::Why;
use super::facts::Facts;
use super::rules::Ruled;
use crate::calibration::Calibration;
use crate::cores::nodes::in_words;
use crate::cores::{NodeShare, ThreadSets};
use crate::device_use::DeviceUse;
use crate::kernels::ExpertKernels;

/// The reasons.
pub(super) fn why(
    facts: &Facts<'_>,
    asked: &Asked,
    attempt: &Attempt<'_>,
    (threads, nodes): (&ThreadSets, &[NodeShare]),
    ruled: &Ruled<'_>,
) -> Why {
    Why {
        loading: loading(facts, asked, attempt, ruled),
        memory: attempt.residence.why.clone(),
        devices: devices(facts, asked, attempt),
        threads: self::threads(facts, asked, threads),
        nodes: in_words(nodes),
        chunk: chunk(facts, asked, attempt),
        context: context::why(facts, asked, attempt),
        kv: kv(attempt),
        rules: rules(asked, attempt, ruled),
        exact: match asked.exact {
            true => "weights in the file's order, on the CPU: the same bits wherever they are",
            false => "not asked for: weights may be rearranged, and the last bits may differ",
        }
        .into(),
        kernels: rearranged(&attempt.kernels(facts, asked)),
        approximate: approximate(facts, ruled),
    }
}

fn rearranged(kernels: &ExpertKernels) -> Option<String> {
    let from = kernels.rearranged_from_rows?;
    Some(format!(
        "experts that {from} tokens of a chunk or more use are rearranged for this CPU each time, \
         which was measured to pay from there"
    ))
}

fn approximate(facts: &Facts<'_>, ruled: &Ruled<'_>) -> Option<String> {
    let used = facts.model.demand.used;
    let fewer =
        facts.model.fewer_of.map(|own| format!("{used} of the {own} experts a token would use"));
    let skip = ruled.rules.skip_cold.map(|part| {
        format!("experts on disk are left out below {part} of an even share of a token's weights")
    });
    let said: Vec<String> = fewer.into_iter().chain(skip).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn loading(facts: &Facts<'_>, asked: &Asked, attempt: &Attempt<'_>, ruled: &Ruled<'_>) -> String {
    let (budget, residence) = (&attempt.budget, &attempt.residence);
    let Some(bytes) = residence.memory_bytes else {
        return match (residence.loading, asked.exact) {
            (Loading::OnDemand, _) => "experts read from disk when first needed".into(),
            (Loading::Mapped, false) => in_memory(&attempt.kernels(facts, asked)),
            (Loading::Mapped, true) => "experts mapped from the file".into(),
        };
    };
    let kept = attempt.placement.ram_slots().min(budget.experts);
    let rest = if kept < budget.experts { "the others on disk" } else { "all of them" };
    format!(
        "{} in all ({}), {kept} of {} experts stay in memory ({}), {rest}",
        format_bytes(bytes),
        if asked.memory_bytes.is_some() { "as asked" } else { &residence.why },
        budget.experts,
        ruled.rules.policies(),
    )
}

/// Layouts of experts in memory; what was not looked at is not named.
fn in_memory(kernels: &ExpertKernels) -> String {
    let mut names: Vec<_> = kernels.layouts.iter().map(|found| found.layout.name()).collect();
    names.sort_unstable();
    names.dedup();
    match names.is_empty() {
        true => "experts in memory, rearranged for this CPU where it helps".into(),
        false => format!("experts in memory, {} layout", names.join(" and ")),
    }
}

fn devices(facts: &Facts<'_>, asked: &Asked, attempt: &Attempt<'_>) -> String {
    let names: Vec<_> = attempt.candidates.iter().map(|c| c.fact.name.as_str()).collect();
    let names = names.join(" and ");
    let all_bytes = u64::from(attempt.budget.experts) * attempt.budget.slot_bytes;
    let of_experts = |bytes: u64| format_bytes(bytes.min(all_bytes));
    match attempt.device_use {
        DeviceUse::Everything => format!("all on {names}"),
        DeviceUse::DenseAndExperts { expert_bytes } => {
            let size = of_experts(expert_bytes);
            format!("dense weights and {size} of experts on {names}, CPU computes too")
        }
        DeviceUse::Dense => format!("dense weights on {names}"),
        DeviceUse::Experts { expert_bytes } => {
            format!("{} of experts on {names}, CPU computes too", of_experts(expert_bytes))
        }
        DeviceUse::Nothing if !attempt.candidates.is_empty() => {
            format!("{names} has too little memory to help")
        }
        DeviceUse::Nothing if facts.gpus.iter().all(|gpu| gpu.stands_in) => "no GPU found".into(),
        DeviceUse::Nothing if asked.exact && asked.devices != DevicesAsked::Cpu => {
            "GPUs left out: they round differently (--exact)".into()
        }
        DeviceUse::Nothing => "GPUs left out, as asked".into(),
    }
}

fn threads(facts: &Facts<'_>, asked: &Asked, threads: &ThreadSets) -> String {
    let source = match (asked.threads, facts.tuned) {
        (Some(_), _) => "as asked",
        (None, Some(_)) => "as `motley tune` measured",
        (None, None) if asked.goal == Goal::Energy => "the cheapest by memory bandwidth",
        (None, None) => "every core",
    };
    match threads.prefill == threads.decode {
        true => format!("{} threads: {source}", threads.decode.threads),
        false => format!(
            "{} threads for prompts, {} in decode: {source}",
            threads.prefill.threads, threads.decode.threads
        ),
    }
}

fn chunk(facts: &Facts<'_>, asked: &Asked, attempt: &Attempt<'_>) -> String {
    match attempt.session.chunk_tokens {
        _ if asked.chunk_tokens.is_some() => "as asked".into(),
        chunk if chunk == CHUNKS[0] && facts.measured.is_some() => {
            "the default: no other is clearly faster".into()
        }
        chunk if chunk == CHUNKS[0] => "the default".into(),
        chunk if facts.measured.is_some() && chunk > CHUNKS[0] => {
            "the fastest by measured costs: experts are read fewer times".into()
        }
        _ if facts.measured.is_some() => "the fastest by measured costs".into(),
        _ => "the largest that fits".into(),
    }
}

fn kv(attempt: &Attempt<'_>) -> String {
    let kv = attempt.session.kv.name();
    match attempt.kv_why {
        KvWhy::Asked => format!("{kv}, as asked"),
        KvWhy::Exact => format!("{kv}: others change bits (--exact)"),
        KvWhy::NotInBlocks(reason) => format!("{kv}: {reason}"),
        KvWhy::Fits => format!("{kv}: f16 would not fit"),
        KvWhy::Faster(times) => {
            format!("{kv}: {:.0} % faster than with f16, more experts fit", 100.0 * (times - 1.0))
        }
        KvWhy::Usual => format!("{kv}: fewer bits would not clearly gain"),
    }
}

fn rules(asked: &Asked, attempt: &Attempt<'_>, ruled: &Ruled<'_>) -> String {
    if attempt.placement.regime == Regime::OneMemory {
        return "every expert is in one memory: nothing to choose".into();
    }
    let (policies, prefetchers) = (ruled.rules.policies(), ruled.rules.prefetchers());
    if let Some(ChosenRules { gain, tokens, .. }) = ruled.chosen {
        return format!(
            "{policies} policy, {prefetchers} prefetch: chosen by replay, {:.1} % faster than the \
             defaults on {tokens} tokens held out",
            100.0 * gain
        );
    }
    let source = |given: bool| if given { "as asked" } else { "default" };
    let (by_policy, by_prefetch) =
        (source(asked.policy.is_some()), source(asked.prefetch.is_some()));
    format!("{policies} policy ({by_policy}), {prefetchers} prefetch ({by_prefetch})")
}

/// What was taken for granted.
pub(super) fn assumed(
    facts: &Facts<'_>,
    asked: &Asked,
    attempt: &Attempt<'_>,
    calibration: &Calibration,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !calibration.measured {
        notes.push("costs are from a description; `motley calibrate` measures them".to_owned());
    }
    let known = facts.profile.is_some_and(|profile| profile.header.reuse.is_known());
    if attempt.placement.regime != Regime::OneMemory && !known {
        let how = "hit rates are those of other models; `motley calibrate MODEL --text` tells";
        notes.push(how.to_owned());
    }
    if attempt.placement.regime == Regime::BeyondRam && calibration.disk.is_none() {
        notes.push("no disk is described: 1 GB/s is taken".to_owned());
    }
    if asked.goal == Goal::Energy && calibration.by_cores.is_empty() {
        notes.push("`motley tune` measures which cores decode cheapest".to_owned());
    }
    notes
}
