//! The machine this program runs on, read from the system. Chooses nothing; all that is changed
//! is what this process itself may still do ([`sandbox`]).
//!
//! Every reader takes a root directory, `/` on a real machine, so that a folder of copied
//! files stands for any machine. What a system does not report is `None`, never a guess. Linux
//! and Android are complete; other systems report their memory, load and processor's name
//! (through the crate `sysinfo`), and the other readers answer `None` there.
//!
//! Reading order:
//! * [`memory`]: how much memory there is, and how much of it this process may use.
//! * [`cgroup`]: the control groups that limit this process.
//! * [`pressure`]: how long tasks waited for memory (PSI).
//! * [`refaults`]: pages that were dropped and read again.
//! * [`process_memory`]: what one process holds.
//! * [`huge_pages`]: whether memory can be mapped in big pieces.
//! * [`topology`]: cores, clusters, caches, memory nodes; [`cpu_name`]: what they are called.
//! * [`binding`]: whether threads can be bound to cores.
//! * [`load`]: how busy the machine is.
//! * [`disk`]: which disk and filesystem hold a path.
//! * [`accelerators`]: GPUs and NPUs that are shown.
//! * [`power`]: mains or battery.
//! * [`energy`]: meters, one file each, and the thread that samples one.
//! * [`sandbox`]: what this process may still touch and call, given up for good.
//! * `system`: what systems without such files report.
//! * `files`: bounded reads of small text files.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a hand: the sampler owns a thread and a clock")]

pub mod accelerators;
pub mod binding;
pub mod cgroup;
pub mod cpu_name;
pub mod disk;
pub mod energy;
mod files;
pub mod huge_pages;
pub mod load;
pub mod memory;
pub mod power;
pub mod pressure;
pub mod process_memory;
pub mod refaults;
pub mod sandbox;
mod system;
pub mod topology;
