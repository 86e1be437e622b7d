//! By `SetThreadAffinityMask`, which knows the 64 processors of one group.

use windows_sys::Win32::System::Threading::{GetCurrentThread, SetThreadAffinityMask};

/// Lets the calling thread run on `cpus` only; where the system refuses, nothing changes.
pub(crate) fn bind_this_thread(cpus: &[usize]) {
    let bits = cpus.iter().filter(|cpu| **cpu < usize::BITS as usize);
    let mask = bits.fold(0_usize, |mask, cpu| mask | 1 << cpu);
    // SAFETY: the pseudo-handle is of this thread; a mask of nothing is refused.
    unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) };
}
