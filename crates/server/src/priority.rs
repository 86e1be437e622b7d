//! Threads that prepare requests give way to those that compute: computing threads wait for each
//! other, so one that is held up by another's JSON holds up every stream.

/// How far back they stand, as `nice` counts: with as little as a tenth of a busy core.
#[cfg(target_os = "linux")]
const BACK: i32 = 10;

/// This thread gives way from now on, where the system counts priorities by thread. One that is
/// refused only gives way less.
#[cfg(target_os = "linux")]
pub(crate) fn give_way() {
    let _ = rustix::process::setpriority_process(None, BACK);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_way() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_thread_that_gives_way_does() {
        let before = getpriority_process(None).unwrap();
        let gave = std::thread::spawn(|| {
            super::give_way();
            getpriority_process(None).unwrap()
        });
        assert_eq!(gave.join().unwrap(), super::BACK.max(before));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
