//! `cargo xtask mutate`: headers changed at random and given to `motley run`, each in a process of
//! its own under limits. Whatever a header says, the program must answer or refuse; one that is
//! ended by a signal, or does not end, is a finding.
//!
//! In reading order:
//! * `options`: what is tried.
//! * `draft`: a model's header that can be changed, and its files.
//! * `words`: what the pinned llama.cpp knows by name.
//! * `values`: odd numbers, texts and types.
//! * `edit`: sets a key and says so.
//! * `change`: changes of keys and tensors; `tokenizer`: changes of the vocabulary.
//! * `trial`: one run and how it ended.
//! * `report`: all runs in numbers.

mod change;
mod draft;
mod edit;
mod options;
mod report;
mod tokenizer;
mod trial;
mod values;
mod words;

pub use options::{LoadingPath, Mutations};
pub use report::Report;
pub use trial::Ending;

use anyhow::{Context, Result, ensure};
use draft::Draft;
use motley_testkit::gguf_source::Tokenizer;
use motley_testkit::synth::{self, Arch, Preset, Request};
use motley_testkit::{fixtures, smollm2};
use report::Run;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Tries every mutation; `on_bad` hears of each that ended badly.
pub fn mutate(mutations: &Mutations, on_bad: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    ensure!(mutations.motley.exists(), "{} is not there", mutations.motley.display());
    let folder = tempfile::tempdir().context("a folder for mutated files")?;
    let bases = bases(folder.path())?;
    let next = AtomicUsize::new(mutations.numbers.start);
    let runs: Mutex<Vec<Run>> = Mutex::default();
    std::thread::scope(|scope| {
        let work = |job| {
            let folder = folder.path().join(format!("job-{job}"));
            std::fs::create_dir_all(&folder)?;
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= mutations.numbers.end {
                    return Ok(());
                }
                let done = one(mutations, &bases, number, &folder)?;
                done.iter().filter_map(Run::bad_line).for_each(|line| on_bad(&line));
                runs.lock().expect("no job panics").extend(done);
            }
        };
        let jobs: Vec<_> =
            (0..mutations.jobs.max(1)).map(|job| scope.spawn(move || work(job))).collect();
        jobs.into_iter().try_for_each(|job| job.join().expect("no job panics"))
    })
    .map_err(|error: anyhow::Error| error)?;
    let runs = runs.into_inner().expect("no job panics");
    Report::of(mutations, &runs)
}

/// Mutation `number`, on every path.
fn one(mutations: &Mutations, bases: &[Draft], number: usize, folder: &Path) -> Result<Vec<Run>> {
    let mut random = fastrand::Rng::with_seed(mutations.seed.wrapping_mul(1 << 32) ^ number as u64);
    let mut draft = random.choice(bases).context("a model to change")?.clone();
    let changes = random.choice([1, 1, 1, 2, 3]).unwrap_or(1);
    let mut said = vec![draft.name().to_owned()];
    let mut kinds = Vec::new();
    for _ in 0..changes {
        let change = change::change(&mut draft, &mut random);
        kinds.push(change.kind);
        said.push(change.said);
    }
    let said = said.join("; ");
    let Some(model) = draft.write(folder)? else {
        // Two tensors of one name, or a shape beyond 63 bits: the writer refuses, nothing to run.
        return Ok(vec![]);
    };
    let mut runs = Vec::new();
    for path in &mutations.paths {
        let ending = trial::trial(mutations, &model, *path, folder)?;
        runs.push(Run { number, path: *path, kinds: kinds.clone(), said: said.clone(), ending });
    }
    draft.remove(folder);
    Ok(runs)
}

/// Small models of every architecture, one of them in parts, and the trained one where it is.
fn bases(folder: &Path) -> Result<Vec<Draft>> {
    let trained = fixtures::trained("q4_k_m");
    let source = match &trained {
        Some(path) => path.clone(),
        None => smollm2::fetch(false)?,
    };
    let tokenizer = Tokenizer::read(&source)?;
    let mut drafts = Vec::new();
    for arch in Arch::ALL {
        drafts.push(synthetic(*arch, 1, &tokenizer, folder)?);
    }
    drafts.push(synthetic(Arch::Qwen3moe, 3, &tokenizer, folder)?);
    if let Some(path) = trained {
        drafts.push(Draft::read("trained", &path)?);
    }
    Ok(drafts)
}

fn synthetic(arch: Arch, shards: u32, tokenizer: &Tokenizer, folder: &Path) -> Result<Draft> {
    let mut request = Request::of_preset(Preset::Test(arch));
    request.shards = shards;
    (request.shape.layers, request.shape.experts) = (2, 8);
    let name = if shards == 1 { arch.to_string() } else { format!("{arch} in {shards} parts") };
    let out = folder.join(format!("base-{arch}-{shards}.gguf"));
    let written = synth::generate(&request, tokenizer, &out, &mut |_| {})?;
    Draft::read(&name, &written.path)
}
