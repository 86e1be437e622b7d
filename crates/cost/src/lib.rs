//! motley-cost.
