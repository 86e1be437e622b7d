//! Who may read what is kept. Rights are bits where the system has them; elsewhere a new file or
//! folder has those of the folder it is in, which are its owner's in a home folder.

#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "portable.rs"]
mod system;

pub use system::{make_private_file, make_private_folder, mode};
pub(crate) use system::{set_mode, sync_folder};
