//! motley-sim.
