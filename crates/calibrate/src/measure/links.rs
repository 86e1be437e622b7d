//! Copies to and from every GPU ggml can use, in the sizes of experts.

use std::time::Duration;

use motley_cost::calibration::LinkCost;
use motley_cost::{TransferCost, TransferSample};
use motley_ggml::gpu::gpu_devices;
use motley_ggml::{DeviceCopy, Runtime};

use super::clock::{Steps, undisturbed_us};
use super::error::MeasureError;

/// From a small matrix to a large expert.
const SIZES_BYTES: [usize; 4] = [256 << 10, 1 << 20, 4 << 20, 16 << 20];

/// Both directions of every GPU's link; empty without one.
pub(super) fn measure(
    runtime: &Runtime,
    slice: Duration,
    steps: &mut Steps<'_>,
) -> Result<Vec<LinkCost>, MeasureError> {
    let names: Vec<_> = gpu_devices(runtime).iter().map(|gpu| gpu.info().name.clone()).collect();
    let each = slice / (2 * names.len().max(1)) as u32;
    let mut links = Vec::new();
    for (done, name) in names.iter().enumerate() {
        steps.report(&format!("copies to {name}"), done, names.len());
        links.extend(both_ways(runtime, name, each)?);
    }
    Ok(links)
}

fn both_ways(
    runtime: &Runtime,
    device: &str,
    slice: Duration,
) -> Result<[LinkCost; 2], MeasureError> {
    let up = link(runtime, device, slice, DeviceCopy::upload)?;
    let down = link(runtime, device, slice, DeviceCopy::download)?;
    let (here, there) = ("CPU".to_owned(), device.to_owned());
    Ok([
        LinkCost { from: here.clone(), to: there.clone(), ..up },
        LinkCost { from: there, to: here, ..down },
    ])
}

fn link(
    runtime: &Runtime,
    device: &str,
    slice: Duration,
    copy: impl Fn(&mut DeviceCopy),
) -> Result<LinkCost, MeasureError> {
    let mut samples = Vec::new();
    for bytes in SIZES_BYTES {
        let mut pair = DeviceCopy::new(runtime, device, bytes)?;
        copy(&mut pair);
        let each = slice / SIZES_BYTES.len() as u32;
        let took_us = undisturbed_us(each, || (), || copy(&mut pair));
        samples.push(TransferSample { bytes: bytes as u64, took_us });
    }
    let fit = TransferCost::fit(&samples)?;
    Ok(LinkCost {
        from: String::new(),
        to: String::new(),
        latency_us: fit.model.latency_us,
        gb_per_s: 1e-3 / fit.model.per_byte_us.max(1e-9),
        residuals: fit.residuals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_ggml::Seam;

    #[test]
    fn a_link_is_fitted_both_ways() {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        // The CPU stands in for a GPU: the same calls, a copy in memory.
        let [up, down] = both_ways(&runtime, "CPU", Duration::from_millis(40)).unwrap();
        assert_eq!((up.from.as_str(), down.to.as_str()), ("CPU", "CPU"));
        assert!(up.gb_per_s > 0.01 && down.gb_per_s > 0.01, "{up:?} {down:?}");
        assert_eq!(up.residuals.samples, SIZES_BYTES.len());
    }
}
