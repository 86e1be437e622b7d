//! motley-engine.
