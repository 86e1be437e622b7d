//! Systems other than Linux: there is no io_uring, and the reader that was asked for says so.

use std::io;
use std::sync::Arc;

use crate::read::files::Files;
use crate::read::queue::ReadQueue;
use crate::read::workers::Workers;

/// Never made here.
pub(crate) enum Uring {}

/// Says that the system has none.
pub(crate) fn start(_: Arc<ReadQueue>, _: Arc<Files>, _: u32) -> io::Result<Uring> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring is Linux's alone"))
}

impl Workers for Uring {
    fn wake(&self) {
        match *self {}
    }

    fn join(&mut self) {
        match *self {}
    }
}
