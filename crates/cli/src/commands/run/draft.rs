//! `--draft`: a small model that guesses for the model that runs. Opened and compared with it by
//! their headers, given its memory before any expert is, and loaded beside it.

use crate::args::{Global, LoadArgs, Run, SpeculateArg};
use crate::known::Known;
use crate::npu;
use crate::terminal::note;
use anyhow::{Context, Result, anyhow, ensure};
use motley_engine::{Engine, EngineOptions, Loading, Runtime, Session, SessionOptions, ThreadSets};
use motley_model::{ModelFiles, ModelSpec, Sizes, format_bytes, same_vocabulary};
use motley_plan::budget::{Budget, TooLittleMemory};
use motley_plan::decide::asked::{ANSWER_TOKENS, DEFAULT_CONTEXT_TOKENS};
use motley_plan::{CHUNKS, DecideError, Decision};
use std::path::PathBuf;

/// A draft model that is not loaded yet.
pub(super) struct Draft {
    opened: (ModelSpec, ModelFiles),
    session: SessionOptions,
    threads: Option<ThreadSets>,
}

/// The decision for the model of `run`, beside a draft model if there is one.
pub(super) fn decide(
    draft: Option<&mut Draft>,
    model: &mut Known,
    load: &LoadArgs,
    run: &Run,
) -> Result<(Decision, npu::Share)> {
    match draft {
        None => npu::decide(model, load, run.outputs(), &run.npu),
        Some(draft) => draft.decide_beside(model, load, run),
    }
}

impl Draft {
    /// The one that `run` names, if its vocabulary is that of the model.
    pub(super) fn open(
        runtime: &Runtime,
        global: &Global,
        run: &Run,
        model: &Known,
    ) -> Result<Option<Self>> {
        let Some(path) = &run.draft else { return Ok(None) };
        ensure!(
            run.speculate() == SpeculateArg::Auto,
            "--speculate off guesses nothing, and --draft {} would do nothing; leave one of the \
             two out",
            path.display()
        );
        let known = Known::to_run(runtime, global, path, run.load.trust);
        let Known { spec, files, .. } = known.context("--draft")?;
        ensure!(spec.embedding.is_none(), "--draft {}: it makes no text", path.display());
        let [own, other] = [&model.files, &files].map(|files| &files.headers[0].metadata);
        same_vocabulary(own, other).with_context(|| {
            format!(
                "--draft {}: its vocabulary is not that of {}",
                path.display(),
                run.model.display()
            )
        })?;
        let session = SessionOptions { chunk_tokens: CHUNKS[0], ..SessionOptions::default() };
        Ok(Some(Self { opened: (spec, files), session, threads: None }))
    }

    /// Its files.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.opened.1.paths
    }

    /// The decision for the model beside it: what it takes is not there for experts. Its context is
    /// as long as the model's, as far as it was trained for that.
    fn decide_beside(
        &mut self,
        model: &mut Known,
        load: &LoadArgs,
        run: &Run,
    ) -> Result<(Decision, npu::Share)> {
        let asked = load.wishes.context;
        let about = load.wishes.prompt.unwrap_or(0).saturating_add(ANSWER_TOKENS as u32);
        self.set_context(asked.unwrap_or(about.max(DEFAULT_CONTEXT_TOKENS)));
        let (mut decision, mut share) = self.decided(model, load, run)?;
        if asked.is_none() {
            // With what the same context takes here, the model's is as long or shorter.
            self.set_context(decision.session.context_tokens);
            (decision, share) = self.decided(model, load, run)?;
            self.set_context(decision.session.context_tokens);
        }
        let own = format!("; {} are the draft model's", format_bytes(self.bytes()));
        decision.why.memory.push_str(&own);
        self.threads = Some(decision.threads.clone());
        Ok((decision, share))
    }

    fn decided(
        &self,
        model: &mut Known,
        load: &LoadArgs,
        run: &Run,
    ) -> Result<(Decision, npu::Share)> {
        let bytes = self.bytes();
        let mut load = load.clone();
        let given = load.wishes.memory;
        match &mut load.wishes.memory {
            Some(memory) => *memory = memory.saturating_sub(bytes),
            None => model.set_aside(bytes),
        }
        npu::decide(model, &load, run.outputs(), &run.npu)
            .map_err(|error| self.beyond(error, model, run, given))
    }

    /// Says of too little memory what the draft model has to do with it.
    fn beyond(
        &self,
        error: anyhow::Error,
        model: &Known,
        run: &Run,
        given: Option<u64>,
    ) -> anyhow::Error {
        let too_little = error.chain().find_map(|cause| cause.downcast_ref::<DecideError>());
        let Some(DecideError::Memory(TooLittleMemory { needed_bytes, .. })) = too_little else {
            return error;
        };
        let draft = run.draft.as_ref().map_or_else(String::new, |path| path.display().to_string());
        let room = match given {
            Some(bytes) => format!("--memory {}", format_bytes(bytes)),
            None => format!("{} beside it", format_bytes(model.room_bytes().unwrap_or(0))),
        };
        anyhow!(
            "--draft {draft} takes {} for {} tokens of context, and {} at least {}: {room} is too \
             little for both; give more --memory, a smaller --context, or leave out --draft",
            format_bytes(self.bytes()),
            self.session.context_tokens,
            run.model.display(),
            format_bytes(*needed_bytes),
        )
    }

    fn set_context(&mut self, tokens: u32) {
        let trained = self.opened.0.shape.context_tokens;
        self.session.context_tokens = match u32::try_from(trained) {
            Ok(trained) if trained > 0 => tokens.min(trained),
            _ => tokens,
        };
        self.session.chunk_tokens = CHUNKS[0].min(self.session.context_tokens);
    }

    /// All it takes: weights, KV cache and buffers. The process is there already.
    fn bytes(&self) -> u64 {
        let budget = Budget::of(&self.opened.0, self.session.shape());
        budget.largest_sensible_bytes().saturating_sub(budget.process_bytes)
    }

    /// Loads it, on the threads of `engine`, and has it guess for `session`. Kept as long as that.
    pub(super) fn load(
        self,
        runtime: Runtime,
        global: &Global,
        engine: &Engine,
        session: &mut Session,
    ) -> Result<Engine> {
        let bytes = self.bytes();
        let Self { opened, session: shape, threads } = self;
        let path = opened.1.paths[0].clone();
        let refused = || format!("--draft {}", path.display());
        let defaults = EngineOptions::default();
        let options = EngineOptions {
            loading: Loading::Mapped,
            threads: threads.unwrap_or(defaults.threads.clone()),
            threads_of: Some(engine.shared_threads()),
            yields_cores: false,
            ..defaults
        };
        let small =
            Engine::load_opened(runtime, opened, &options, &mut |_| true).with_context(refused)?;
        let drafting = small.session(&shape).with_context(refused)?;
        session.use_draft(drafting).with_context(refused)?;
        if !global.json {
            note(&chosen(small.spec(), &shape, bytes));
        }
        Ok(small)
    }
}

/// One line: the draft model, and what it takes.
fn chosen(spec: &ModelSpec, shape: &SessionOptions, bytes: u64) -> String {
    let name = spec.name.as_deref().unwrap_or(&spec.architecture);
    format!(
        "draft model {name}, {}: {} of memory, guesses within {} tokens of context",
        format_bytes(Sizes::of(spec).total_bytes),
        format_bytes(bytes),
        shape.context_tokens,
    )
}
