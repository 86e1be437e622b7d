//! All files of one model: what is here, what is to come, and whether there is room; headers first,
//! then the parts, a few at a time. Which model is the caller's choice.

use crate::cache::{Place, free_bytes, note_source};
use crate::download::{Download, PullError};
use crate::headers::{self, HeaderError};
use crate::http::Client;
use crate::limits::CONNECTIONS;
use crate::offer::{Offer, RemoteFile, Source};
use crate::parallel;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::variants::SelectError;
use motley_model::gguf::GgufHeader;
use std::path::{Path, PathBuf};

/// One model, about to be fetched.
#[derive(Debug)]
pub struct Pull<'a> {
    client: &'a Client,
    settings: &'a Settings,
    source: Source,
    /// Parts in order.
    pub files: Vec<RemoteFile>,
    places: Vec<Place>,
}

impl<'a> Pull<'a> {
    /// Of one variant of an offer.
    pub fn new(
        client: &'a Client,
        settings: &'a Settings,
        offer: &Offer,
        variant: usize,
    ) -> Result<Self, SelectError> {
        let (source, files) = (offer.source.clone(), offer.parts(variant)?);
        let places = files.iter().map(|file| Place::of(settings, &source, file)).collect();
        Ok(Self { client, settings, source, files, places })
    }

    /// The headers of all its files, over the network.
    pub fn headers(&self) -> Result<Vec<GgufHeader>, HeaderError> {
        headers::read(self.client, &self.files)
    }

    /// Where its files will be opened, parts in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.places.iter().map(|place| place.opened().to_owned()).collect()
    }

    /// Bytes of all files.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Bytes that are here, of files that are whole and of those that are not.
    pub fn bytes_here(&self) -> u64 {
        let pairs = self.files.iter().zip(&self.places);
        pairs.map(|(file, place)| place.bytes_here(file.bytes)).sum()
    }

    /// The folder that grows.
    pub fn folder(&self) -> &Path {
        match self.source {
            Source::Hub { .. } => &self.settings.hub_cache,
            Source::Url(_) => &self.settings.url_cache,
        }
    }

    /// Refuses when the disk has too little room for what is to come.
    pub fn check_room(&self) -> Result<(), PullError> {
        let need = self.total_bytes() - self.bytes_here();
        let variable = match self.source {
            Source::Hub { .. } => "HF_HUB_CACHE",
            Source::Url(_) => "MOTLEY_CACHE",
        };
        match free_bytes(self.folder()) {
            Some(free) if free < need => {
                let folder = self.folder().to_owned();
                Err(PullError::NoRoom { folder, need, free, variable })
            }
            _ => Ok(()),
        }
    }

    /// Fetches what is not here; the path by which the model is opened.
    pub fn fetch(&self, progress: &dyn Progress) -> Result<PathBuf, PullError> {
        self.check_room()?;
        let pairs: Vec<(&RemoteFile, &Place)> = self.files.iter().zip(&self.places).collect();
        parallel::each(&pairs, CONNECTIONS, |(file, place), stop| {
            Download { client: self.client, file, place, progress, stop }.run()
        })?;
        let noted = note_source(self.settings, &self.source);
        noted.map_err(|source| PullError::Io { path: self.folder().to_owned(), source })?;
        Ok(self.places[0].opened().to_owned())
    }
}
