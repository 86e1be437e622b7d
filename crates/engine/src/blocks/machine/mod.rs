//! The machine in real time: every unit computes experts of one block at once, whatever memories
//! they are in (H1–H4). Drives the same scheduler as the simulator; chooses nothing.
//!
//! ```text
//!   driver's thread   block ─ route ─▶ what the CPU is given ─▶ rows ─▶ block is done
//!   device threads    take what the scheduler hands to a device, all that is ready at once
//!   copy threads      bring experts over a device's link; an arrived one joins its queue
//!   disk              reads experts into memory, several at a time
//! ```
//!
//! All report to one board and poll it themselves, so that devices, links and disk go on while the
//! CPU computes.
//!
//! | machine | first tier | others |
//! |---|---|---|
//! | beyond RAM | RAM, filled from disk, with the CPU | – |
//! | beyond RAM with devices | the same | a device each, filled from RAM |
//! | devices beside RAM | a device, filled from RAM | the other devices |
//!
//! Modules in reading order:
//! - [`units`]: what devices, links, the disk and the CPU have to offer.
//! - `buffers`: which buffer of a device a place of the scheduler is, and what is in it.
//! - `board`: the scheduler with its queues; events in, orders out. `reads`: when reads began.
//! - [`executor`]: the threads, and one block from routing to rows; [`stepped`]: without threads.
//! - [`figures`]: what it did, and why it could not go on.
//! - [`device`]: a device of ggml's behind these traits; [`device_room`]: their memory.
//! - `disk`: arenas and the reader behind them.
//! - `session`: the blocks of a session through it; [`options`]; [`handle`]: a window on it.
//! - [`artificial`]: units that sleep for what they would take, and drives over them.

pub mod artificial;
mod board;
mod buffers;
pub mod device;
pub mod device_room;
pub(crate) mod disk;
pub mod executor;
pub mod figures;
pub mod handle;
pub mod options;
mod reads;
pub(crate) mod session;
pub mod stepped;
pub mod units;

pub use crate::blocks::clock::Clock;
pub use device_room::DeviceRoom;
pub use executor::{BlockDone, Executor, ExecutorParts};
pub use figures::{MachineError, MachineFigures};
pub use handle::{MachineHandle, MachineReport};
pub use options::DeviceOptions;
pub use units::{
    Arrivals, CopyOrder, Cpu, CpuOrder, Device, DeviceOrder, Disk, DiskDone, Flow, Landed, Link,
    UnitFailed,
};
