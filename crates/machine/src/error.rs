//! Why a machine could not be read, and the limits a description is held to.

use std::path::PathBuf;

/// The only format version this crate reads.
pub const FORMAT_VERSION: u32 = 1;
/// A machine file is prose-sized; anything longer is not one.
pub const MAX_FILE_BYTES: usize = 256 * 1024;
/// Most devices, links or clusters in one file.
pub const MAX_ITEMS: usize = 256;

/// Why a machine could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The file could not be opened or read.
    #[error("cannot read machine file {}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Longer than [`MAX_FILE_BYTES`].
    #[error("{origin}: {bytes} bytes is too long for a machine file (limit {MAX_FILE_BYTES})")]
    TooLong {
        /// File or name.
        origin: String,
        bytes: usize,
    },
    /// Not TOML, an unknown field, or a field of the wrong type.
    #[error("{origin}: {source}")]
    Syntax {
        /// File or name.
        origin: String,
        /// Line, column and field.
        source: Box<toml::de::Error>,
    },
    /// A version this crate does not read.
    #[error("{origin}: version = {found}, but this program reads version {FORMAT_VERSION}")]
    Version {
        /// File or name.
        origin: String,
        /// What the file says.
        found: u32,
    },
    /// A number outside what the field allows.
    #[error("{origin}: {item}: {field} = {value}, but it must be {rule}")]
    Value {
        /// File or name.
        origin: String,
        /// Which device, link or cluster.
        item: String,
        field: &'static str,
        /// What the file says.
        value: f64,
        /// What it has to be.
        rule: &'static str,
    },
    /// Two items under one name.
    #[error("{origin}: two devices are called \"{name}\"")]
    Duplicate {
        /// File or name.
        origin: String,
        name: String,
    },
    /// A link, cluster or shared memory refers to nothing.
    #[error("{origin}: {item}: {field} = \"{name}\" is not a device (devices: {known})")]
    UnknownDevice {
        /// File or name.
        origin: String,
        /// Which link, cluster or device.
        item: String,
        field: &'static str,
        name: String,
        /// The names there are.
        known: String,
    },
    /// No ready machine and no file of that name.
    #[error("no machine \"{name}\"; ready ones: {known}; or give the path of a .toml file")]
    NotFound {
        /// What was asked for.
        name: String,
        /// The ready machines.
        known: String,
    },
}
