//! motley-trace.
