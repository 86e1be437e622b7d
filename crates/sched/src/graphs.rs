//! H1 for a device whose graphs are compiled ahead: which graphs of a layer are launched for one
//! block. A graph takes its time whatever is in it (N4), so a group pays only when enough of its
//! experts' rows have come; the rest stays with the other units.

/// One compiled graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphCost<'a> {
    /// The experts in it.
    pub experts: &'a [u16],
    /// Rows each may have (N2).
    pub capacity: u32,
    /// One launch.
    pub us: f64,
}

/// Which of `graphs` are launched, `at_once` of them at a time, for a block that sends `loads`
/// rows to each expert. The other units take `elsewhere_us(expert, rows)` for rows that are left.
/// Greedy: whatever frees most of their time per time of the device, as long as both together end
/// earlier for it.
pub fn launches(
    graphs: &[GraphCost<'_>],
    loads: &[u32],
    at_once: usize,
    elsewhere_us: &dyn Fn(u16, u32) -> f64,
) -> Vec<bool> {
    let load = |expert: u16| loads.get(usize::from(expert)).copied().unwrap_or(0);
    let freed = |graph: &GraphCost<'_>| -> f64 {
        let of = |&expert: &u16| {
            let (all, left) = (load(expert), load(expert).saturating_sub(graph.capacity));
            elsewhere_us(expert, all) - elsewhere_us(expert, left)
        };
        graph.experts.iter().map(of).sum()
    };
    let freed: Vec<f64> = graphs.iter().map(freed).collect();
    let mut order: Vec<usize> = (0..graphs.len()).filter(|&at| freed[at] > 0.0).collect();
    let worth = |at: usize| freed[at] / graphs[at].us.max(f64::MIN_POSITIVE);
    order.sort_by(|&a, &b| worth(b).total_cmp(&worth(a)).then(a.cmp(&b)));
    let mut elsewhere: f64 =
        (0..loads.len()).map(|expert| elsewhere_us(expert as u16, loads[expert])).sum();
    let (mut device, mut launched) = (0.0, vec![false; graphs.len()]);
    for at in order {
        let after = device + graphs[at].us / at_once.max(1) as f64;
        if after.max(elsewhere - freed[at]) < f64::max(device, elsewhere) {
            (device, elsewhere, launched[at]) = (after, elsewhere - freed[at], true);
        }
    }
    launched
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ten microseconds a row.
    fn by_rows(_: u16, rows: u32) -> f64 {
        10.0 * f64::from(rows)
    }

    fn graph(experts: &[u16], us: f64) -> GraphCost<'_> {
        GraphCost { experts, capacity: 64, us }
    }

    #[test]
    fn a_graph_with_few_rows_stays_behind() {
        let graphs = [graph(&[0, 1], 300.0), graph(&[2, 3], 300.0)];
        assert_eq!(launches(&graphs, &[64, 40, 1, 0], 1, &by_rows), [true, false]);
        assert_eq!(launches(&graphs, &[0; 4], 1, &by_rows), [false, false]);
    }

    #[test]
    fn the_device_takes_no_more_than_evens_out() {
        let graphs = [graph(&[0], 400.0), graph(&[1], 400.0), graph(&[2], 400.0)];
        // 1,800 µs elsewhere: one launch leaves 1,200, two leave 600 beside 800, three 0 beside 1,200.
        let loads = [60, 60, 60];
        assert_eq!(launches(&graphs, &loads, 1, &by_rows), [true, true, false]);
        assert_eq!(launches(&graphs, &loads, 4, &by_rows), [true, true, true]);
    }

    #[test]
    fn what_has_to_be_read_first_goes_before() {
        let graphs = [graph(&[0], 400.0), graph(&[1], 400.0)];
        let read =
            |expert, rows| if rows > 0 && expert == 1 { 900.0 } else { by_rows(expert, rows) };
        assert_eq!(launches(&graphs, &[50, 10], 1, &read), [false, true]);
    }

    proptest! {
        #[test]
        fn launching_never_ends_later_than_leaving_all(
            loads in prop::collection::vec(0u32..200, 12),
            us in prop::collection::vec(1.0..3000.0f64, 4),
            at_once in 1usize..5,
        ) {
            let experts: Vec<u16> = (0..12).collect();
            let graphs: Vec<_> =
                experts.chunks(3).zip(&us).map(|(experts, &us)| graph(experts, us)).collect();
            let launched = launches(&graphs, &loads, at_once, &by_rows);
            let device: f64 = us.iter().zip(&launched).filter(|(_, is)| **is)
                .map(|(us, _)| us / at_once as f64).sum();
            let left = |expert: usize| match launched[expert / 3] {
                true => loads[expert].saturating_sub(64),
                false => loads[expert],
            };
            let elsewhere: f64 = (0..12).map(|expert| by_rows(0, left(expert))).sum();
            let alone: f64 = loads.iter().map(|load| by_rows(0, *load)).sum();
            prop_assert!(device.max(elsewhere) <= alone);
        }
    }
}
