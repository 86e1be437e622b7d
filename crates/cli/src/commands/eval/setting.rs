//! The settings an evaluation runs under, and how `--compare` changes them.

use crate::args::{Approximate, Eval, LoadArgs, LoadingArg, parse_devices, parse_size};
use crate::npu::NpuArgs;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

/// Flags of one run, with a name for the page.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) load: LoadArgs,
    pub(crate) npu: NpuArgs,
    /// Whether it differs from what was typed in approximations alone.
    pub(crate) only_approximates: bool,
}

impl Setting {
    /// As typed, without `--compare`.
    pub(crate) fn given(eval: &Eval) -> Self {
        Self {
            name: "as given".into(),
            load: eval.load.clone(),
            npu: eval.npu.clone(),
            only_approximates: true,
        }
    }

    /// The same with `text` applied: `exact`, `memory=2G`, `policy=lru,threads=1`.
    pub(crate) fn changed(&self, text: &str) -> Result<Self> {
        let approximates = |change: &str| {
            let (key, _) = change.split_once('=').unwrap_or((change, ""));
            ["experts", "skip-cold"].contains(&key.trim())
        };
        let only_approximates = text.split(',').all(approximates);
        let mut setting = Self { name: text.into(), only_approximates, ..self.clone() };
        for change in text.split(',') {
            let (key, value) = change.split_once('=').unwrap_or((change, ""));
            let at = if change == text { String::new() } else { format!(": {change}") };
            let applied = setting.apply(key.trim(), value.trim());
            applied.with_context(|| format!("--compare {text}{at}"))?;
        }
        Ok(setting)
    }

    /// Whether the model is computed otherwise than it says.
    pub(crate) fn is_approximate(&self) -> bool {
        let Approximate { experts, skip_cold } = self.load.approximate;
        experts.is_some() || skip_cold.is_some()
    }

    fn apply(&mut self, key: &str, value: &str) -> Result<()> {
        ensure!(self.load.plan.is_none(), "--plan fixes every setting; leave it out");
        let wishes = &mut self.load.wishes;
        match key {
            "exact" => {
                ensure!(value.is_empty(), "takes no value");
                wishes.exact = true;
            }
            "loading" => wishes.loading = Some(loading(value)?),
            "memory" => wishes.memory = Some(parse_size(value).map_err(anyhow::Error::msg)?),
            "policy" => wishes.policy = Some(value.parse()?),
            "prefetch" => wishes.prefetch = Some(value.parse()?),
            "devices" => wishes.devices = parse_devices(value).map_err(anyhow::Error::msg)?,
            "threads" => wishes.threads = Some(number(value, 512)?),
            "chunk" => wishes.chunk = Some(number(value, 4096)?),
            "experts" => self.load.approximate.experts = Some(number(value, 1024)?),
            "skip-cold" => self.load.approximate.skip_cold = Some(value.parse()?),
            "npu" => self.npu.set(value)?,
            "npu-headroom" => self.npu.set_headroom(value)?,
            _ => bail!(
                "no such setting; there are exact, loading, memory, policy, prefetch, devices, \
                 threads, chunk, experts, skip-cold, npu, npu-headroom"
            ),
        }
        Ok(())
    }
}

fn loading(value: &str) -> Result<LoadingArg> {
    LoadingArg::from_str(value, true).map_err(|_| anyhow::anyhow!("write mapped or on-demand"))
}

fn number(value: &str, most: u32) -> Result<u32> {
    let number: u32 = value.parse().with_context(|| format!("`{value}` is not a number"))?;
    ensure!((1..=most).contains(&number), "between 1 and {most}");
    Ok(number)
}
