//! motley-model.
