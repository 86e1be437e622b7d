//! What happens to each routed-expert block of a session: computed from memory, streamed from disk,
//! or shared with devices.
//!
//! * `drive`: the executor of a session.
//! * [`machine`]: experts on disk, in RAM and on devices, all units at once (H1, M3).
//! * [`options`]: how experts are streamed.
//! * [`first_unit`]: a unit that takes rows before the others; `npu`: one (feature `npu`);
//!   [`remote`]: another, which is other machines.
//! * `predict`: router scores and guesses for those who ask; `gates`: the routers.
//! * `skip`: pairs that are left out, and what makes up for them.
//! * `loads`: the experts of a block, counted.
//! * [`resident`]: which experts are in memory, for others to read.
//! * [`pressure`]: the machine's memory, before and while it runs.
//! * [`routing`]: watching which experts the router chose.
//! * [`clock`]: the scheduler's time.
//! * `step`: which phase the batch under way belongs to, set by whoever made it.
//! * `way`: how the CPU computes a block.
//! * [`figures`]: what blocks took and read.

pub mod clock;
pub(crate) mod drive;
pub mod figures;
pub mod first_unit;
pub(crate) mod gates;
mod loads;
pub mod machine;
#[cfg(feature = "npu")]
pub mod npu;
pub mod options;
pub(crate) mod predict;
pub mod pressure;
#[cfg(feature = "llama")]
pub mod remote;
pub mod resident;
pub mod routing;
mod skip;
pub(crate) mod step;
mod way;
