//! Each model's place in memory, decided before anything is loaded: by itself where one is served,
//! beside the others where there are several.

use crate::args::{Global, LoadArgs, Serve};
use crate::known::Known;
use crate::load::check_skip;
use crate::npu;
use anyhow::{Context, Result, bail, ensure};
use motley_engine::batching::PrefixCache;
use motley_engine::{BatchOptions, Runtime};
use motley_model::ModelSpec;
use motley_plan::budget::saved_states;
use motley_plan::decide::asked::DEFAULT_CONTEXT_TOKENS;
use motley_plan::together::shares;
use motley_plan::{Decision, Outputs};
use motley_trace::{ExpertKey, Phase};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a disk reads that was not measured: less than most of those that hold models.
const DISK_BYTES_PER_SECOND: f64 = 1e9;

/// A model that can be loaded, and how.
pub(super) struct Planned {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Its files.
    pub(super) files: Vec<PathBuf>,
    pub(super) spec: Arc<ModelSpec>,
    pub(super) most_used: Vec<ExpertKey>,
    pub(super) decision: Decision,
    pub(super) npu_share: npu::Share,
    pub(super) batch: BatchOptions,
    pub(super) prefix_cache: Option<PrefixCache>,
    read_bytes_per_second: f64,
}

/// Models that can be loaded, at least one, and the RAM they share.
pub(super) struct Plans {
    pub(super) models: Vec<Planned>,
    /// `u64::MAX` where the system does not say.
    pub(super) room_bytes: u64,
}

/// Plans every model that is to be served.
pub(super) fn plan(runtime: &Runtime, global: &Global, serve: &Serve) -> Result<Plans> {
    let paths = paths(&serve.models)?;
    let several = paths.len() > 1;
    ensure!(!several || serve.alias.is_none(), "--alias names one model; leave it out for several");
    ensure!(
        !several || serve.load.plan.is_none(),
        "--plan is for one model; for several each is planned beside the others"
    );
    ensure!(!several || !serve.npu.is_used(), "--npu is for one model");
    ensure!(!several || serve.workers.workers.is_empty(), "--workers are for one model");
    serve.workers.check_beside(&serve.npu)?;
    let mut known = Vec::new();
    for path in &paths {
        let one = Known::to_run(runtime, global, path, serve.load.trust)?;
        let mut one = one.with_experts(serve.load.approximate.experts)?;
        one.measure_once(runtime, global)?;
        known.push(one);
    }
    let room = serve.load.wishes.memory.or(known[0].room_bytes());
    let loads = match several {
        true => side_by_side(&mut known, &paths, room, serve)?,
        false => vec![serve.loading()],
    };
    let names = names(serve, &paths)?;
    let of_each = known.into_iter().zip(loads).zip(paths.into_iter().zip(names));
    let planned = |((known, load), (path, name))| one(serve, known, &load, path, name);
    let models = of_each.map(planned).collect::<Result<_>>()?;
    Ok(Plans { models, room_bytes: room.unwrap_or(u64::MAX) })
}

/// Divides the memory `room` among several models; how each is loaded in its part.
fn side_by_side(
    known: &mut [Known],
    paths: &[PathBuf],
    room: Option<u64>,
    serve: &Serve,
) -> Result<Vec<LoadArgs>> {
    let mut load = serve.loading();
    let size = |(known, path): (&Known, &PathBuf)| {
        let mut least = load.asked(outputs(serve, &known.spec));
        least.context_tokens.get_or_insert(DEFAULT_CONTEXT_TOKENS);
        let found = known.decide(&least).with_context(|| no_plan(path))?;
        Ok(found.budget.largest_sensible_bytes())
    };
    let sizes = known.iter().zip(paths).map(size).collect::<Result<Vec<_>>>()?;
    let shares = shares(room.unwrap_or(u64::MAX), &sizes);
    let mut loads = Vec::new();
    for (known, share) in known.iter_mut().zip(shares) {
        match (load.wishes.memory.as_mut(), room) {
            (Some(memory), _) => *memory = share,
            (None, Some(room)) => known.set_aside(room - share),
            (None, None) => {}
        }
        loads.push(load.clone());
    }
    Ok(loads)
}

fn one(
    serve: &Serve,
    known: Known,
    load: &LoadArgs,
    path: PathBuf,
    name: String,
) -> Result<Planned> {
    let (decision, npu_share) = npu::decide(&known, load, outputs(serve, &known.spec), &serve.npu)
        .with_context(|| no_plan(&path))?;
    let known = known.with_experts(decision.experts_used)?;
    check_skip(&decision, serve.workers.is_used() || serve.npu.is_used())?;
    let paced = serve.step_time.is_some();
    ensure!(
        !(decision.exact && paced),
        "--step-time: the plan is exact, so chunks have one length"
    );
    let measured = known.measured.as_ref().and_then(|measured| measured.disk.as_ref());
    let most_used = known.profile.as_ref().map(|profile| profile.most_used(Phase::Decode));
    Ok(Planned {
        name,
        path,
        files: known.files.paths.clone(),
        most_used: most_used.unwrap_or_default(),
        batch: batch_options(serve, &known.spec, &decision),
        decision,
        npu_share,
        prefix_cache: None,
        read_bytes_per_second: measured
            .map_or(DISK_BYTES_PER_SECOND, |disk| disk.alone_gb_per_s * 1e9),
        spec: Arc::new(known.spec),
    })
}

/// What is computed of each pass.
fn outputs(serve: &Serve, spec: &ModelSpec) -> Outputs {
    match spec.embedding {
        Some(_) => Outputs::Texts(serve.streams),
        None => Outputs::Streams(serve.streams),
    }
}

fn no_plan(path: &Path) -> String {
    format!("no plan for {}", path.display())
}

impl Planned {
    /// Beginnings of prompts are kept in `folder` too, where there is one.
    pub(super) fn keep_prefixes(&mut self, most_bytes: Option<u64>, folder: Option<&Path>) {
        let (Some(most_bytes), Some(folder)) = (most_bytes, folder) else { return };
        let read_bytes_per_second = self.read_bytes_per_second;
        self.prefix_cache =
            Some(PrefixCache { folder: folder.to_owned(), most_bytes, read_bytes_per_second });
    }
}

fn batch_options(serve: &Serve, spec: &ModelSpec, decision: &Decision) -> BatchOptions {
    let options = BatchOptions {
        context_tokens: decision.session.context_tokens,
        longest_tokens: decision.longest_tokens.unwrap_or(u32::MAX),
        kv: decision.session.kv,
        sequences: serve.streams,
        step_tokens: decision.session.chunk_tokens,
        prefill_beside_decode: serve.prefill_beside,
        step_time: serve.step_time.map(|ms| Duration::from_millis(ms.into())),
        waiting: serve.queue as usize,
        own_caches: serve.stream_context.is_some(),
        share_prefixes: !serve.safety.no_share_prefix,
        saved_states: saved_states(serve.streams),
        exact: decision.exact,
        embedding: None,
    };
    spec.embedding.map_or(options, |embedding| options.for_texts(embedding))
}

/// The files that were named, and those of folders that were: each model once, in the order of
/// names.
fn paths(typed: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in typed {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        let cannot = || format!("cannot read the folder {}", path.display());
        let entries = std::fs::read_dir(path).with_context(cannot)?;
        let mut found = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .with_context(cannot)?;
        found.retain(|path| is_model(path));
        found.sort_unstable();
        if found.is_empty() {
            bail!("{}: there is no model in this folder (files ending in .gguf)", path.display());
        }
        paths.extend(found);
    }
    Ok(paths)
}

/// Whether a file of a folder is one to serve: not the second part of one, nor what a model sees
/// pictures with.
fn is_model(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let later_part = split_name(name.strip_suffix(".gguf").unwrap_or_default())
        .is_some_and(|(_, number)| number != 1);
    name.ends_with(".gguf") && !name.starts_with("mmproj") && !later_part && path.is_file()
}

/// Of the name of a part of a split model, that of the whole and the part's number.
fn split_name(stem: &str) -> Option<(&str, u32)> {
    let (rest, count) = stem.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    let five = |digits: &str| digits.len() == 5 && digits.bytes().all(|c| c.is_ascii_digit());
    (five(count) && five(number)).then(|| number.parse().ok().map(|number| (name, number)))?
}

/// Names in requests: the files', or the one that was given.
fn names(serve: &Serve, paths: &[PathBuf]) -> Result<Vec<String>> {
    let name = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        split_name(&stem).map_or(stem.as_ref(), |(name, _)| name).to_owned()
    };
    let names: Vec<String> = match &serve.alias {
        Some(alias) => vec![alias.clone()],
        None => paths.iter().map(name).collect(),
    };
    for (at, name) in names.iter().enumerate() {
        if let Some(other) = names[..at].iter().position(|other| other == name) {
            let (first, second) = (paths[other].display(), paths[at].display());
            bail!("{first} and {second} would both be called `{name}`; rename one of them");
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_each_model_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| std::fs::write(folder.path().join(name), "").unwrap();
        let parts = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "c-2-of-3.GGUF"];
        parts.into_iter().chain(["b.gguf", "notes.txt", "mmproj-a.gguf"]).for_each(file);
        let found = paths(&[folder.path().to_owned(), "x.gguf".into()]).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["a-00001-of-00002.gguf", "b.gguf", "c-2-of-3.GGUF", "x.gguf"]);
        let empty = tempfile::tempdir().unwrap();
        let error = paths(&[empty.path().to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no model in this folder"), "{error}");
    }

    #[test]
    fn parts_have_the_name_of_the_whole() {
        assert_eq!(split_name("a-b-00002-of-00020"), Some(("a-b", 2)));
        for whole in ["a", "a-of-b", "a-1-of-2", "a-00001-of-2", "one-of-a-kind"] {
            assert_eq!(split_name(whole), None, "{whole}");
        }
    }
}
