//! motley-ggml.
