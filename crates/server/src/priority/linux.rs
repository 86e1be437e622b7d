//! By `setpriority`, which Linux counts by thread.

/// How far back they stand, as `nice` counts: with as little as a tenth of a busy core.
const BACK: i32 = 10;

/// This thread gives way from now on. One that is refused only gives way less.
pub(crate) fn give_way() {
    let _ = rustix::process::setpriority_process(None, BACK);
}

#[cfg(test)]
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
