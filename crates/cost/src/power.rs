//! A3: the power of a choice of CPU cores, without a meter. An order of choices, not watts to
//! bill: it is blended with measured energy where there is a meter.

use motley_machine::{CoreCluster, CoreRole, Power};

/// Watts of one busy core per GHz²: with a static draw of 4.4 W this gives 8.5, 6.1 and 9.0 W
/// for the three engines of the AECS paper's Table 4, measured as 8.7, 6.2 and 8.8 W.
pub const CORE_W_PER_GHZ2: f64 = 0.136;
/// Coefficients for a machine that states none.
pub const DEFAULT_POWER: Power = Power { idle_core_factor: 0.3, static_w: 4.4, battery_mah: None };
/// Capacity of an efficiency core beside a big one at the same frequency, for machines whose
/// system does not tell it.
pub const EFFICIENCY_CAPACITY: f64 = 0.4;

/// The heuristic for one machine's clusters.
///
/// ```text
/// h(I) = Σ_i a_i · (|I_i| + (|C_i| - |I_i|) · b) · (f_max,i · s)² + P_s
/// s    = biggest selected capacity / biggest capacity
/// ```
///
/// `s` is the load the frequency governor sees: leave the biggest cores out and every cluster is
/// clocked lower.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerHeuristic {
    clusters: Vec<CoreCluster>,
    /// Of one core of each, in any unit.
    capacities: Vec<f64>,
    power: Power,
}

impl PowerHeuristic {
    /// From a machine's clusters and, where it has them, its coefficients.
    pub fn new(clusters: &[CoreCluster], power: Option<Power>) -> Self {
        // All told or all guessed: the two have no common unit.
        let told: Option<Vec<f64>> = clusters.iter().map(|cluster| cluster.capacity).collect();
        let capacities = told.unwrap_or_else(|| clusters.iter().map(guessed_capacity).collect());
        Self { clusters: clusters.to_vec(), capacities, power: power.unwrap_or(DEFAULT_POWER) }
    }

    /// `h(I)` in watts; `selected` has the number of cores taken from each cluster.
    pub fn watts(&self, selected: &[u32]) -> f64 {
        let biggest = self.capacities.iter().copied().fold(0.0, f64::max);
        let chosen = self.capacities.iter().zip(selected).filter(|(_, cores)| **cores > 0);
        let chosen = chosen.map(|(capacity, _)| *capacity);
        let load = if biggest > 0.0 { chosen.fold(0.0, f64::max) / biggest } else { 0.0 };
        let cluster = |(cluster, cores): (&CoreCluster, &u32)| {
            let idle = f64::from(cluster.cores.saturating_sub(*cores));
            let awake = f64::from(*cores) + idle * self.power.idle_core_factor;
            cluster.power_scale * awake * (cluster.max_ghz * load).powi(2)
        };
        let clusters = self.clusters.iter().zip(selected).map(cluster);
        CORE_W_PER_GHZ2 * clusters.sum::<f64>() + self.power.static_w
    }
}

fn guessed_capacity(cluster: &CoreCluster) -> f64 {
    let per_ghz = if cluster.role == CoreRole::Efficiency { EFFICIENCY_CAPACITY } else { 1.0 };
    cluster.max_ghz * per_ghz
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_powers_of_one_phone_come_out() {
        let machine = motley_machine::find("mate-40-pro").unwrap();
        let heuristic = PowerHeuristic::new(&machine.clusters, machine.power);
        // AECS paper, Table 4: MNN on the four big cores, MNN-AECS on two middle ones, and
        // llama.cpp on all eight.
        for (selected, published_w) in [([1, 3, 0], 8.7), ([0, 2, 0], 6.2), ([1, 3, 4], 8.8)] {
            let watts = heuristic.watts(&selected);
            assert!((watts / published_w - 1.0).abs() < 0.06, "{selected:?}: {watts:.2} W");
        }
    }

    #[test]
    fn more_cores_and_bigger_cores_draw_more() {
        let machine = motley_machine::find("meizu-21").unwrap();
        let heuristic = PowerHeuristic::new(&machine.clusters, None);
        let h = |selected: [u32; 4]| heuristic.watts(&selected);
        assert!(h([1, 1, 0, 0]) < h([1, 2, 0, 0]));
        assert!(h([1, 0, 1, 0]) < h([1, 1, 0, 0]));
        assert!(h([0, 2, 0, 0]) < h([1, 1, 0, 0]));
        assert_eq!(h([0; 4]), DEFAULT_POWER.static_w);
    }

    #[test]
    fn a_told_capacity_takes_the_place_of_the_guess() {
        let mut clusters = motley_machine::find("meizu-21").unwrap().clusters;
        let watts = |clusters: &[CoreCluster]| {
            // One core of the second cluster: its capacity is the load of the frequency governor.
            PowerHeuristic::new(clusters, None).watts(&[0, 1, 0, 0]) - DEFAULT_POWER.static_w
        };
        let guessed = watts(&clusters);
        for (cluster, capacity) in clusters.iter_mut().zip([1.0, 0.5, 0.8, 0.3]) {
            cluster.capacity = Some(capacity);
        }
        let told = watts(&clusters);
        // Guessed by frequency alone: 3.15 of 3.3 GHz.
        assert!((told / guessed - (0.5 * 3.3 / 3.15_f64).powi(2)).abs() < 1e-9, "{told} {guessed}");
        clusters[3].capacity = None;
        assert_eq!(watts(&clusters), guessed, "one of them is missing");
    }
}
