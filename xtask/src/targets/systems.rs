//! The targets, what is checked for each, and who runs their tests here.

use super::emulator::Emulator;

/// A system and a processor.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) triple: &'static str,
    /// Who runs its programs on this machine, if anybody does.
    pub(super) runner: Option<Runner>,
}

/// Runs programs of another system or processor.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) emulator: Emulator,
    /// Crates whose tests it runs.
    pub(super) crates: &'static [&'static str],
    /// Tests that it cannot run, each with the reason.
    pub(super) passed_over: &'static [(&'static str, &'static str)],
}

/// Crates that are checked in one call of cargo, whose features are therefore those of all of them.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) crates: &'static [&'static str],
}

/// Every target, from the most like this machine on.
pub(super) const TARGETS: [Target; 3] = [
    Target {
        triple: "aarch64-unknown-linux-gnu",
        runner: Some(Runner {
            emulator: Emulator::Qemu,
            crates: &["motley-model", "motley-store", "motley-sched", "motley-sim", "motley-host"],
            passed_over: &[
                ("who_may_reach_others_does_so_by_tcp_alone", "QEMU has no seccomp"),
                (
                    "what_is_given_up_fails_and_what_is_needed_works",
                    "it starts itself, and QEMU starts no programs of the other processor",
                ),
            ],
        }),
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        runner: Some(Runner {
            emulator: Emulator::Wine,
            // Those of `motley-host` read trees of Linux's files, with links that Windows has not.
            crates: &["motley-model", "motley-store", "motley-sched", "motley-sim"],
            passed_over: &[],
        }),
    },
    Target { triple: "aarch64-apple-darwin", runner: None },
];

/// The program with all crates it is made of, and the library that has none of llama.cpp.
pub(super) const CHECKS: [Check; 2] = [
    Check { name: "cli", crates: &["motley-cli", "motley-faultsim"] },
    Check { name: "dropin", crates: &["motley-dropin"] },
];
