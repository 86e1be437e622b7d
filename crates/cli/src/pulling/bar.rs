//! How far a download is: one bar over all parts on a terminal, nothing elsewhere. Counts; says
//! what happened between, and nothing else.

use crate::page::progress_target;
use crate::terminal::note;
use indicatif::{ProgressBar, ProgressStyle};
use motley_hub::{FetchError, Progress};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of all parts together.
pub(super) struct Bar {
    bar: ProgressBar,
    came: AtomicU64,
    waits: AtomicBool,
    /// Whether a connection broke and nothing came since.
    broken: AtomicBool,
    quiet: bool,
}

impl Bar {
    pub(super) fn new(total_bytes: u64, quiet: bool) -> Self {
        let style = ProgressStyle::with_template(
            "{wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left {msg}",
        )
        .expect("the template is a constant");
        let bar = ProgressBar::with_draw_target(Some(total_bytes), progress_target(quiet));
        let (came, waits, broken) = Default::default();
        Self { bar: bar.with_style(style), came, waits, broken, quiet }
    }

    /// Bytes that came over the network.
    pub(super) fn came_bytes(&self) -> u64 {
        self.came.load(Relaxed)
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn here(&self, bytes: u64) {
        self.bar.inc(bytes);
        // What was here says nothing about how fast the rest comes.
        self.bar.reset_eta();
    }

    fn came(&self, bytes: u64) {
        self.came.fetch_add(bytes, Relaxed);
        self.bar.inc(bytes);
        if self.broken.swap(false, Relaxed) {
            self.bar.set_message("");
        }
    }

    fn lost(&self, bytes: u64) {
        self.bar.dec(bytes);
    }

    fn waits(&self, file: &str) {
        if !self.quiet && !self.waits.swap(true, Relaxed) {
            let said = format!("{file}: another process is fetching it; waiting for that");
            self.bar.suspend(|| note(&said));
        }
    }

    fn again(&self, file: &str, error: &FetchError, wait: Duration) {
        tracing::info!("{file}: {error}; again in {wait:.1?}");
        self.broken.store(true, Relaxed);
        let said = format!("(connection broke: again in {:.0} s)", wait.as_secs_f64().ceil());
        self.bar.set_message(said);
    }
}

/// Shown while the headers of so many files are read.
pub(super) fn headers(files: usize) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {msg}").expect("the template is a constant");
    let bar = ProgressBar::with_draw_target(None, progress_target(false)).with_style(style);
    let what = if files == 1 { "the header".to_owned() } else { format!("{files} headers") };
    bar.set_message(format!("reading {what}"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
