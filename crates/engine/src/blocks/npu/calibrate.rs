//! A profile from text: what a model's routers chose while reading it (N1).

use super::shape::even_profile;
use crate::blocks::routing::{RoutedBlock, RoutingWatcher};
use crate::engine::Engine;
use crate::eval::EvalError;
use crate::session::SessionOptions;
use motley_profile::Profile;
use std::sync::{Arc, Mutex};

/// Reads the first `tokens` of `text` in chunks of `chunk_tokens`, each by itself, and
/// counts.
pub fn profile_of(
    engine: &Engine,
    text: &str,
    tokens: usize,
    chunk_tokens: u32,
) -> Result<Profile, EvalError> {
    let profile = Arc::new(Mutex::new(even_profile(engine.spec())));
    let counter = Box::new(Counter(Arc::clone(&profile)));
    let options = SessionOptions {
        context_tokens: chunk_tokens,
        chunk_tokens,
        scores: true,
        ..Default::default()
    };
    let mut session = engine.watched_session(&options, counter)?;
    let mut read = engine.tokenize_plain(text)?;
    read.truncate(tokens);
    for chunk in read.chunks(chunk_tokens.max(1) as usize) {
        session.clear();
        // Every token's logits are asked for: otherwise the last layer routes one token only.
        session.score(chunk, &mut |_, _| {})?;
    }
    drop(session);
    let mut profile = profile.lock().expect("no panic holds this lock").clone();
    profile.header.origin.prefill_tokens = read.len() as u64;
    Ok(profile)
}

struct Counter(Arc<Mutex<Profile>>);

impl RoutingWatcher for Counter {
    fn on_routed(&mut self, routed: &RoutedBlock) {
        let mut profile = self.0.lock().expect("no panic holds this lock");
        let Some(layer) = profile.layers.get_mut(routed.layer as usize) else { return };
        for &expert in &routed.experts {
            if let Some(count) = layer.prefill.get_mut(expert as usize) {
                *count += 1;
            }
        }
    }
}
