//! Threads that launch graphs: several under way at once, as their devices take them (Table 5 of
//! the source: one after the other is 1.4 to 2.9 times slower).

use super::group::LoadedGroup;
use crate::clock::now;
use motley_npu::GraphError;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A group on its way: its place in the layer, and the group itself.
type Job = (usize, LoadedGroup);
type Done = (usize, LoadedGroup, Result<(), GraphError>);

/// The threads of one session.
pub(super) struct Launchers(Vec<Launcher>);

struct Launcher {
    /// `None` when the thread is to end.
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
    under_way: usize,
    /// What was given to it and is under way.
    expected_us: f64,
}

impl Launchers {
    /// `threads` of them; every launch takes `cost` longer.
    pub(super) fn start(threads: usize, cost: Duration) -> Self {
        Self((0..threads.max(1)).map(|_| Launcher::start(cost)).collect())
    }

    /// Launches a group on the thread that is free first.
    pub(super) fn launch(&mut self, place: usize, group: LoadedGroup) -> Result<(), String> {
        let first = self.0.iter_mut().min_by(|a, b| a.expected_us.total_cmp(&b.expected_us));
        let launcher = first.ok_or("there is no thread to launch graphs")?;
        // Until it is measured, all groups are alike.
        launcher.expected_us += group.us.unwrap_or(1.0);
        launcher.under_way += 1;
        let sent = launcher.jobs.as_ref().is_some_and(|jobs| jobs.send((place, group)).is_ok());
        if sent { Ok(()) } else { Err(ENDED.into()) }
    }

    /// Waits for all groups; each goes to `back` with its place. The first failure is told when
    /// all are back.
    pub(super) fn collect(
        &mut self,
        mut back: impl FnMut(usize, LoadedGroup),
    ) -> Result<(), String> {
        let mut failed = None;
        for launcher in &mut self.0 {
            launcher.expected_us = 0.0;
            for _ in 0..std::mem::take(&mut launcher.under_way) {
                let Ok((place, group, ran)) = launcher.done.recv() else {
                    failed = Some(ENDED.to_owned());
                    break;
                };
                back(place, group);
                if let Err(error) = ran {
                    failed.get_or_insert(error.to_string());
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

const ENDED: &str = "a thread that launches graphs has ended";

impl Launcher {
    #[allow(clippy::disallowed_methods, reason = "a device owns threads")]
    fn start(cost: Duration) -> Self {
        let (jobs, given) = channel::<Job>();
        let (give_back, done) = channel();
        let thread = std::thread::Builder::new().name("motley-npu".into()).spawn(move || {
            while let Ok((place, mut group)) = given.recv() {
                let begun = now();
                let ran = group.run();
                std::thread::sleep(cost);
                group.ran(begun.elapsed());
                if give_back.send((place, group, ran)).is_err() {
                    return;
                }
            }
        });
        let thread = Some(thread.expect("the system gives a few more threads"));
        Self { jobs: Some(jobs), done, thread, under_way: 0, expected_us: 0.0 }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}
