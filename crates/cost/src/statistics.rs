//! Medians and quantiles of measured values. Pure: sorts a copy, reads no clock.

/// The value in the middle, or the mean of the two in the middle; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Lower quartile, median and upper quartile; `None` without values.
pub fn quartiles(values: &[f64]) -> Option<[f64; 3]> {
    let sorted = sorted(values);
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| of_sorted(&sorted, share));
    Some([low?, middle?, high?])
}

/// The value below which `share` (0 to 1) of the values lie, linear between neighbours; `None`
/// without values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    of_sorted(&sorted(values), share)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + place.fract() * (high - low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(quartiles(&[5.0, 1.0, 2.0, 4.0, 3.0]), Some([2.0, 3.0, 4.0]));
        assert_eq!(quantile(&[10.0, 20.0], 0.9), Some(19.0));
        assert_eq!(
            [0.0, 1.0, 7.0].map(|share| quantile(&[1.0, 2.0], share)),
            [1.0, 2.0, 2.0].map(Some)
        );
    }

    #[test]
    fn no_values_have_no_quantile() {
        assert_eq!((median(&[]), quartiles(&[]), quantile(&[], 0.9)), (None, None, None));
        assert_eq!(quartiles(&[7.0]), Some([7.0; 3]));
    }
}
