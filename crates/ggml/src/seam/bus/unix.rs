//! Faults in mapped files: a page that a cut file no longer has raises SIGBUS in whoever reads it,
//! be it one of ggml's kernels. For mappings that are watched here such a page becomes zeros and
//! the fault is remembered, so that the computation ends and its result can be refused. Faults
//! elsewhere go to the handler that was there before.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A stretch of memory that is watched; until dropped.
#[derive(Debug)]
pub(crate) struct Watched(&'static Stretch);

/// What the handler looks at: only atomics, and never freed.
#[derive(Debug)]
struct Stretch {
    base: AtomicUsize,
    /// 0 while nobody watches it.
    len_bytes: AtomicUsize,
    faulted: AtomicBool,
    next: *const Self,
}

// SAFETY: `next` is set before the stretch is shared and points at one that is never freed.
unsafe impl Sync for Stretch {}

/// The newest stretch; each leads to the one before.
static NEWEST: AtomicPtr<Stretch> = AtomicPtr::new(null_mut());
/// Held while the list changes; the handler does not need it.
static CHANGES: Mutex<()> = Mutex::new(());
/// The handler before ours, and the size of a page; set before ours is.
static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

/// Watches over `memory`, which must be a mapping of whole pages. `None` when the system refuses
/// the handler.
pub(crate) fn watch(memory: &[u8]) -> Option<Watched> {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed() {
        return None;
    }
    let stretch = stretches().find(|stretch| stretch.len_bytes.load(Ordering::Acquire) == 0);
    let stretch = stretch.unwrap_or_else(another);
    stretch.faulted.store(false, Ordering::Relaxed);
    stretch.base.store(memory.as_ptr().addr(), Ordering::Relaxed);
    stretch.len_bytes.store(memory.len(), Ordering::Release);
    Some(Watched(stretch))
}

impl Watched {
    /// Whether a page of it was missing.
    pub(crate) fn faulted(&self) -> bool {
        self.0.faulted.load(Ordering::Acquire)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.len_bytes.store(0, Ordering::Release);
    }
}

fn stretches() -> impl Iterator<Item = &'static Stretch> {
    // SAFETY: stretches are leaked, so all in the list live until the process ends.
    let at = |stretch: *const Stretch| unsafe { stretch.as_ref() };
    std::iter::successors(at(NEWEST.load(Ordering::Acquire)), move |stretch| at(stretch.next))
}

fn another() -> &'static Stretch {
    let stretch = Box::leak(Box::new(Stretch {
        base: AtomicUsize::new(0),
        len_bytes: AtomicUsize::new(0),
        faulted: AtomicBool::new(false),
        next: NEWEST.load(Ordering::Acquire),
    }));
    NEWEST.store(stretch, Ordering::Release);
    stretch
}

/// Installs the handler the first time.
fn installed() -> bool {
    if BEFORE.get().is_some() {
        return true;
    }
    // SAFETY: the handler uses atomics and system calls only; all-zero is a valid struct to be
    // filled. The one before is kept first, because a fault may come at once.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        if libc::sigaction(libc::SIGBUS, null(), &raw mut before) != 0 || page <= 0 {
            return false;
        }
        BEFORE.get_or_init(|| (before, page as usize));
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_fault as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut ours.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const ours, null_mut()) == 0
    }
}

unsafe extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a live description of the fault.
    let address = unsafe { (*info).si_addr() }.addr();
    let Some(&(before, page)) = BEFORE.get() else { return };
    let inside = |stretch: &&Stretch| {
        let len_bytes = stretch.len_bytes.load(Ordering::Acquire);
        address.wrapping_sub(stretch.base.load(Ordering::Relaxed)) < len_bytes
    };
    match stretches().find(inside) {
        Some(stretch) if fill(address - address % page, page) => {
            stretch.faulted.store(true, Ordering::Release);
        }
        // SAFETY: the arguments are those of this call.
        _ => unsafe { pass_on(&before, signal, info, context) },
    }
}

/// Puts a page of zeros at `address`. A plain system call, allowed in a handler.
fn fill(address: usize, page: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let at = std::ptr::without_provenance_mut(address);
    // SAFETY: the page belongs to a watched mapping of a file, read-only and missing there.
    let mapped = unsafe { libc::mmap(at, page, libc::PROT_READ, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// As if ours were not there: the fault comes again when there is nobody to tell.
///
/// # Safety
/// The arguments are those the system gave a handler.
unsafe fn pass_on(
    before: &libc::sigaction,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let handler = before.sa_sigaction;
    // SAFETY: the kind of the function before is told by its flags; by the caller for the rest.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            libc::sigaction(signal, before, null_mut());
        } else if before.sa_flags & libc::SA_SIGINFO != 0 {
            type Full = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);
            std::mem::transmute::<usize, Full>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, unsafe extern "C" fn(i32)>(handler)(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use motley_model::{FileRange, OpenedFile};
    use motley_store::MappedFiles;

    #[test]
    fn a_page_that_was_cut_off_reads_as_zeros_and_is_remembered() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 3 << 16]).unwrap();
        let mapped = MappedFiles::map(&[OpenedFile::open(file.path()).unwrap()]).unwrap();
        let watched = super::watch(mapped.whole().next().unwrap()).unwrap();
        let byte = |offset| {
            let at = mapped.get(FileRange { file: 0, offset, len_bytes: 1 }).unwrap();
            // SAFETY: a byte of the mapping; volatile, because the file changes under it.
            unsafe { at.as_ptr().read_volatile() }
        };
        assert_eq!((byte(0), byte(2 << 16), watched.faulted()), (7, 7, false));
        file.as_file().set_len(1 << 16).unwrap();
        assert_eq!((byte(0), watched.faulted()), (7, false));
        assert_eq!((byte(2 << 16), watched.faulted()), (0, true));
        assert!(mapped.changed().is_some());
    }
}
