//! The balance equations G2, G3 and G5, solved exactly as given. Numbers in, numbers out.

/// Inputs of the equations, in microseconds, with the letters of the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Balance {
    /// `T_g`: one expert on the fast unit.
    pub fast_us: f64,
    /// `T_n`: one expert on all near-data units together (G1).
    pub near_us: f64,
    /// `T_w`: one expert's weights over the link.
    pub weights_us: f64,
    /// `T_a`: one activation over the link.
    pub activation_us: f64,
    /// `N`: number of near-data units.
    pub units: u16,
    /// `TopK` in decode, the number of active experts in prefill.
    pub active: u16,
}

impl Balance {
    /// G2, decode: the experts `E_g` the fast unit takes so that both sides end together.
    ///
    /// ```text
    /// T_w·E_g + T_g·E_g' = (N + 1)·T_a + T_n·E_n,   E_n + E_g = TopK
    /// E_g' = frac(E_g) / N, or 1/N when E_g is a multiple of N
    /// ```
    pub fn decode(&self) -> f64 {
        self.solve(0.0)
    }

    /// G3, prefill of `sequence` tokens: G2 with `(S - 1)·T_a·N` added on the left.
    pub fn prefill(&self, sequence: u32) -> f64 {
        let earlier = f64::from(sequence.saturating_sub(1));
        self.solve(earlier * self.activation_us * f64::from(self.units))
    }

    /// G5: the most experts worth computing on the fast unit when their weights are there.
    ///
    /// ```text
    /// T_g·E_max = (TopK - E_max)·T_n + (1 + N)·T_a
    /// ```
    pub fn most_resident(&self) -> f64 {
        let active = f64::from(self.active);
        let right = active * self.near_us + self.round_trip_us();
        (right / (self.fast_us + self.near_us)).clamp(0.0, active)
    }

    /// `E_g'` of G2: computation on the fast unit that no transfer hides.
    pub fn unhidden(&self, experts: f64) -> f64 {
        let units = f64::from(self.units.max(1));
        let whole = experts.fract() == 0.0;
        if whole && experts % units == 0.0 { 1.0 / units } else { experts.fract() / units }
    }

    /// Left minus right side of G2/G3 for a given `E_g`.
    pub fn imbalance_us(&self, experts: f64, extra_left_us: f64) -> f64 {
        let left = self.weights_us * experts + self.fast_us * self.unhidden(experts);
        let right = self.round_trip_us() + self.near_us * (f64::from(self.active) - experts);
        left + extra_left_us - right
    }

    fn round_trip_us(&self) -> f64 {
        (f64::from(self.units) + 1.0) * self.activation_us
    }

    /// The largest root: both sides are equal there and shorter the more the fast unit takes.
    ///
    /// Between two whole numbers the equation is linear; at a whole number `E_g'` drops, so it
    /// may be crossed without a root. Then the whole number nearest to balance is the answer.
    /// When the left side is the longer one even with nothing moved, nothing is moved.
    fn solve(&self, extra_left_us: f64) -> f64 {
        let units = f64::from(self.units.max(1));
        let right = self.round_trip_us() + self.near_us * f64::from(self.active) - extra_left_us;
        if right <= 0.0 {
            return 0.0;
        }
        let slope = self.weights_us + self.near_us + self.fast_us / units;
        for whole in (0..self.active).rev().map(f64::from) {
            let root = (right + self.fast_us * whole / units) / slope;
            if root > whole && root < whole + 1.0 {
                return root;
            }
        }
        let off = |experts: &f64| self.imbalance_us(*experts, extra_left_us).abs();
        let wholes = (0..=self.active).map(f64::from);
        wholes.min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CASE: Balance = Balance {
        fast_us: 10.0,
        near_us: 25.0,
        weights_us: 150.0,
        activation_us: 2.0,
        units: 4,
        active: 8,
    };

    #[test]
    fn decode_by_hand() {
        // On (1, 2): 150 E + 2.5 (E - 1) = 10 + 25 (8 - E)  =>  177.5 E = 212.5.
        assert!((CASE.decode() - 212.5 / 177.5).abs() < 1e-12);
        assert!(CASE.imbalance_us(CASE.decode(), 0.0).abs() < 1e-9);
    }

    #[test]
    fn a_longer_prompt_leaves_less_to_the_fast_unit() {
        assert!(CASE.prefill(1) == CASE.decode());
        assert!(CASE.prefill(8) < CASE.decode());
        assert_eq!(CASE.prefill(10_000), 0.0);
    }

    #[test]
    fn resident_experts_by_hand() {
        // 10 E = (8 - E) 25 + 10  =>  35 E = 210.
        assert!((CASE.most_resident() - 6.0).abs() < 1e-12);
    }

    #[test]
    fn unhidden_part_as_defined() {
        assert_eq!([0.0, 1.0, 4.0, 1.5].map(|e| CASE.unhidden(e)), [0.25, 0.0, 0.25, 0.125]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_answer_balances_as_well_as_anything(
            fast_us in 0.1..50.0f64,
            near_us in 0.1..200.0f64,
            weights_us in 1.0..500.0f64,
            activation_us in 0.0..5.0f64,
            units in 1u16..8,
            active in 1u16..64,
            sequence in 1u32..600,
        ) {
            let case = Balance { fast_us, near_us, weights_us, activation_us, units, active };
            let extra = f64::from(sequence - 1) * activation_us * f64::from(units);
            let found = case.prefill(sequence);
            prop_assert!((0.0..=f64::from(active)).contains(&found));
            let off = case.imbalance_us(found, extra).abs();
            // The jump of E_g' at whole numbers is all that can stay unbalanced inside.
            let jump = fast_us / f64::from(units);
            let inside = found > 0.0 && found < f64::from(active);
            prop_assert!(!inside || off <= jump + 1e-6, "{} off by {}", found, off);
            for tenth in (0..=10 * active).filter(|_| inside) {
                let other = f64::from(tenth) / 10.0;
                let worse = case.imbalance_us(other, extra).abs();
                prop_assert!(off <= worse + jump + 1e-6, "{} is better than {}", other, found);
            }
        }
    }
}
