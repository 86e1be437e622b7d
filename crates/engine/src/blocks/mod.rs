//! What happens to each routed-expert block of a session: computed from memory, streamed from disk,
//! or shared with devices.
//!
//! * `drive`: the executor of a session, and the loop that streams (sibling of the simulator's).
//! * [`options`]: how experts are streamed.
//! * `streaming`: what such a session is made of (M3).
//! * `experts`: the bytes of streamed experts: arenas and the disk.
//! * [`devices`]: experts in RAM beside devices that hold some of them (H1).
//! * [`helper`]: a unit beside the CPU that takes blocks; `npu`: one (feature `npu`).
//! * `predict`: router scores and guesses for those who ask; `gates`: the routers.
//! * `loads`: the experts of a block, counted.
//! * [`resident`]: which experts are in memory, for others to read.
//! * [`pressure`]: the machine's memory, before and while it runs.
//! * [`routing`]: watching which experts the router chose.
//! * [`clock`]: the scheduler's time.
//! * `step`: which phase the batch under way belongs to, set by whoever made it.
//! * [`figures`]: what blocks took and read; `timeline`: what ran when.

pub mod clock;
pub mod devices;
pub(crate) mod drive;
pub(crate) mod experts;
pub mod figures;
pub(crate) mod gates;
pub mod helper;
mod loads;
#[cfg(feature = "npu")]
pub mod npu;
pub mod options;
pub(crate) mod predict;
pub mod pressure;
pub mod resident;
pub mod routing;
pub(crate) mod step;
pub(crate) mod streaming;
pub(crate) mod timeline;
