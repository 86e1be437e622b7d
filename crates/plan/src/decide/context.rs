//! How long the KV cache is when nobody says: as long as it costs nothing else. llama.cpp takes
//! and clears all of it at the start, so every cell is memory that experts, other programs or the
//! file cache do not have.
//!
//! ```text
//!   least   4096 cells, or what the prompt and an answer need
//!   most    what it was trained for, for each of up to four streams
//!   between half of the memory that would be left over, or cells that slow a run by 5 % at most
//! ```

use std::iter::successors;

use motley_model::format_bytes;

use super::asked::{Asked, DEFAULT_CONTEXT_TOKENS, Goal, Outputs};
use super::attempt::Attempt;
use super::facts::Facts;

/// Streams of a server that can all be as long as the model was trained for.
const FULL_STREAMS: u16 = 4;
/// llama.cpp rounds to as many cells.
const STEP_TOKENS: u32 = 256;
/// Of the memory that is left over, the part that may go to cells: 1 / so many.
const SPARE_PART: u64 = 2;

/// Lengths worth a try beyond the `smallest` attempt's, the longest first.
pub(super) fn lengths(
    facts: &Facts<'_>,
    asked: &Asked,
    smallest: &Attempt<'_>,
) -> impl Iterator<Item = u32> {
    let least = smallest.session.context_tokens;
    let longest = most(facts, asked).min(affordable(facts, smallest));
    let halves = successors(Some(longest), |tokens| Some(tokens / 2));
    let whole = move |tokens: u32| match tokens > STEP_TOKENS {
        true => tokens - tokens % STEP_TOKENS,
        false => tokens,
    };
    halves.map(whole).take_while(move |tokens| *tokens > least)
}

/// Cells that this use can fill. Text that is scored comes in pieces of the least length.
fn most(facts: &Facts<'_>, asked: &Asked) -> u32 {
    let streams = match asked.outputs {
        Outputs::One | Outputs::Ahead(_) | Outputs::Texts(_) => 1,
        Outputs::Streams(streams) => streams.min(FULL_STREAMS),
        Outputs::All => 0,
    };
    facts.model.trained_tokens.saturating_mul(streams.into())
}

/// Cells that memory has room for beside everything else, where that is known.
fn affordable(facts: &Facts<'_>, smallest: &Attempt<'_>) -> u32 {
    let cell_bytes = facts.model.cell_bytes(&smallest.session).max(1);
    let budget = &smallest.budget;
    let own = smallest.candidates.iter().all(|candidate| candidate.fact.own_memory);
    let spare = match (smallest.residence.memory_bytes, facts.memory) {
        // On a GPU, beside its dense weights; the comparison of speeds keeps it from experts.
        _ if smallest.placement.dense_on_gpu && own => smallest.rooms.iter().sum(),
        // Within a budget every cell takes from experts: the comparison of speeds decides.
        (Some(bytes), _) => bytes.saturating_sub(budget.smallest_bytes()),
        (None, Some(machine)) => budget.spare_bytes(machine),
        (None, None) => 0,
    };
    let more = u32::try_from(spare / SPARE_PART / cell_bytes).unwrap_or(u32::MAX);
    smallest.session.context_tokens.saturating_add(more)
}

/// Most tokens of one sequence, where nobody asked for a length of the cache.
pub(super) fn longest(facts: &Facts<'_>, asked: &Asked) -> Option<u32> {
    let trained = Some(facts.model.trained_tokens).filter(|trained| *trained > 0);
    trained.filter(|_| asked.context_tokens.is_none())
}

/// Why it is as long as it is.
pub(super) fn why(facts: &Facts<'_>, asked: &Asked, attempt: &Attempt<'_>) -> String {
    let tokens = attempt.session.context_tokens;
    let size = format_bytes(attempt.budget.kv_bytes);
    let windows = match attempt.session.windows {
        true => format!(", windows of {} tokens", facts.model.window_tokens),
        false => String::new(),
    };
    let size = format!("{size} at {}{windows}", attempt.session.kv.name());
    if asked.context_tokens.is_some() {
        return format!("as asked, {size}");
    }
    let trained = facts.model.trained_tokens;
    let why = match tokens.checked_div(trained).filter(|_| tokens.is_multiple_of(trained.max(1))) {
        Some(1) => "what the model was trained for",
        Some(_) => "what the model was trained for, for several streams",
        None if asked.goal == Goal::Memory => "the least: memory is what matters",
        None if asked.outputs == Outputs::All => "text is scored in pieces",
        None if tokens == asked.least_context() && tokens > DEFAULT_CONTEXT_TOKENS => {
            "the least for a prompt this long"
        }
        None if tokens > DEFAULT_CONTEXT_TOKENS => "as long as nothing else is slower for it",
        None if most(facts, asked) <= tokens => "the default: the model was trained for no more",
        None => "the least: more would leave too little memory to the rest",
    };
    format!("{why}, {size}")
}
