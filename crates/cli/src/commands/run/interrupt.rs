//! Ctrl-C: ends the answer, not the program; a second time before anything ended, the program.

use anyhow::{Context, Result};
use motley_engine::Cancel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether somebody wants the answer to end.
pub(super) struct Interrupt {
    pressed: Arc<AtomicBool>,
    cancel: Cancel,
}

impl Interrupt {
    /// Listens from now on; the program's only listener.
    pub(super) fn listen(cancel: Cancel) -> Result<Self> {
        let pressed = Arc::new(AtomicBool::new(false));
        let (flag, work) = (Arc::clone(&pressed), cancel.clone());
        ctrlc::set_handler(move || {
            if flag.swap(true, Relaxed) {
                motley_engine::exit_now(130);
            }
            work.cancel();
        })
        .context("cannot listen for Ctrl-C")?;
        Ok(Self { pressed, cancel })
    }

    /// An answer begins: what was pressed before it does not count.
    pub(super) fn begin(&self) {
        self.pressed.store(false, Relaxed);
        self.cancel.reset();
    }

    pub(super) fn is_pressed(&self) -> bool {
        self.pressed.load(Relaxed)
    }
}
