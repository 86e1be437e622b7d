//! By `sched_setaffinity`.

/// Lets the calling thread run on `cpus` only; where the system refuses, nothing changes.
pub(crate) fn bind_this_thread(cpus: &[usize]) {
    // SAFETY: an all-zero set is empty; indices beyond the set are left out, and the call reads
    // exactly the size it is given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}
