//! motley-sched.
