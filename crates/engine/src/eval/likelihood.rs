//! Logits to log-probabilities. Nothing else.

/// Natural logarithm of the probability `logits` (`[vocab]`) give to `token`; summed in
/// f64, because 10⁵ small terms lose digits in f32.
pub(crate) fn log_probability(logits: &[f32], token: i32) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - most).exp()).sum();
    let own = usize::try_from(token).ok().and_then(|token| logits.get(token));
    own.map_or(f64::NEG_INFINITY, |&own| f64::from(own - most) - sum.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_large_logits_do_not_overflow() {
        let logits = [1000.0, 999.0, 998.0, -1000.0];
        let sum: f64 = (0..4).map(|token| log_probability(&logits, token).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        let ratio = log_probability(&logits, 0) - log_probability(&logits, 1);
        assert!((ratio - 1.0).abs() < 1e-9);
        assert_eq!(log_probability(&logits, 4), f64::NEG_INFINITY);
        assert_eq!(log_probability(&logits, -1), f64::NEG_INFINITY);
    }
}
