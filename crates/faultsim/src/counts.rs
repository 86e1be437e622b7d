//! What happened in a run, counted. Judges nothing.

use serde::Serialize;

/// What happened in one run or in many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Faults injected, by kind.
    pub eio: u64,
    pub short_reads: u64,
    pub late_reads: u64,
    pub changed_files: u64,
    pub failed_steps: u64,
    /// Of copies to devices, and of devices that compute.
    pub failed_copies: u64,
    pub failed_launches: u64,
    pub refused_cuts: u64,
    pub panics: u64,
    pub resizes: u64,
    /// Segments of prompts that could not be read.
    pub unread_segments: u64,
    pub clients_left: u64,
    pub slow_clients: u64,
    /// Requests handed in, and what became of them.
    pub requests: u64,
    pub answered_right: u64,
    /// Of them in runs with faults.
    pub answered_right_under_faults: u64,
    pub ended_in_error: u64,
    pub refused: u64,
    /// Steps computed, experts read, second reads.
    pub steps: u64,
    pub expert_reads: u64,
    pub retries: u64,
    /// Segments of prompts read from disk.
    pub read_segments: u64,
}

impl Counts {
    /// Faults that may end a request with an error. (Clients that leave or stall, late reads and
    /// memory that shrinks may not.)
    pub fn harmful(&self) -> u64 {
        self.eio
            + self.short_reads
            + self.changed_files
            + self.failed_steps
            + self.failed_launches
            + self.refused_cuts
            + self.panics
    }

    /// All faults.
    pub fn faults(&self) -> u64 {
        let harmless = self.late_reads + self.failed_copies + self.resizes + self.unread_segments;
        self.harmful() + harmless + self.clients_left + self.slow_clients
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        let Self {
            eio,
            short_reads,
            late_reads,
            changed_files,
            failed_steps,
            failed_copies,
            failed_launches,
            refused_cuts,
            panics,
            resizes,
            unread_segments,
            clients_left,
            slow_clients,
            requests,
            answered_right,
            answered_right_under_faults,
            ended_in_error,
            refused,
            steps,
            expert_reads,
            retries,
            read_segments,
        } = self;
        *eio += other.eio;
        *short_reads += other.short_reads;
        *late_reads += other.late_reads;
        *changed_files += other.changed_files;
        *failed_steps += other.failed_steps;
        *failed_copies += other.failed_copies;
        *failed_launches += other.failed_launches;
        *refused_cuts += other.refused_cuts;
        *panics += other.panics;
        *resizes += other.resizes;
        *unread_segments += other.unread_segments;
        *clients_left += other.clients_left;
        *slow_clients += other.slow_clients;
        *requests += other.requests;
        *answered_right += other.answered_right;
        *answered_right_under_faults += other.answered_right_under_faults;
        *ended_in_error += other.ended_in_error;
        *refused += other.refused;
        *steps += other.steps;
        *expert_reads += other.expert_reads;
        *retries += other.retries;
        *read_segments += other.read_segments;
    }
}
