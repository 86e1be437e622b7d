//! How popular each expert is: the spread of its router row.
//!
//! Behind an RMS norm the router's input has unit mean square, so a row of standard deviation
//! `s / sqrt(hidden)` gives logits of standard deviation `s`. An expert is chosen when its logit
//! passes a threshold that depends on the others; rows with larger `s` pass it more often.
//! For a wanted share `p` of the tokens: `s = t / z(1 - p)`, where `z` is the normal quantile and
//! `t` the threshold of the even case (`s = 1`, `p = k / experts`).

use super::Request;
use super::fill::{normal_quantile, seeded};
use rand_xoshiro::rand_core::Rng;

/// Largest share of tokens one expert gets; a symmetric logit cannot reach one half.
const SHARE_MAX: f64 = 0.35;

/// Standard deviation of each router row of a layer, in an order drawn from the seed.
pub fn row_stds(request: &Request, layer: u64) -> Vec<f32> {
    let shape = request.shape;
    let unit = 1.0 / (shape.hidden as f64).sqrt();
    if request.skew == 0.0 {
        return vec![unit as f32; shape.experts as usize];
    }
    let (experts, topk) = (shape.experts as usize, shape.topk as f64);
    let threshold = normal_quantile(1.0 - topk / experts as f64);
    let mut stds: Vec<f32> = zipf_shares(experts, topk, f64::from(request.skew))
        .iter()
        .map(|share| (unit * threshold / normal_quantile(1.0 - share)) as f32)
        .collect();
    let mut rng = seeded(request.seed, &format!("popularity of layer {layer}"));
    for last in (1..stds.len()).rev() {
        stds.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    stds
}

/// Shares proportional to `rank^-skew`, none above the most an expert can get, `topk` in sum.
fn zipf_shares(experts: usize, topk: f64, skew: f64) -> Vec<f64> {
    let shares = |factor: f64| {
        let share = |rank: usize| (factor * (rank as f64).powf(-skew)).min(SHARE_MAX);
        (1..=experts).map(share).collect::<Vec<f64>>()
    };
    let (mut low, mut high) = (0.0, topk * (experts as f64).powf(skew));
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if shares(middle).iter().sum::<f64>() < topk { low = middle } else { high = middle }
    }
    shares(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{Arch, Preset};

    /// Share of tokens per expert, most popular first, for logits drawn with these spreads.
    fn simulated_shares(stds: &[f32], topk: usize) -> Vec<f64> {
        const TOKENS: usize = 20_000;
        let mut rng = seeded(7, "simulation");
        let mut counts = vec![0usize; stds.len()];
        for _ in 0..TOKENS {
            let mut logits: Vec<(f64, usize)> = stds
                .iter()
                .enumerate()
                .map(|(expert, std)| {
                    let uniform = (rng.next_u32() as f64 + 0.5) / 2f64.powi(32);
                    (normal_quantile(uniform) * f64::from(*std), expert)
                })
                .collect();
            logits.sort_by(|a, b| b.0.total_cmp(&a.0));
            logits[..topk].iter().for_each(|(_, expert)| counts[*expert] += 1);
        }
        let mut shares: Vec<f64> = counts.iter().map(|c| *c as f64 / TOKENS as f64).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    fn request(skew: f32) -> Request {
        let mut request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
        (request.shape.experts, request.shape.topk, request.skew) = (64, 4, skew);
        request
    }

    #[test]
    fn without_skew_all_experts_are_alike() {
        let shares = simulated_shares(&row_stds(&request(0.0), 0), 4);
        assert!(shares[0] < 1.3 * shares[63], "{shares:?}");
    }

    #[test]
    fn with_skew_popularity_falls_by_rank() {
        let shares = simulated_shares(&row_stds(&request(0.8), 0), 4);
        let wanted = zipf_shares(64, 4.0, 0.8);
        assert!(shares[0] > 8.0 * shares[63], "{shares:?}");
        for rank in [0, 7, 31] {
            let ratio = shares[rank] / wanted[rank];
            assert!((0.6..1.6).contains(&ratio), "rank {rank}: {ratio}");
        }
    }

    #[test]
    fn shares_sum_to_the_experts_chosen() {
        for skew in [0.1, 0.5, 1.0, 2.0] {
            let shares = zipf_shares(128, 8.0, skew);
            assert!((shares.iter().sum::<f64>() - 8.0).abs() < 1e-6);
            assert!(shares.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn layers_prefer_different_experts() {
        assert_ne!(row_stds(&request(1.0), 0), row_stds(&request(1.0), 1));
    }
}
