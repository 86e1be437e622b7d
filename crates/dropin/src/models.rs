//! The host's models: which of them are taken, and what its loader hands over of them. Every tensor
//! is checked against the header as our own reader sees it.

use crate::contexts::ContextBlocks;
use crate::decision::{Choice, choose};
use crate::files::open_models;
use crate::known::{Known, holds};
use crate::model::Model;
use crate::say::say;
use crate::wishes::Wishes;
use motley_engine::Runtime;
use motley_ggml::hosted::{BufferId, Guest, HandedOver, HandedTensor, Taken};
use motley_ggml::{BlockError, BlockExecutor};
use motley_model::{ModelSpec, Sizes};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All of them.
pub(crate) struct Models {
    runtime: Runtime,
    wishes: Wishes,
    known: Arc<Mutex<Known>>,
}

impl Models {
    pub(crate) fn new(runtime: Runtime, wishes: Wishes) -> Self {
        Self { runtime, wishes, known: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the headers of files that were opened since.
    fn look(&self, known: &mut Known) {
        known.forget_unused();
        for path in open_models() {
            let seen = known.models.iter().any(|model| model.is_at(&path));
            if seen || known.refused.contains(&path) {
                continue;
            }
            match self.model_at(&path, known.decided_bytes()) {
                Ok(model) => known.models.push(Arc::new(model)),
                Err(reason) => {
                    say(&format!("{}: left to the host: {reason}", path.display()));
                    known.refused.push(path);
                }
            }
        }
    }

    fn model_at(&self, path: &Path, others_bytes: u64) -> Result<Model, String> {
        let (spec, files) = ModelSpec::open(path).map_err(|error| error.to_string())?;
        let choice = choose(&self.runtime, path, &spec, &self.wishes.asked, others_bytes);
        let choice = choice.map_err(|error| error.to_string())?;
        let model = Model::new(spec, files, choice);
        if model.spec.is_moe() {
            say(&announced(&model));
        }
        Ok(model)
    }

    /// The model whose file is mapped where the bytes are, if they are where its header says.
    fn mapped(
        &self,
        known: &mut Known,
        handed: &HandedOver<'_>,
    ) -> Option<Result<Arc<Model>, String>> {
        let address = handed.bytes.as_ptr().addr();
        let mapping = known.mapping(address, handed.bytes.len())?.clone();
        let file = mapping.file.clone()?;
        let place = mapping.offset + (address - mapping.start) as u64;
        let model = Arc::clone(known.models.iter().rfind(|model| model.is_at(&file))?);
        let tensor = model.tensor(&handed.tensor)?;
        let range = tensor.range;
        let right = model.has_file(range.file, &file)
            && place == range.offset + handed.offset as u64
            && handed.bytes.len() as u64 <= range.len_bytes;
        if !right {
            return Some(Err(format!("{} is not where its header says", handed.tensor.name)));
        }
        model.mapped_at(range.file, &mapping);
        Some(Ok(model))
    }

    /// The model whose file has these bytes, for loaders that read and do not map.
    fn read(known: &Known, handed: &HandedOver<'_>) -> Option<Arc<Model>> {
        let has = |model: &&Arc<Model>| {
            let tensor = model.tensor(&handed.tensor);
            tensor.is_some_and(|tensor| model.has_bytes(tensor, handed.offset, handed.bytes))
        };
        known.models.iter().rev().find(has).cloned()
    }
}

impl Guest for Models {
    fn wants(&self, tensor: &HandedTensor<'_>) -> bool {
        let known = &mut *self.lock();
        if known.first_asked.as_deref().is_none_or(|first| first == tensor.name)
            || !known.models.iter().any(|model| model.tensor(tensor).is_some())
        {
            known.first_asked = Some(tensor.name.to_owned());
            known.mappings.clear();
            self.look(known);
        }
        let model = known.models.iter().rfind(|model| model.tensor(tensor).is_some());
        model.is_some_and(|model| model.choice.takes)
    }

    fn hand_over(&self, buffer: BufferId, handed: &HandedOver<'_>) -> Taken {
        let known = &mut *self.lock();
        if known.models.iter().all(|model| model.tensor(&handed.tensor).is_none()) {
            // An adapter's, or something else that is in no model's file.
            return Taken::Copy;
        }
        let found = match self.mapped(known, handed) {
            Some(found) => found,
            None => match Self::read(known, handed) {
                Some(model) => Ok(model),
                None => Err("its file is not among those this program has open; load it with \
                             memory mapping (without `--no-mmap`)"
                    .into()),
            },
        };
        let model = found.or_else(|problem| {
            let model = known.models.iter().rfind(|m| m.tensor(&handed.tensor).is_some());
            model.cloned().inspect(|model| model.refuse(problem)).ok_or(())
        });
        if let Ok(model) = model {
            known.buffers.insert(buffer, model);
        }
        Taken::Elsewhere
    }

    fn read(
        &self,
        buffer: BufferId,
        tensor: &HandedTensor<'_>,
        offset: usize,
        out: &mut [u8],
    ) -> bool {
        let model = self.lock().buffers.get(&buffer).cloned();
        let Some(model) = model else { return false };
        let Some(tensor) = model.tensor(tensor) else { return false };
        model.read(tensor, offset, out).is_ok()
    }

    fn forget(&self, buffer: BufferId) {
        let mut known = self.lock();
        let Some(model) = known.buffers.remove(&buffer) else { return };
        if !holds(&known.buffers, &model) {
            known.models.retain(|other| !Arc::ptr_eq(other, &model));
            drop(known);
            self.ended(&model);
        }
    }

    fn executor(&self) -> Box<dyn BlockExecutor> {
        Box::new(ContextBlocks::new(Arc::clone(&self.known)))
    }

    fn failed(&self, error: &BlockError) {
        say(&error.to_string());
    }
}

impl Models {
    /// A model is freed: its figures are written where they were asked for.
    fn ended(&self, model: &Model) {
        let (Some(path), Some(record)) = (&self.wishes.stats, model.record()) else { return };
        let written = serde_json::to_string(&record)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(path, text + "\n"));
        if let Err(error) = written {
            say(&format!("MOTLEY_STATS={}: {error}", path.display()));
        }
    }
}

/// What was decided and why, in one line.
fn announced(model: &Model) -> String {
    let Choice { decision, devices, takes } = &model.choice;
    let name = model.name();
    if !takes {
        return format!("{name}: left to the host ({})", decision.why.memory);
    }
    let sizes = Sizes::of(&model.spec);
    let gb = |bytes: u64| bytes as f64 / 1e9;
    let experts = gb(sizes.total_bytes - sizes.dense_bytes - sizes.shared_bytes);
    let shared: Vec<&str> = devices.iter().map(|(device, _)| device.info().name.as_str()).collect();
    let shared = if shared.is_empty() {
        String::new()
    } else {
        format!(", shared with {}", shared.join(", "))
    };
    format!(
        "{name}: {experts:.1} of {:.1} GB are experts, read from disk as tokens need them{shared}; \
         memory: {}",
        gb(sizes.total_bytes),
        decision.why.memory
    )
}
