//! By the C library.

/// What `pthread_create` takes when it is told nothing.
pub(crate) fn default_stack_bytes() -> usize {
    let mut bytes = 0;
    // SAFETY: the attributes are initialised before they are read, and destroyed once.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_attr_init(&raw mut attributes) == 0 {
            libc::pthread_attr_getstacksize(&raw const attributes, &raw mut bytes);
            libc::pthread_attr_destroy(&raw mut attributes);
        }
    }
    bytes
}
