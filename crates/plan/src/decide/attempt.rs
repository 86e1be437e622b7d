//! One way to run a model: with this chunk, within this memory. Where weights live, what each
//! memory holds, and how fast that should be. [`decide`](super::decide) compares attempts.

use motley_cost::calibration::{KernelWay, WeightLayout};
use motley_machine::{DeviceKind, Regime};
use motley_model::{KvType, NotInBlocks, format_bytes};

use super::asked::{ANSWER_TOKENS, Asked, Loading};
use super::devices::{Candidate, usage};
use super::error::DecideError;
use super::facts::Facts;
use crate::budget::{Budget, BudgetReason, SessionShape};
use crate::calibration::Calibration;
use crate::device_use::DeviceUse;
use crate::headroom::device_rows;
use crate::kernels::{ExpertKernels, KernelFacts};
use crate::measured::MeasuredKernels;
use crate::placement::{Holding, Placement};
use crate::predict::{Case, Prediction, decode, prefill};

/// An attempt.
pub(super) struct Attempt<'a> {
    pub(super) session: SessionShape,
    pub(super) budget: Budget,
    pub(super) residence: Residence,
    pub(super) device_use: DeviceUse,
    pub(super) candidates: &'a [Candidate<'a>],
    /// Memory of each candidate.
    pub(super) rooms: Vec<u64>,
    /// Of it, what weights and the KV cache may take; they divide as this does.
    pub(super) for_weights: Vec<u64>,
    pub(super) placement: Placement,
    pub(super) kv_why: KvWhy,
}

/// Why keys and values are kept in what they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum KvWhy {
    /// Nothing smaller clearly gains.
    Usual,
    Asked,
    Exact,
    NotInBlocks(NotInBlocks),
    /// In 16 bits it would not fit.
    Fits,
    /// So many times as fast as with 16 bits.
    Faster(f64),
}

/// What attempts differ in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Ceiling for everything in RAM, where one was asked for.
    pub(super) memory_bytes: Option<u64>,
    pub(super) chunk_tokens: u32,
    pub(super) context_tokens: u32,
    pub(super) kv: KvType,
}

/// Where weights live in RAM.
pub(super) struct Residence {
    pub(super) loading: Loading,
    /// Ceiling, where there is one.
    pub(super) memory_bytes: Option<u64>,
    /// Why that much, in words.
    pub(super) why: String,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        facts: &Facts<'a>,
        asked: &Asked,
        candidates: &'a [Candidate<'a>],
        size: Size,
    ) -> Result<Self, DecideError> {
        let Size { memory_bytes, chunk_tokens, context_tokens, kv } = size;
        let session = SessionShape {
            context_tokens,
            kv,
            windows: asked.windows() && facts.model.window_tokens > 0,
            chunk_tokens,
            output_tokens: asked.outputs.tokens(chunk_tokens),
            states: asked.outputs.states(),
        };
        let mut budget = facts.model.budget(session);
        budget.compute_bytes += scratch_bytes(facts, asked);
        let residence = Residence::choose(facts, asked, memory_bytes, &budget);
        let streams = residence.loading == Loading::OnDemand;
        // llama.cpp takes buffers on a device whole: with room for every token's logits.
        let whole = facts.model.budget(SessionShape { output_tokens: chunk_tokens, ..session });
        let used = facts.model.demand.used;
        let (device_use, rooms) = match candidates.is_empty() {
            true => (DeviceUse::Nothing, Vec::new()),
            false => usage(candidates, asked, used, &whole, streams)?,
        };
        let mut attempt = Self {
            session,
            budget,
            residence,
            device_use,
            candidates,
            for_weights: device_use.rooms_for_weights(&whole, &rooms),
            rooms,
            placement: Placement {
                regime: Regime::OneMemory,
                dense_on_gpu: device_use.has_dense(),
                holdings: Vec::new(),
                experts: budget.experts,
            },
            kv_why: KvWhy::Usual,
        };
        attempt.place(facts, &whole)?;
        Ok(attempt)
    }

    /// Fills in what each memory holds. GPUs that share the CPU's memory hold nothing apart.
    fn place(&mut self, facts: &Facts<'_>, on_device: &Budget) -> Result<(), DecideError> {
        let apart = self.candidates.iter().all(|candidate| candidate.fact.own_memory);
        let uses = self.device_use != DeviceUse::Nothing && apart && !self.candidates.is_empty();
        let mut holdings = if uses { self.on_devices(on_device) } else { Vec::new() };
        let on_gpus: u32 = holdings.iter().map(|holding| holding.expert_slots).sum();
        holdings.push(self.in_ram(facts, uses)?);
        let streams = self.residence.loading == Loading::OnDemand && self.budget.experts > 0;
        self.placement.regime = match self.device_use {
            // Even with room for all of them: they come from disk when first needed.
            _ if streams => Regime::BeyondRam,
            _ if on_gpus >= self.budget.experts => Regime::OneMemory,
            DeviceUse::DenseAndExperts { .. } | DeviceUse::Experts { .. } => Regime::Hybrid,
            _ => Regime::OneMemory,
        };
        self.placement.holdings = holdings;
        Ok(())
    }

    fn on_devices(&self, budget: &Budget) -> Vec<Holding> {
        let all: u128 = self.for_weights.iter().map(|&room| u128::from(room)).sum();
        let dense = self.device_use.has_dense();
        let part = |whole: u64, room: u128| (u128::from(whole) * room / all.max(1)) as u64;
        let slots = self.device_slots(budget);
        let mut before: u128 = 0;
        let each = |((candidate, &room), &weights): ((&Candidate<'_>, &u64), &u64)| {
            // Shares of a running sum: what is rounded off goes to the next device.
            let (from, to) = (before, before + u128::from(weights));
            before = to;
            let share = |whole: u64| if dense { part(whole, to) - part(whole, from) } else { 0 };
            Holding {
                device: candidate.fact.name.clone(),
                room_bytes: room,
                dense_bytes: share(budget.dense_bytes),
                kv_bytes: share(budget.kv_bytes),
                other_bytes: if dense { budget.compute_bytes } else { 0 },
                expert_slots: part(slots, weights.into()) as u32,
                expert_bytes: 0,
            }
        };
        let devices = self.candidates.iter().zip(&self.rooms).zip(&self.for_weights);
        let mut holdings: Vec<Holding> = devices.map(each).collect();
        let placed: u64 = holdings.iter().map(|held| u64::from(held.expert_slots)).sum();
        fill(&mut holdings, budget.slot_bytes, slots.saturating_sub(placed));
        holdings
    }

    /// Slots for experts on all devices together.
    fn device_slots(&self, budget: &Budget) -> u64 {
        let experts = self.device_use.expert_bytes(budget);
        // llama.cpp counts its own buffers.
        let rows = if self.device_use == DeviceUse::Everything { 0 } else { device_rows(experts) };
        let slots = (experts - rows).checked_div(budget.slot_bytes).unwrap_or(0);
        slots.min(u64::from(budget.experts))
    }

    fn in_ram(&self, facts: &Facts<'_>, beside_gpus: bool) -> Result<Holding, DecideError> {
        let (budget, experts) = (&self.budget, self.budget.experts);
        let dense_elsewhere = beside_gpus && self.device_use.has_dense();
        let expert_slots = match (self.residence.loading, self.residence.memory_bytes) {
            _ if beside_gpus && self.device_use == DeviceUse::Everything => 0,
            (Loading::OnDemand, Some(bytes)) if dense_elsewhere => {
                budget.beside_dense_gpu().slots(bytes)?
            }
            (Loading::OnDemand, Some(bytes)) => budget.slots(bytes)?,
            (Loading::OnDemand, None) if experts > 0 => experts + 1,
            _ => experts,
        };
        let cpu = facts.machine.first(DeviceKind::Cpu);
        let mut holding = Holding {
            device: cpu.map_or_else(|| "cpu".to_owned(), |cpu| cpu.name.clone()),
            room_bytes: 0,
            dense_bytes: if dense_elsewhere { budget.input_bytes } else { budget.dense_bytes },
            kv_bytes: if dense_elsewhere { 0 } else { budget.kv_bytes },
            other_bytes: budget.compute_bytes + budget.process_bytes,
            expert_slots,
            expert_bytes: u64::from(expert_slots) * budget.slot_bytes,
        };
        let total = facts.memory.map_or(0, |memory| memory.total_bytes);
        let room = self.residence.memory_bytes.unwrap_or(total);
        holding.room_bytes = room.max(holding.bytes());
        Ok(holding)
    }

    /// The costs of experts as this attempt lays them out.
    pub(super) fn calibration(
        &self,
        facts: &Facts<'_>,
        asked: &Asked,
    ) -> Result<Calibration, DecideError> {
        if self.in_file_order(asked) {
            return costs(facts, asked, &|_| WeightLayout::Plain);
        }
        let kernels = self.kernels(facts, asked);
        let routed = |name: &str| kernels.layouts.iter().find(|found| found.quantisation == name);
        // llama.cpp rearranges the rest as it sees fit.
        let layout = |name: &str| routed(name).map_or(WeightLayout::Repacked, |found| found.layout);
        costs(facts, asked, &layout)
    }

    /// How the CPU computes experts.
    pub(super) fn kernels(&self, facts: &Facts<'_>, asked: &Asked) -> ExpertKernels {
        if asked.exact {
            return ExpertKernels::exact();
        }
        let demand = &facts.model.demand;
        let known = KernelFacts {
            table: facts.measured,
            threads: asked.threads.unwrap_or(facts.measured.map_or(1, |t| t.provenance.cores)),
            width: demand.expert_matrix_weights(),
            offered: facts.layouts,
            spare_bytes: facts.memory.map_or(0, |machine| self.budget.spare_bytes(machine)),
            experts: (demand.experts, demand.used),
            tokens: (self.session.chunk_tokens, asked.prompt_tokens, ANSWER_TOKENS as u32),
        };
        match self.in_file_order(asked) {
            true => ExpertKernels::in_file_order(&known),
            false => ExpertKernels::in_memory(&known),
        }
    }

    /// What is streamed or shared keeps the file's order.
    fn in_file_order(&self, asked: &Asked) -> bool {
        asked.exact || self.placement.regime != Regime::OneMemory
    }

    /// Whether experts are read into memory of Motley's own, in layouts of its choice.
    pub(super) fn lays_out(&self, facts: &Facts<'_>, asked: &Asked) -> bool {
        let on_device = self.device_use == DeviceUse::Everything;
        facts.model.is_moe() && !on_device && !self.in_file_order(asked)
    }

    /// Expected prefill and decode.
    pub(super) fn predict(
        &self,
        facts: &Facts<'_>,
        asked: &Asked,
        calibration: &Calibration,
        busy_w: Option<f64>,
    ) -> (Prediction, Prediction) {
        let case = Case {
            demand: &facts.model.demand,
            calibration,
            placement: &self.placement,
            profile: facts.profile,
            context_tokens: 0,
            busy_w,
        };
        let prompt = asked.prompt_tokens.max(1);
        let after = Case { context_tokens: prompt, ..case };
        (prefill(&case, self.session.chunk_tokens.min(prompt)), decode(&after))
    }
}

/// What threads take that rearrange an expert each, where anybody measured whether that pays.
fn scratch_bytes(facts: &Facts<'_>, asked: &Asked) -> u64 {
    let Some(table) = facts.measured.filter(|_| !asked.exact) else { return 0 };
    let measured = table.experts.iter().any(|cost| cost.way == KernelWay::Rearranged);
    let threads = asked.threads.unwrap_or(table.provenance.cores);
    if measured { facts.model.expert_bytes.saturating_mul(threads.into()) } else { 0 }
}

/// Gives the `left` slots that division rounded off to devices with room for them.
fn fill(holdings: &mut [Holding], slot_bytes: u64, mut left: u64) {
    for held in holdings {
        let others = held.dense_bytes + held.kv_bytes + held.other_bytes;
        let most = held.room_bytes.saturating_sub(others).checked_div(slot_bytes).unwrap_or(0);
        let more = left.min(most.saturating_sub(held.expert_slots.into()));
        left -= more;
        held.expert_slots += more as u32;
        held.expert_bytes = u64::from(held.expert_slots) * slot_bytes;
    }
}

/// Costs for experts that lie as `layout`: measured, else derived.
pub(super) fn costs(
    facts: &Facts<'_>,
    asked: &Asked,
    layout: &dyn Fn(&str) -> WeightLayout,
) -> Result<Calibration, DecideError> {
    let Some(table) = facts.measured else { return Ok(Calibration::derive(facts.machine)?) };
    let threads = asked.threads.unwrap_or(table.provenance.cores);
    let width = facts.model.demand.expert_matrix_weights();
    let kernels = match asked.exact {
        true => MeasuredKernels { layout, ways: &[KernelWay::Whole] },
        false => MeasuredKernels::laid_out(layout),
    };
    Ok(Calibration::measured(table, &kernels, threads, width)?)
}

impl Residence {
    /// As `--memory` and `--loading` say; else mapped when everything fits into what the machine
    /// can give, and streamed within that when not (M3).
    fn choose(
        facts: &Facts<'_>,
        asked: &Asked,
        memory_bytes: Option<u64>,
        budget: &Budget,
    ) -> Self {
        let on_demand = |memory_bytes, why| Self { loading: Loading::OnDemand, memory_bytes, why };
        if let Some(bytes) = memory_bytes {
            return on_demand(Some(bytes), format!("{}, as asked", format_bytes(bytes)));
        }
        match (asked.loading, facts.memory.filter(|_| facts.model.is_moe())) {
            (Some(Loading::OnDemand), _) => on_demand(None, "room for every expert".into()),
            (None, Some(machine)) => {
                let chosen = budget.default_bytes(machine);
                match chosen.reason {
                    BudgetReason::EverythingFits => Self::mapped(chosen.to_string()),
                    _ => on_demand(Some(chosen.bytes), chosen.to_string()),
                }
            }
            (Some(Loading::Mapped), _) => Self::mapped("as much as the system keeps".into()),
            (None, None) => Self::mapped("the system keeps what it maps".into()),
        }
    }

    fn mapped(why: String) -> Self {
        Self { loading: Loading::Mapped, memory_bytes: None, why }
    }
}
