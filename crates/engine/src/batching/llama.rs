//! llama.cpp's context as what the batching worker computes with.

use super::compute::{Compute, ComputeError, ComputeFigures};
use super::segments::{IN_MEMORY, PrefixCache, SegmentFiles, root_of};
use super::shared::BatchOptions;
use super::turns::CORES;
use crate::blocks::figures::{BlockSums, SharedFigures};
use crate::blocks::resident::ExpertPlaces;
use crate::blocks::routing::RoutingWatcher;
use crate::blocks::step::CurrentStep;
use crate::clock::now;
use crate::threads::contention::ContentionWatch;
use crate::{Engine, SessionError};
use motley_cost::Nanos;
use motley_ggml::{Batch, BatchToken, Context, ContextOptions, DecodeError, PoolChoice};
use motley_plan::ModelNeeds;
use motley_plan::budget::SessionShape;
use motley_sched::Phase;
use motley_sched::batch::{Segment, SegmentKey, SegmentLengths, SegmentLimits, Sharing, StateId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// llama.cpp's context with its batch.
pub(super) struct LlamaCompute {
    context: Context,
    batch: Batch,
    blocks: Arc<SharedFigures>,
    /// What the batch under way is, for its blocks.
    step: Arc<CurrentStep>,
    /// Saved states of sequences.
    states: BTreeMap<StateId, Vec<u8>>,
    disk: Option<OnDisk>,
    contention: Option<ContentionWatch>,
    /// Whether it makes vectors: every row is then an output.
    embeds: bool,
}

/// Where segments are kept.
struct OnDisk {
    files: SegmentFiles,
    /// A sequence no request has, through which segments pass.
    spare: i32,
    /// For who asks first.
    found: Option<(SegmentLimits, Vec<Segment>)>,
}

impl LlamaCompute {
    pub(super) fn new(
        engine: &Engine,
        options: &BatchOptions,
        sharing: Sharing,
        prefixes: Option<&PrefixCache>,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Result<Self, SessionError> {
        let sequences = u32::from(options.sequences);
        let shared = matches!(sharing, Sharing::Prefixes | Sharing::States { .. });
        let disk = prefixes.filter(|_| shared);
        let disk = disk.map(|cache| on_disk(engine, options, cache)).transpose()?;
        let shape = ContextOptions {
            context_tokens: options.context_tokens,
            kv: options.kv,
            windows: false,
            batch_tokens: options.batch_tokens(),
            sequences: sequences + u32::from(disk.is_some()),
            unified: !matches!(sharing, Sharing::Parts | Sharing::Nothing),
            precise_attention: false,
            pooling: options.embedding.map(|embedding| embedding.pooling),
        };
        let segments = disk.as_ref().map_or(0, |_| IN_MEMORY);
        let counted = SessionShape {
            context_tokens: shape.context_tokens + segments * longest_segment(sharing),
            kv: shape.kv,
            windows: false,
            chunk_tokens: shape.batch_tokens,
            output_tokens: match options.embedding {
                Some(_) => shape.batch_tokens,
                None => shape.sequences,
            },
            states: shape.sequences + u32::from(options.saved_states) + segments,
        };
        let step = Arc::<CurrentStep>::default();
        let (drive, blocks) = engine.drive(counted, watcher, Arc::clone(&step))?;
        let context = engine.context(&shape, drive)?;
        let batch = Batch::with_capacity(options.batch_tokens() as usize);
        let (states, contention) = (BTreeMap::new(), engine.contention_watch());
        let embeds = options.embedding.is_some();
        Ok(Self { context, batch, blocks, step, states, disk, contention, embeds })
    }

    /// After a step in which `rows` sequences decoded for `took`.
    fn yield_cores(&mut self, took: Duration, rows: usize) {
        let took = Nanos(took.as_nanos() as u64);
        let watch = self.contention.as_mut();
        if let Some(pools) = watch.and_then(|watch| watch.after_step(took, rows)) {
            self.context.set_pools(pools);
        }
    }

    /// Seconds that decoding has waited for experts so far.
    fn stalled_s(&self) -> f64 {
        self.blocks.get().decode.stall_s
    }

    /// Which experts are in memory; `None` when all are.
    pub(super) fn places(&self) -> Option<ExpertPlaces> {
        self.blocks.places()
    }
}

/// Tokens of the longest segment.
fn longest_segment(sharing: Sharing) -> u32 {
    let lengths = SegmentLengths::default();
    match sharing {
        Sharing::States { .. } => lengths.with_state_max,
        _ => lengths.each,
    }
}

/// Opens the folder of a cache.
fn on_disk(
    engine: &Engine,
    options: &BatchOptions,
    cache: &PrefixCache,
) -> Result<OnDisk, SessionError> {
    let failed =
        |error: io::Error| SessionError::PrefixCache { folder: cache.folder.clone(), error };
    let (spec, opened) = engine.files();
    let root = root_of(&opened, options.kv).map_err(failed)?;
    let (files, found) = SegmentFiles::open(&cache.folder, root).map_err(failed)?;
    let needs = ModelNeeds::of(&spec);
    let limits = SegmentLimits {
        lengths: SegmentLengths::default(),
        root,
        most_bytes: cache.most_bytes,
        token_bytes: needs.kv_bytes_per_token(options.kv),
        state_bytes: needs.state_bytes,
        read_bytes_per_second: cache.read_bytes_per_second,
    };
    Ok(OnDisk { files, spare: i32::from(options.sequences), found: Some((limits, found)) })
}

fn positions(segment: &Segment) -> Range<i32> {
    segment.first as i32..segment.end() as i32
}

/// Whether only the sequences of the failed batch are affected, by llama.cpp's word.
fn leaves_others_alone(error: &DecodeError) -> bool {
    use DecodeError::{Cancelled, Engine, Executor, NoRoom};
    matches!(error, NoRoom | Cancelled | Executor(_) | Engine(_))
}

impl Compute for LlamaCompute {
    fn decode(&mut self, rows: &[BatchToken], phase: Phase) -> Result<(), ComputeError> {
        self.batch.clear();
        let embeds = self.embeds;
        let outputs = |row: &BatchToken| BatchToken { logits: row.logits || embeds, ..*row };
        rows.iter().for_each(|row| self.batch.push(outputs(row)));
        self.step.set(phase);
        let turn = CORES.take();
        let (begun, stalled_s) = (now(), self.stalled_s());
        let decoded = self.context.decode(&self.batch, PoolChoice::of(phase == Phase::Decode));
        drop(turn);
        if decoded.is_ok() && phase == Phase::Decode {
            let stalled_s = (self.stalled_s() - stalled_s).max(0.0);
            let took = begun.elapsed().saturating_sub(Duration::from_secs_f64(stalled_s));
            self.yield_cores(took, rows.len());
        }
        decoded.map_err(|error| ComputeError {
            reason: error.to_string(),
            model_changed: matches!(error, DecodeError::ModelChanged { .. })
                || self.blocks.model_changed(),
            cache_lost: !leaves_others_alone(&error),
        })
    }

    fn logits(&self, index: usize) -> Option<&[f32]> {
        self.context.logits(index)
    }

    fn vector(&self, sequence: i32) -> Option<&[f32]> {
        self.context.pooled(sequence).filter(|_| self.embeds)
    }

    fn truncate(&mut self, sequence: i32, position: i32) -> bool {
        self.context.truncate(sequence, position)
    }

    fn copy_prefix(&mut self, from: i32, to: i32, tokens: i32) {
        self.context.copy_prefix(from, to, tokens);
    }

    fn save(&mut self, sequence: i32, state: StateId) -> bool {
        let saved = self.context.save_state(sequence);
        saved.map(|bytes| self.states.insert(state, bytes)).is_some()
    }

    fn restore(&mut self, sequence: i32, state: StateId) -> bool {
        let saved = self.states.get(&state);
        saved.is_some_and(|bytes| self.context.restore_state(sequence, bytes))
    }

    fn discard(&mut self, state: StateId) {
        self.states.remove(&state);
    }

    fn on_disk(&mut self) -> Option<(SegmentLimits, Vec<Segment>)> {
        self.disk.as_mut()?.found.take()
    }

    fn store(&mut self, sequence: i32, segment: &Segment) -> Option<u64> {
        let OnDisk { files, spare, .. } = self.disk.as_ref()?;
        let state = self.context.save_segment(sequence, *spare, positions(segment))?;
        Some(files.write(segment, state))
    }

    fn load(&mut self, sequence: i32, segment: &Segment) -> bool {
        let Some(OnDisk { files, spare, .. }) = &self.disk else { return false };
        let state = match files.read(segment) {
            Ok(state) => state,
            Err(error) => {
                tracing::info!("the beginning of a prompt is computed, not read: {error}");
                return false;
            }
        };
        self.context.load_segment(sequence, *spare, positions(segment), &state)
    }

    fn erase(&mut self, segment: SegmentKey) {
        if let Some(disk) = &self.disk {
            disk.files.erase(segment);
        }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.context.clear();
    }

    fn vocab_size(&self) -> usize {
        self.context.model().vocab_size()
    }

    fn is_end(&self, token: i32) -> bool {
        self.context.model().is_end(token)
    }

    fn token_bytes(&self, token: i32, control: bool) -> Cow<'_, [u8]> {
        self.context.model().token_bytes(token, control).into()
    }

    fn figures(&self) -> ComputeFigures {
        let BlockSums { prefill, decode, stream } = self.blocks.get();
        let stalled = Duration::from_secs_f64(prefill.stall_s + decode.stall_s);
        ComputeFigures { seam: self.context.seam_counts(), stream, stalled }
    }
}
