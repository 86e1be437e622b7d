//! The command line of `cargo xtask`, and how options become requests.
//!
//! * `check`: which checker runs.
//! * `load`: options of what needs a server.
//! * `mutate`: options of what changes headers.
//! * `hostile`: options of the hostile run.
//! * `fuzz`: options of the fuzz targets.

mod check;
mod fuzz;
mod hostile;
mod load;
mod mutate;

pub(crate) use check::CheckArguments;
pub(crate) use fuzz::FuzzArguments;
pub(crate) use hostile::HostileArguments;
pub(crate) use load::{ChaosArguments, LoadArguments, SoakServeArguments};
pub(crate) use mutate::MutateArguments;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use motley_model::gguf::GgmlType;
use motley_testkit::synth::{Arch, Preset, Request};
use motley_testkit::upcycle;
use std::path::PathBuf;
use xtask::capped::{Comparison, Soak, Sweep, Versus, Way};
use xtask::dist::Dist;
use xtask::dist::trial::Trial;
use xtask::dist::trial::recording::Recording;
use xtask::docs::Docs;
use xtask::dropin::pairs::Pairs;
use xtask::dropin::table::Trial as HostTrial;
use xtask::hosts::Hosts;
use xtask::targets::Targets;

/// Automation of the motley repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a model in several ways, in turn, under memory limits and with cold caches
    Capped(CappedArguments),
    /// Run models without flags and with hand-picked ones, in turn
    Sweep(Sweep),
    /// Run a model with one set of flags and with others, in turn, cold and under one memory limit
    Versus(Versus),
    /// Run a model for long at a small budget beside a neighbour that takes memory
    Soak(SoakArguments),
    /// Serve a model within a memory limit to many streams for long
    SoakServe(SoakServeArguments),
    /// Serve a model from a disk that fails, beside a neighbour that takes memory (Linux, FUSE)
    Chaos(ChaosArguments),
    /// A head and its workers on hosts of their own: namespaces, cables with a rate, memory limits
    Hosts(Hosts),
    /// Take memory and give it back until killed (used by `soak`)
    #[command(hide = true)]
    TakeMemory {
        /// Most to take.
        bytes: u64,
        /// A large file to read.
        file: PathBuf,
    },
    /// Change headers at random and see that `motley run` answers or refuses
    Mutate(MutateArguments),
    /// Run every fuzz target for a while; an input that fails is named with how to replay it
    Fuzz(FuzzArguments),
    /// Send a server thousands of hostile requests beside an honest client.
    Hostile(HostileArguments),
    /// Run a checker of threads or memory
    Check(CheckArguments),
    /// Check the crates for other systems and processors, and run tests of some by emulators
    Targets(Targets),
    /// Check the house rules that no compiler knows.
    Tidy,
    /// Run the engine's own parts in virtual time, under seeds, with faults (`--help` of it).
    #[command(disable_help_flag = true)]
    Seeds {
        /// Options of `motley-faultsim`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Write a GGUF of random weights and print its path.
    Synth(SynthArguments),
    /// Make an exact mixture of experts of a dense llama GGUF and print its path.
    Upcycle(UpcycleArguments),
    /// Ask a server many things at once, or several servers in turn, and print what it took.
    Load(LoadArguments),
    /// Make the reference pages, check links and commands of every page, and build the book.
    Docs(Docs),
    /// Build the library for a stock llama.cpp (`GGML_BACKEND_PATH`) and print its path.
    Dropin,
    /// Compare a stock `llama-server` with and without the library, in turn, under a memory limit.
    DropinPairs(Pairs),
    /// Try the library in a stock llama.cpp built from its sources: texts, memory, a GPU it lends.
    DropinHost(HostTrial),
    /// Build packages that run on every Linux of the last years (x86-64).
    Dist(Dist),
    /// Install and run every package in clean roots, and compare its speed with a native build's.
    DistTest(Trial),
    /// Record the first minutes in a clean root: install the package, pull a model, chat.
    DistRecord(Recording),
    /// Fetch SmolLM2-135M-Instruct into the cache and print its path.
    Smollm2 {
        /// Fetch it even if it is there.
        #[arg(long)]
        force: bool,
    },
}

/// Options of `synth`; numbers not given are those of the preset.
#[derive(Debug, Args)]
pub(crate) struct SynthArguments {
    /// Architecture, in the shape of its test preset.
    #[arg(long, required_unless_present = "preset")]
    arch: Option<Arch>,
    /// A named shape: test-<arch>, qwen3moe-2g, qwen3moe-8g.
    #[arg(long, conflicts_with = "arch")]
    preset: Option<Preset>,
    /// Transformer blocks.
    #[arg(long)]
    layers: Option<u64>,
    /// Width of the residual stream.
    #[arg(long)]
    hidden: Option<u64>,
    /// Neurons of one routed expert.
    #[arg(long)]
    ff: Option<u64>,
    /// Routed experts per layer.
    #[arg(long)]
    experts: Option<u64>,
    /// Experts chosen per token.
    #[arg(long)]
    topk: Option<u64>,
    /// Query heads.
    #[arg(long)]
    heads: Option<u64>,
    /// Key and value heads.
    #[arg(long)]
    kv_heads: Option<u64>,
    /// Width of one head.
    #[arg(long)]
    head_dim: Option<u64>,
    /// Weight type: Q4_0, Q8_0, Q4_K, F16, MXFP4, … [default: Q4_0, gpt-oss: MXFP4]
    #[arg(long, value_parser = parse_type)]
    quant: Option<GgmlType>,
    /// Zipf exponent of expert popularity.
    #[arg(long, default_value_t = 0.0)]
    skew: f32,
    /// Seed of all weights.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of files.
    #[arg(long, default_value_t = 1)]
    split: u32,
    /// GGUF whose tokenizer to copy [default: SmolLM2 in the cache].
    #[arg(long)]
    pub(crate) tokenizer: Option<PathBuf>,
    /// File to write [default: a descriptive name in the cache].
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Write it even if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}

impl SynthArguments {
    /// The preset with every option given put over it.
    pub(crate) fn request(&self) -> Result<Request> {
        let preset = self.preset.or(self.arch.map(Preset::Test));
        let mut request = Request::of_preset(preset.context("--arch or --preset")?);
        let shape = &mut request.shape;
        for (number, given) in [
            (&mut shape.layers, self.layers),
            (&mut shape.hidden, self.hidden),
            (&mut shape.ff, self.ff),
            (&mut shape.experts, self.experts),
            (&mut shape.topk, self.topk),
            (&mut shape.heads, self.heads),
            (&mut shape.kv_heads, self.kv_heads),
            (&mut shape.head_dim, self.head_dim),
        ] {
            *number = given.unwrap_or(*number);
        }
        request.quant = self.quant.unwrap_or(request.quant);
        (request.seed, request.skew, request.shards) = (self.seed, self.skew, self.split);
        Ok(request)
    }
}

/// Options of `upcycle`.
#[derive(Debug, Args)]
pub(crate) struct UpcycleArguments {
    /// The dense model [default: SmolLM2, fetched into the cache].
    pub(crate) dense: Option<PathBuf>,
    /// Experts per layer.
    #[arg(long)]
    experts: u64,
    /// Experts chosen per token.
    #[arg(long)]
    topk: u64,
    /// Neurons that stay together: 32, or 256 for K-quants.
    #[arg(long, default_value_t = 32)]
    block: u64,
    /// Seed of orders and routers.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// File to write [default: a descriptive name in the cache].
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Write it even if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}

impl UpcycleArguments {
    /// The request.
    pub(crate) fn request(&self) -> upcycle::Request {
        let Self { experts, topk, block, seed, .. } = *self;
        upcycle::Request { experts, topk, block, seed }
    }
}

fn parse_type(text: &str) -> Result<GgmlType> {
    let found = GgmlType::ALL.iter().find(|ty| ty.name().eq_ignore_ascii_case(text));
    found.copied().with_context(|| format!("no ggml type `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request> {
        let words = ["xtask", "synth"].into_iter().chain(line.split(' '));
        match Arguments::try_parse_from(words)?.command {
            Command::Synth(arguments) => arguments.request(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_go_over_the_preset() {
        let plain = Request::of_preset(Preset::Qwen3moe2g);
        let given = request("--preset qwen3moe-2g --layers 7 --quant q4_k --split 2 --seed 5");
        let given = given.expect("a request");
        assert_eq!((given.shape.layers, given.shape.hidden), (7, plain.shape.hidden));
        assert_eq!((given.quant, given.shards, given.seed), (GgmlType::Q4_K, 2, 5));
    }

    #[test]
    fn an_architecture_alone_has_its_test_shape_and_type() {
        let given = request("--arch gpt-oss").expect("a request");
        assert_eq!(given.shape, Preset::Test(Arch::GptOss).shape());
        assert_eq!(given.quant, GgmlType::MXFP4);
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["--layers 3", "--arch bert", "--arch llama --quant Q9", "--preset x"] {
            assert!(request(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}

/// `cargo xtask capped`.
#[derive(Debug, Args)]
pub(crate) struct CappedArguments {
    /// GGUF file
    model: PathBuf,
    /// Limits in GiB
    #[arg(long, value_delimiter = ',', default_value = "4")]
    budgets: Vec<f64>,
    /// `bare`, `motley`, or `motley:policy=…,prefetch=…,serial,buffered,mapped,blocks,program=…`
    #[arg(long, num_args = 1.., default_values = ["bare", "motley"])]
    ways: Vec<Way>,
    /// Runs of each way under each limit
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Prompts: JSON lines with `turns` (MT-Bench); the first turn counts
    #[arg(long)]
    prompts: PathBuf,
    /// Prompt tokens at most
    #[arg(long, default_value_t = 64)]
    prefill: usize,
    /// Decoded tokens
    #[arg(long, default_value_t = 128)]
    decode: usize,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// Give Motley the limit and do not enforce it, to see whether it is kept
    #[arg(long)]
    trust: bool,
    /// The program (default: beside this one)
    #[arg(long)]
    motley: Option<PathBuf>,
    /// File for every run as a line of JSON
    #[arg(long)]
    pub(crate) out: PathBuf,
}

impl CappedArguments {
    pub(crate) fn comparison(&self) -> Result<Comparison> {
        let text = std::fs::read_to_string(&self.prompts)
            .with_context(|| format!("cannot read {}", self.prompts.display()))?;
        let prompts: Vec<String> = text
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter_map(|question| Some(question["turns"][0].as_str()?.to_owned()))
            .collect();
        ensure!(!prompts.is_empty(), "{} has no prompts", self.prompts.display());
        let beside = std::env::current_exe()?.with_file_name("motley");
        Ok(Comparison {
            motley: self.motley.clone().unwrap_or(beside),
            model: self.model.clone(),
            budgets_bytes: self
                .budgets
                .iter()
                .map(|gib| (gib * (1u64 << 30) as f64) as u64)
                .collect(),
            ways: self.ways.clone(),
            rounds: self.rounds,
            prompts,
            prefill: self.prefill,
            decode: self.decode,
            threads: self.threads,
            enforced: !self.trust,
        })
    }
}

/// `cargo xtask soak`.
#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    /// GGUF file
    model: PathBuf,
    /// Budget given to Motley, in GiB
    #[arg(long)]
    budget: f64,
    /// Limit of the control group, in GiB
    #[arg(long)]
    limit: f64,
    /// Most the neighbour takes, in GiB
    #[arg(long)]
    neighbour: f64,
    /// How long
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: u32,
    /// Text to continue
    #[arg(long, default_value = "The capital of France is")]
    prompt: String,
}

impl SoakArguments {
    pub(crate) fn soak(&self) -> Result<Soak> {
        let bytes = |gib: f64| (gib * (1u64 << 30) as f64) as u64;
        Ok(Soak {
            motley: std::env::current_exe()?.with_file_name("motley"),
            model: self.model.clone(),
            budget_bytes: bytes(self.budget),
            limit_bytes: bytes(self.limit),
            neighbour_bytes: bytes(self.neighbour),
            minutes: self.minutes,
            threads: self.threads,
            prompt: self.prompt.clone(),
        })
    }
}
