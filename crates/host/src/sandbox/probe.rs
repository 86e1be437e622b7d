//! What this kernel offers: both restrictions tried for real, on a thread that ends. Nothing of
//! this process is restricted by it.

use landlock::{AccessFs, Ruleset, RulesetAttr};
use seccompiler::{SeccompAction, SeccompFilter, apply_filter};

use super::paths::abi_of;
use crate::sandbox::Offered;

/// Tries, because a container may forbid what its kernel has.
pub fn offered() -> Offered {
    let tried = std::thread::Builder::new()
        .name("sandbox-probe".into())
        .spawn(|| Offered { landlock_abi: landlock_abi(), seccomp: seccomp_works() });
    tried.ok().and_then(|thread| thread.join().ok()).unwrap_or_default()
}

/// Binds the calling thread.
fn landlock_abi() -> Option<u32> {
    let domain = Ruleset::default().handle_access(AccessFs::Execute).ok()?.create().ok()?;
    abi_of(&domain.restrict_self().ok()?)
}

/// Binds the calling thread, to nothing: the one call it refuses does not exist.
fn seccomp_works() -> bool {
    let arch = std::env::consts::ARCH.try_into();
    let filter = arch.and_then(|arch| {
        let rules = [(libc::c_long::from(i32::MAX), Vec::new())].into();
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(1), arch)
    });
    filter.and_then(TryInto::try_into).is_ok_and(|filter: Vec<_>| apply_filter(&filter).is_ok())
}
