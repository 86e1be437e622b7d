//! The mean of the last of several things that end by chance. Sums over chances; knows no hosts.

/// When something ends, and with which chance; chances sum to 1.
pub(super) type Ends = Vec<(f64, f64)>;

/// Mean end of the last, taken as independent of each other.
pub(super) fn mean_of_last(all: &[Ends]) -> f64 {
    let mut times: Vec<f64> = all.iter().flatten().map(|(time, _)| *time).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let done_by = |ends: &Ends, time: f64| {
        ends.iter().filter(|(end, _)| *end <= time).map(|(_, chance)| chance).sum::<f64>()
    };
    let (mut mean, mut before) = (0.0, 0.0);
    for time in times {
        let all_done: f64 = all.iter().map(|ends| done_by(ends, time)).product();
        mean += time * (all_done - before);
        before = all_done;
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_two_dice_and_of_what_is_certain() {
        let die: Ends = (1..=6).map(|eyes| (f64::from(eyes), 1.0 / 6.0)).collect();
        assert!((mean_of_last(std::slice::from_ref(&die)) - 3.5).abs() < 1e-9);
        assert!((mean_of_last(&[die.clone(), die]) - 161.0 / 36.0).abs() < 1e-9);
        assert_eq!(mean_of_last(&[vec![(2.0, 1.0)], vec![(5.0, 1.0)]]), 5.0);
    }
}
