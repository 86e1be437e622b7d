//! The three gauges by which gateways and autoscalers choose a server, under the names that vLLM
//! gave them and that others read. The figures are those of `scrape`; nothing is counted here.
//!
//! | gauge | is |
//! |---|---|
//! | `vllm:num_requests_waiting` | `motley_requests_waiting`, and those who wait for the model to be loaded |
//! | `vllm:num_requests_running` | `motley_requests_active` |
//! | `vllm:kv_cache_usage_perc` | `motley_kv_cells_active` ÷ `motley_kv_cells`: 1 is full, despite its name |

use crate::models::Models;
use crate::models::offered::OfferedModel;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::Debug;
use std::sync::Arc;

/// A registry of these alone: their names have another prefix than ours.
pub(crate) fn registry(models: &Arc<Models>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(VllmNames { models: Arc::clone(models) }));
    registry
}

struct VllmNames {
    models: Arc<Models>,
}

impl Debug for VllmNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VllmNames")
    }
}

impl Collector for VllmNames {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let loads = loads(&self.models);
        let mut gauge = |name, help, figure: fn(&Load) -> f64| {
            let mut encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for load in &loads {
                let labels = [("model_name", &*load.model)];
                ConstGauge::new(figure(load)).encode(encoder.encode_family(&labels)?)?;
            }
            Ok(())
        };
        gauge(
            "vllm:num_requests_waiting",
            "Requests without a sequence, or whose model is being loaded",
            |load| load.waiting as f64,
        )?;
        gauge("vllm:num_requests_running", "Requests being answered", |load| load.running as f64)?;
        gauge(
            "vllm:kv_cache_usage_perc",
            "Share of the KV cells that running requests need, from 0 to 1",
            |load| load.kv_share,
        )
    }
}

/// What a model has to do.
#[derive(Debug)]
struct Load {
    model: String,
    waiting: usize,
    running: usize,
    kv_share: f64,
}

/// Of every model, loaded or not: a gateway takes one without gauges for a server that is broken,
/// while a model that was unloaded has nothing to do and answers the next request.
fn loads(models: &Models) -> Vec<Load> {
    let loaded = models.loaded();
    let load = |(index, offered): (usize, &OfferedModel)| {
        let app = loaded.apps[index].as_ref();
        let planner = app.map(|app| app.batching.figures().planner).unwrap_or_default();
        Load {
            model: offered.name.clone(),
            waiting: planner.waiting + loaded.set.requests(index).1,
            running: planner.active,
            kv_share: f64::from(planner.cells_active) / f64::from(planner.cells.max(1)),
        }
    };
    models.offered.iter().enumerate().map(load).collect()
}
