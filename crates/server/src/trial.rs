//! A body taken as far as the engine's door, and no further: read, checked, written out by the
//! template, tokenized, its schema compiled. Nothing is queued or computed. For whoever wants to know
//! what a request would become, fuzzers above all; a server does the same through its routes.

use crate::app::App;
use crate::begin::begin;
use crate::body::{check_length, parse};
use crate::error::{ApiError, ErrorBody};
use crate::models::Models;
use crate::models::offered::{LoadedModel, OfferedModels};
use crate::options::ServeOptions;
use crate::request::{
    PreparedRequest, Wanted, prepare_chat, prepare_completion, prepare_infill, prepare_messages,
    prepare_ollama_chat, prepare_ollama_generate, prepare_response,
};
use crate::wire::{
    ChatRequest, CompletionRequest, InfillRequest, MessagesRequest, ResponsesRequest,
};
use motley_engine::SessionError;
use motley_engine::batching::Ask;
use serde::de::DeserializeOwned;

/// What a server would listen with.
pub struct Trial {
    app: App,
}

/// Routes that take a body and generate text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
    /// `/infill`.
    Infill,
    /// `/v1/messages`.
    Messages,
    /// `/v1/responses`.
    Responses,
    /// `/api/chat`.
    OllamaChat,
    /// `/api/generate`.
    OllamaGenerate,
}

impl Route {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Chat,
        Self::Completions,
        Self::Infill,
        Self::Messages,
        Self::Responses,
        Self::OllamaChat,
        Self::OllamaGenerate,
    ];
}

/// What the client would be told instead.
#[derive(Debug)]
pub struct Refusal {
    /// Of HTTP.
    pub status: u16,
    pub body: ErrorBody,
}

impl Trial {
    /// Makes what handlers share, and no socket.
    pub fn start(
        offered: OfferedModels,
        loaded: LoadedModel,
        options: ServeOptions,
    ) -> Result<Self, SessionError> {
        let models = Models::new(offered, options);
        Ok(Self { app: begin(&models, "trial", loaded)? })
    }

    /// Most tokens of a prompt and its answer together.
    pub fn longest(&self) -> u32 {
        self.app.batching.longest()
    }

    /// What the engine would be asked, one for each choice; none where nothing is to be said.
    pub fn asks(&self, route: Route, body: &[u8]) -> Result<Vec<Ask>, Refusal> {
        let prepared = match route {
            Route::Chat => self
                .prepared(body, |app, request: ChatRequest| prepare_chat(app, &request).map(Some)),
            Route::Completions => self.prepared(body, |app, request: CompletionRequest| {
                prepare_completion(app, &request).map(Some)
            }),
            Route::Infill => self.prepared(body, |app, request: InfillRequest| {
                prepare_infill(app, &request).map(Some)
            }),
            Route::Messages => self.prepared(body, |app, request: MessagesRequest| {
                prepare_messages(app, request).map(Some)
            }),
            Route::Responses => self.prepared(body, |app, request: ResponsesRequest| {
                prepare_response(app, request).map(|asked| Some(asked.prepared))
            }),
            Route::OllamaChat => self.prepared(body, prepare_ollama_chat),
            Route::OllamaGenerate => self.prepared(body, prepare_ollama_generate),
        };
        match prepared {
            Ok(prepared) => Ok(prepared.map(|prepared| prepared.asks).unwrap_or_default()),
            Err(error) => Err(Refusal { status: error.status().as_u16(), body: error.body() }),
        }
    }

    fn prepared<R: DeserializeOwned>(
        &self,
        body: &[u8],
        prepare: fn(&App, R) -> Result<Option<PreparedRequest>, ApiError>,
    ) -> Result<Option<PreparedRequest>, ApiError> {
        check_length(body.len(), &self.app.options.limits)?;
        Wanted::of(body, self.app.prompt_values())?;
        prepare(&self.app, parse(body, self.app.prompt_values())?)
    }
}
