//! How many connections a worker has, and their end. A slot is given back when it is dropped.

use crate::limits::MAX_CONNECTIONS;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    taken: u64,
    open: BTreeMap<u64, TcpStream>,
}

/// Held by whoever serves a connection.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Slots,
    number: u64,
}

impl Slots {
    /// A place for one more connection; `None` when there is none, or everything ends.
    pub(crate) fn take(&self, tcp: &TcpStream) -> io::Result<Option<Slot>> {
        let handle = tcp.try_clone()?;
        let mut state = self.state();
        if state.stopped || state.open.len() >= MAX_CONNECTIONS {
            return Ok(None);
        }
        state.taken += 1;
        let number = state.taken;
        state.open.insert(number, handle);
        Ok(Some(Slot { slots: self.clone(), number }))
    }

    /// Ends every connection there is, and takes no more.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        for tcp in state.open.values() {
            // One that is gone already needs no end.
            let _ = tcp.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        self.state().stopped
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.state().open.remove(&self.number);
    }
}
