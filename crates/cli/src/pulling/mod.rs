//! From a name to a model that is here: offered, chosen, its headers read, its plan made and shown,
//! then fetched. The network and the cache are `motley_hub`'s, choices are `motley_plan`'s.
//!
//! - `announced`: a model before it is fetched, in words and as JSON.
//! - `bar`: how far it is.

mod announced;
mod bar;

pub(crate) use announced::Announcement;

use crate::known::{Known, room_bytes};
use crate::terminal::note;
use anyhow::{Context, Result, bail, ensure};
use bar::Bar;
use motley_engine::{Runtime, Seam};
use motley_hub::{Client, ModelName, Offer, Pull, Retry, Settings, Silent, Variant};
use motley_model::{ModelFiles, ModelSpec, format_bytes};
use motley_plan::quantisation::{Offered, choose};
use motley_plan::{Asked, Decision};
use std::path::PathBuf;
use std::time::Instant;

/// The hub, as the environment names it.
pub(crate) struct Hub {
    pub(crate) settings: Settings,
    client: Client,
}

impl Hub {
    /// Asks nobody yet.
    pub(crate) fn of_environment() -> Result<Self> {
        let settings = Settings::of_environment()?;
        let client = Client::new(&settings, Retry::default());
        Ok(Self { settings, client })
    }

    fn offer(&self, name: &ModelName, sha256: &[String]) -> Result<Offer> {
        match name {
            ModelName::Local(path) => {
                ensure!(path.exists(), "{}: no such file", path.display());
                bail!("{}: is a file of yours already; pull takes names", path.display())
            }
            ModelName::Hub(name) => {
                let given = sha256.is_empty();
                ensure!(given, "--sha256: the hub names the checksums of {name} itself");
                Ok(Offer::of_hub(&self.client, name)?)
            }
            ModelName::Url(url) => Ok(Offer::of_url(&self.client, url, sha256)?),
        }
    }
}

/// A model that can be fetched, and what is known of it before.
pub(crate) struct Found<'a> {
    pull: Pull<'a>,
    pub(crate) offer: Offer,
    /// Which of the offer's.
    pub(crate) variant: usize,
    /// Why that one, where the name left it open.
    pub(crate) why: Option<String>,
    pub(crate) spec: ModelSpec,
    pub(crate) files: ModelFiles,
    /// Memory for models here, as far as it may be used.
    room_bytes: Option<u64>,
}

impl<'a> Found<'a> {
    /// Asks what there is under a name, chooses where the name does not, and reads the headers.
    /// `memory_bytes` is a ceiling somebody asked for.
    pub(crate) fn new(
        hub: &'a Hub,
        name: &ModelName,
        sha256: &[String],
        memory_bytes: Option<u64>,
    ) -> Result<Self> {
        let offer = hub.offer(name, sha256)?;
        let here = room_bytes(&Runtime::start(Seam::Registered)?);
        let room_bytes = here.into_iter().chain(memory_bytes).min();
        let (variant, why) = chosen(&offer, room_bytes)?;
        let pull = Pull::new(&hub.client, &hub.settings, &offer, variant)?;
        let (spec, files) = described(&pull)?;
        Ok(Self { pull, offer, variant, why, spec, files, room_bytes })
    }

    /// What to type for it.
    pub(crate) fn name(&self) -> String {
        self.offer.name_of(self.variant)
    }

    /// How it would run here, or why it would not.
    pub(crate) fn decision(&self, asked: &Asked) -> Result<Result<Decision, String>> {
        let runtime = Runtime::start(Seam::Registered)?;
        let path = &self.files.paths[0];
        let known = Known::on_this_machine(&runtime, path, self.spec.clone(), self.files.clone());
        Ok(known.decide(asked).map_err(|error| crate::terminal::in_words(&error)))
    }

    /// Brings what is not here, with a bar on a terminal and two lines elsewhere.
    pub(crate) fn fetch(&self, quiet: bool) -> Result<Fetched> {
        let (total, here) = (self.pull.total_bytes(), self.pull.bytes_here());
        self.pull.check_room()?;
        let to_come = total - here;
        if !quiet && to_come > 0 {
            let files = match self.pull.files.len() {
                1 => "one file".to_owned(),
                files => format!("{files} files"),
            };
            let folder = self.pull.folder().display();
            note(&format!("fetching {} in {files} into {folder}", format_bytes(to_come)));
        }
        let (bar, began) = (Bar::new(total, quiet), Instant::now());
        let path = self.pull.fetch(&bar);
        bar.finish();
        let (path, took_s) = (path?, began.elapsed().as_secs_f64());
        if !quiet {
            note(&finished(&self.pull, bar.came_bytes(), took_s));
        }
        Ok(Fetched { path, bytes: bar.came_bytes(), took_s })
    }
}

/// A model that is here now.
pub(crate) struct Fetched {
    pub(crate) path: PathBuf,
    /// Bytes that came over the network.
    pub(crate) bytes: u64,
    pub(crate) took_s: f64,
}

/// The variant the name means; where it means all, the one that suits this machine.
fn chosen(offer: &Offer, room_bytes: Option<u64>) -> Result<(usize, Option<String>)> {
    if let [only] = offer.candidates[..] {
        return Ok((only, None));
    }
    let whole = |index: &&usize| offer.variants[**index].is_whole();
    let candidates: Vec<usize> = offer.candidates.iter().filter(whole).copied().collect();
    let offered: Vec<Offered<'_>> =
        candidates.iter().map(|index| as_offered(&offer.variants[*index])).collect();
    let choice = choose(&offered, room_bytes);
    let choice = choice.with_context(|| format!("{offer}: no model there is whole"))?;
    Ok((candidates[choice.index], Some(choice.why)))
}

fn as_offered(variant: &Variant) -> Offered<'_> {
    Offered { name: &variant.label, bytes: variant.bytes }
}

/// The model by its headers: from its files where all are here, else over the network.
fn described(pull: &Pull<'_>) -> Result<(ModelSpec, ModelFiles)> {
    if pull.bytes_here() == pull.total_bytes() {
        return Ok(ModelSpec::open(&pull.fetch(&Silent)?)?);
    }
    let waiting = bar::headers(pull.files.len());
    let headers = pull.headers();
    waiting.finish_and_clear();
    let files = ModelFiles::of_headers(pull.paths(), headers?)?;
    let spec = ModelSpec::from_headers(&files.headers);
    let spec = spec.with_context(|| format!("{} cannot be used", pull.files[0].path))?;
    Ok((spec, files))
}

fn finished(pull: &Pull<'_>, came: u64, took_s: f64) -> String {
    let checked = match pull.files.iter().all(|file| file.sha256.is_some()) {
        true => "every checksum is right",
        false => "of the right length; no checksum is known (--sha256 takes one)",
    };
    if came == 0 {
        return "everything is here already".to_owned();
    }
    let rate = format_bytes((came as f64 / took_s.max(1e-3)) as u64);
    format!("fetched {} in {took_s:.1} s ({rate}/s); {checked}", format_bytes(came))
}
