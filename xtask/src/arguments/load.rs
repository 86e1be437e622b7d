//! Options of `load` (one server that runs, or several that are started), `soak-serve` and `chaos`.

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use xtask::capped::ServeSoak;
use xtask::load::{Contender, Target, Versus};
use xtask::servers::{Context, MotleyServe, Rival, RivalServe, motley_program};

/// KV cells for each stream: the question, the answer and some room.
const SPARE_CELLS: usize = 64;

/// Options of `load`.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// A server that runs, e.g. http://127.0.0.1:8080
    #[arg(required_unless_present_any = ["against", "before"], conflicts_with_all = ["against", "before"])]
    url: Option<String>,
    /// Start Motley and this server, and ask both in turn: `xllamacpp` (llama.cpp's own server,
    /// from PyPI) or the path of a `llama-server`; may be given several times
    #[arg(long, value_name = "SERVER", requires = "gguf")]
    against: Vec<Rival>,
    /// Start another build of Motley too, with the same options, and ask both in turn
    #[arg(long, value_name = "MOTLEY", requires = "gguf")]
    before: Option<PathBuf>,
    /// The model to compare with
    #[arg(long, value_name = "FILE")]
    gguf: Option<PathBuf>,
    /// Streams at once, one row each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64])]
    pub(crate) streams: Vec<usize>,
    /// Requests of each stream, one after the other
    #[arg(long, default_value_t = 2)]
    requests: usize,
    /// Tokens of each answer
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Model's name in requests [default: none]
    #[arg(long)]
    model: Option<String>,
    /// Key to send
    #[arg(long)]
    key: Option<String>,
    /// Ask everything alone first, and compare every answer with that; with --against, of
    /// `motley serve --exact`
    #[arg(long)]
    pub(crate) check: bool,
    /// Turns of each server at each number of streams
    #[arg(long, default_value_t = 5, requires = "gguf")]
    rounds: usize,
    /// Threads of each server
    #[arg(long, default_value_t = 2, requires = "gguf")]
    threads: u32,
    /// Give every server one KV cache for all streams instead of one part each
    #[arg(long, requires = "gguf")]
    shared: bool,
    /// The program [default: beside this one]
    #[arg(long, requires = "gguf")]
    motley: Option<PathBuf>,
    /// An option for `motley serve`, e.g. --serve=--prefill-beside=64
    #[arg(long, requires = "gguf", value_name = "OPTION")]
    serve: Vec<String>,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl LoadArguments {
    /// Whether servers are to be started and compared.
    pub(crate) fn compares(&self) -> bool {
        !self.against.is_empty() || self.before.is_some()
    }

    /// What to ask the server that runs.
    pub(crate) fn target(&self) -> Result<Target> {
        let url = self.url.as_deref().context("no URL")?;
        let address = url.strip_prefix("http://").context("the URL must begin with http://")?;
        Ok(self.target_at(address.trim_end_matches('/')))
    }

    /// The same for any address.
    pub(crate) fn target_at(&self, address: &str) -> Target {
        Target {
            address: address.to_owned(),
            requests: self.requests,
            tokens: self.tokens,
            model: self.model.clone(),
            from: None,
            key: self.key.clone(),
            check: self.check,
            edition: 0,
        }
    }

    /// What to compare, Motley first.
    pub(crate) fn versus(&self) -> Result<Versus> {
        let ours = self.ours(false)?;
        let model = self.gguf()?.to_owned();
        let mut contenders =
            vec![Contender { name: "motley".into(), start: Box::new(move || Ok(ours.start())) }];
        if let Some(program) = self.before.clone() {
            let before = MotleyServe { program, ..self.ours(false)? };
            let start = Box::new(move || Ok(before.start()));
            contenders.push(Contender { name: "before".into(), start });
        }
        for rival in self.against.clone() {
            let (threads, streams, context, unified) =
                (self.threads, self.most(), self.context(), self.shared);
            let model = model.clone();
            contenders.push(Contender {
                name: rival.name(),
                start: Box::new(move || {
                    let model = model.as_path();
                    rival.start(&RivalServe { model, threads, streams, context, unified })
                }),
            });
        }
        Ok(Versus {
            contenders,
            streams: self.streams.clone(),
            rounds: self.rounds,
            requests: self.requests,
            tokens: self.tokens,
        })
    }

    /// Our own server.
    pub(crate) fn ours(&self, exact: bool) -> Result<MotleyServe> {
        Ok(MotleyServe {
            program: motley_program(self.motley.as_deref())?,
            model: self.gguf()?.to_owned(),
            threads: self.threads,
            streams: self.most(),
            context: match self.shared || exact {
                true => Context::Shared(self.context()),
                false => Context::Each(self.context() / self.most() as u32),
            },
            memory_bytes: None,
            exact,
            more: self.serve.clone(),
        })
    }

    fn gguf(&self) -> Result<&Path> {
        let gguf = self.gguf.as_deref().context("--gguf")?;
        ensure!(gguf.exists(), "{} is not there", gguf.display());
        Ok(gguf)
    }

    fn most(&self) -> usize {
        self.streams.iter().copied().max().unwrap_or(1)
    }

    /// KV cells for all streams at their longest; llama.cpp divides them evenly.
    fn context(&self) -> u32 {
        let each = (self.tokens + SPARE_CELLS).next_multiple_of(256);
        (self.most() * each) as u32
    }
}

/// Options of `soak-serve`.
#[derive(Debug, Args)]
pub(crate) struct SoakServeArguments {
    /// GGUF file
    model: PathBuf,
    /// Budget given to Motley, in GiB
    #[arg(long)]
    memory: f64,
    /// Limit of the control group, in GiB [default: as --memory]
    #[arg(long)]
    limit: Option<f64>,
    /// Streams at once
    #[arg(long, default_value_t = 16)]
    streams: usize,
    /// Tokens of each answer
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// How long
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: u32,
    /// KV cells, all streams together
    #[arg(long, default_value_t = 4096)]
    context: u32,
    /// The program [default: beside this one]
    #[arg(long)]
    motley: Option<PathBuf>,
}

impl SoakServeArguments {
    pub(crate) fn soak(&self) -> Result<ServeSoak> {
        let bytes = |gib: f64| (gib * (1_u64 << 30) as f64) as u64;
        ensure!(self.model.exists(), "{} is not there", self.model.display());
        Ok(ServeSoak {
            serve: MotleyServe {
                program: motley_program(self.motley.as_deref())?,
                model: self.model.clone(),
                threads: self.threads,
                streams: self.streams,
                context: Context::Shared(self.context),
                memory_bytes: Some(bytes(self.memory)),
                exact: false,
                more: Vec::new(),
            },
            limit_bytes: bytes(self.limit.unwrap_or(self.memory)),
            streams: self.streams,
            tokens: self.tokens,
            minutes: self.minutes,
        })
    }
}

/// Options of `chaos`.
#[derive(Debug, Args)]
pub(crate) struct ChaosArguments {
    /// GGUF file, larger than the memory given
    model: PathBuf,
    /// Ceiling given to Motley, in GiB
    #[arg(long)]
    memory: f64,
    /// Most the neighbour takes, in GiB; the group's limit is both together
    #[arg(long, default_value_t = 0.5)]
    neighbour: f64,
    /// Clients at once, and streams of the server
    #[arg(long, default_value_t = 16)]
    streams: usize,
    /// Tokens of each answer
    #[arg(long, default_value_t = 12)]
    tokens: usize,
    /// How long
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Seconds without a sign of life before a question counts as lost
    #[arg(long, default_value_t = 60)]
    deadline: u64,
    /// The program [default: beside this one]
    #[arg(long)]
    motley: Option<PathBuf>,
    /// File to write the outcome to, as JSON
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(target_os = "linux")]
impl ChaosArguments {
    pub(crate) fn chaos(&self) -> Result<xtask::chaos::Chaos> {
        let bytes = |gib: f64| (gib * (1_u64 << 30) as f64) as u64;
        let each = (self.tokens + SPARE_CELLS) as u32;
        Ok(xtask::chaos::Chaos {
            serve: MotleyServe {
                program: motley_program(self.motley.as_deref())?,
                model: self.model.clone(),
                threads: 2,
                streams: self.streams,
                context: Context::Shared(each * self.streams as u32),
                memory_bytes: Some(bytes(self.memory)),
                exact: true,
                more: Vec::new(),
            },
            clients: self.streams,
            tokens: self.tokens,
            minutes: self.minutes,
            deadline: std::time::Duration::from_secs(self.deadline),
            limit_bytes: bytes(self.memory + self.neighbour),
            neighbour_bytes: bytes(self.neighbour),
            neighbour_file: self.model.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadArguments,
    }

    fn parse(line: &str) -> Result<LoadArguments, clap::Error> {
        Line::try_parse_from(["load"].into_iter().chain(line.split_whitespace()))
            .map(|line| line.load)
    }

    #[test]
    fn a_server_runs_or_several_are_started() {
        let one = parse("http://localhost:1/ --streams 2,3 --check").unwrap();
        assert_eq!(one.target().unwrap().address, "localhost:1");
        assert!(one.check && !one.compares());
        let two = parse("--against xllamacpp --against ./llama-server --gguf m.gguf").unwrap();
        assert!(two.compares());
        assert_eq!(two.against, [Rival::Wheel, Rival::Program("./llama-server".into())]);
        for wrong in ["", "--against xllamacpp", "http://x --against xllamacpp --gguf m"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_stream_has_room_for_question_and_answer() {
        let load = parse("--against a --gguf m --streams 1,64 --tokens 64").unwrap();
        assert_eq!((load.most(), load.context()), (64, 64 * 256));
        let long = parse("--against a --gguf m --streams 4 --tokens 300").unwrap();
        assert_eq!(long.context(), 4 * 512);
    }
}
