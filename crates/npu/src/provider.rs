//! Execution providers: from a configuration to the options each vendor's runtime
//! takes. The choice of options is pure; handing them over is one function.

use crate::spec::Precision;
use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider, ExecutionProviderDispatch};
use std::path::PathBuf;
use std::str::FromStr;

/// The library that compiles and runs a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// ONNX Runtime's own kernels, everywhere.
    Cpu,
    /// Intel: NPU, GPU or CPU.
    OpenVino,
    /// Apple's neural engine.
    CoreMl,
    /// Qualcomm's Hexagon.
    Qnn,
    /// AMD's XDNA.
    VitisAi,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::OpenVino, Self::CoreMl, Self::Qnn, Self::VitisAi];

    /// Name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OpenVino => "openvino",
            Self::CoreMl => "coreml",
            Self::Qnn => "qnn",
            Self::VitisAi => "vitisai",
        }
    }

    /// Whether four-bit products (`MatMulNBits`) are known to run there: tried on the first
    /// two; elsewhere they would fall back to the CPU node by node, or fail to compile.
    pub fn takes_four_bits(self) -> bool {
        matches!(self, Self::Cpu | Self::OpenVino)
    }

    /// The part of the machine that is used when no device is named.
    pub fn default_device(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::OpenVino | Self::VitisAi => "NPU",
            Self::CoreMl => "CPUAndNeuralEngine",
            Self::Qnn => "htp",
        }
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|provider| provider.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("no provider is called `{name}`; there are {}", names()))
    }
}

/// How graphs are compiled and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderConfig {
    pub provider: Provider,
    /// Part of the machine in the provider's own words; `None` takes
    /// [`Provider::default_device`].
    pub device: Option<String>,
    /// Numbers graphs compute with.
    pub precision: Precision,
    /// CPU threads, where the provider uses any.
    pub threads: usize,
    /// Where the provider keeps what it compiled; `None` keeps nothing.
    pub cache_dir: Option<PathBuf>,
}

impl ProviderConfig {
    /// f32 on ONNX Runtime's own CPU kernels, nothing kept.
    pub fn cpu(threads: usize) -> Self {
        Self {
            provider: Provider::Cpu,
            device: None,
            precision: Precision::F32,
            threads,
            cache_dir: None,
        }
    }

    /// The options, in the vendor's own keys.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let device = self.device.clone().unwrap_or_else(|| self.provider.default_device().into());
        let cache = self.cache_dir.as_ref().map(|dir| dir.display().to_string());
        // OpenVINO's CPU plugin computes half-precision graphs, but not when asked to.
        let half = self.precision != Precision::F32
            && (self.provider, device.as_str()) != (Provider::OpenVino, "CPU");
        let mut options = match self.provider {
            Provider::Cpu => return Vec::new(),
            Provider::OpenVino => vec![
                ("device_type", device.clone()),
                ("precision", if half { "FP16" } else { "FP32" }.into()),
                ("num_of_threads", self.threads.to_string()),
                ("disable_dynamic_shapes", "true".into()),
            ],
            Provider::CoreMl => vec![
                ("ModelFormat", "MLProgram".into()),
                ("MLComputeUnits", device.clone()),
                ("RequireStaticInputShapes", "1".into()),
            ],
            Provider::Qnn => vec![
                ("backend_type", device.clone()),
                ("htp_performance_mode", "burst".into()),
                ("htp_graph_finalization_optimization_mode", "3".into()),
                ("enable_htp_fp16_precision", u8::from(half).to_string()),
            ],
            // There is one kind of device; a named one is a backend of it.
            Provider::VitisAi => self.device.iter().map(|name| ("target", name.clone())).collect(),
        };
        // The NPU's plugin refuses a number of CPU threads.
        if self.provider == Provider::OpenVino && device.starts_with("NPU") {
            options.retain(|(key, _)| *key != "num_of_threads");
        }
        let key = match self.provider {
            Provider::OpenVino => Some("cache_dir"),
            Provider::CoreMl => Some("ModelCacheDirectory"),
            Provider::VitisAi => Some("cache_dir"),
            Provider::Cpu | Provider::Qnn => None,
        };
        // By default AMD's compiler keeps its work in memory.
        if self.provider == Provider::VitisAi && cache.is_some() {
            options.push(("enable_cache_file_io_in_mem", "0".into()));
        }
        options.extend(key.zip(cache));
        options
    }

    /// The provider with its options; `None` for the CPU, which is always there.
    pub(crate) fn dispatch(&self) -> Option<ExecutionProviderDispatch> {
        let dispatch = match self.provider {
            Provider::Cpu => return None,
            Provider::OpenVino => configured(ep::OpenVINO::default(), self).build(),
            Provider::CoreMl => configured(ep::CoreML::default(), self).build(),
            Provider::Qnn => configured(ep::QNN::default(), self).build(),
            Provider::VitisAi => configured(ep::Vitis::default(), self).build(),
        };
        Some(dispatch.error_on_failure())
    }
}

fn configured<E: ArbitrarilyConfigurableExecutionProvider>(ep: E, config: &ProviderConfig) -> E {
    let options = config.options();
    options.into_iter().fold(ep, |ep, (key, value)| ep.with_arbitrary_config(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(provider: Provider) -> ProviderConfig {
        ProviderConfig {
            provider,
            precision: Precision::F16,
            cache_dir: Some("kept".into()),
            ..ProviderConfig::cpu(4)
        }
    }

    fn shown(config: &ProviderConfig) -> String {
        let pairs = config.options();
        pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_provider_is_pointed_at_its_npu() {
        let expected = [
            (Provider::Cpu, ""),
            (
                Provider::OpenVino,
                "device_type=NPU precision=FP16 disable_dynamic_shapes=true cache_dir=kept",
            ),
            (
                Provider::CoreMl,
                "ModelFormat=MLProgram MLComputeUnits=CPUAndNeuralEngine \
                 RequireStaticInputShapes=1 ModelCacheDirectory=kept",
            ),
            (
                Provider::Qnn,
                "backend_type=htp htp_performance_mode=burst \
                 htp_graph_finalization_optimization_mode=3 enable_htp_fp16_precision=1",
            ),
            (Provider::VitisAi, "enable_cache_file_io_in_mem=0 cache_dir=kept"),
        ];
        for (provider, options) in expected {
            assert_eq!(shown(&config(provider)), options, "{provider:?}");
        }
    }

    #[test]
    fn a_device_can_be_named() {
        let cpu = ProviderConfig {
            device: Some("CPU".into()),
            cache_dir: None,
            ..config(Provider::OpenVino)
        };
        let options = "device_type=CPU precision=FP32 num_of_threads=4 disable_dynamic_shapes=true";
        assert_eq!(shown(&cpu), options);
        let named = [
            (Provider::OpenVino, "NPU.0", "device_type=NPU.0 precision=FP16"),
            (Provider::CoreMl, "ALL", "ModelFormat=MLProgram MLComputeUnits=ALL"),
            (Provider::Qnn, "gpu", "backend_type=gpu htp_performance_mode=burst"),
            (Provider::VitisAi, "X1", "target=X1 enable_cache_file_io_in_mem=0"),
        ];
        for (provider, device, begins) in named {
            let found = shown(&ProviderConfig { device: Some(device.into()), ..config(provider) });
            assert!(found.starts_with(begins), "{provider:?}: {found}");
        }
    }

    #[test]
    fn nothing_is_kept_unless_a_folder_is_given_and_floats_stay_floats() {
        for provider in Provider::ALL {
            let plain = ProviderConfig { provider, ..ProviderConfig::cpu(1) };
            let found = shown(&plain);
            assert!(!found.to_lowercase().contains("cache"), "{provider:?}: {found}");
            assert!(!found.contains("FP16") && !found.contains("fp16_precision=1"), "{found}");
        }
    }

    #[test]
    fn names_read_back_and_wrong_ones_list_the_right() {
        for provider in Provider::ALL {
            assert_eq!(provider.name().parse(), Ok(provider));
        }
        assert!("cuda".parse::<Provider>().unwrap_err().contains("vitisai"));
    }
}
