//! Several streams decoded together, for measuring: each has a prompt of its own, and every step
//! computes one token of each. Chooses the likeliest tokens; admits nobody and shares nothing.

use crate::blocks::step::CurrentStep;
use crate::clock::now;
use crate::engine::Engine;
use crate::session::SessionError;
use motley_ggml::{Batch, BatchToken, Context, ContextOptions, DecodeError, PoolChoice};
use motley_model::KvType;
use motley_plan::budget::SessionShape;
use motley_sched::Phase;
use std::sync::Arc;
use std::time::Duration;

/// What is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamsShape {
    /// Streams.
    pub streams: u32,
    /// Tokens of each prompt.
    pub prompt_tokens: u32,
    /// Tokens each decodes.
    pub steps: u32,
}

/// Time of all steps, prompts excluded.
pub fn decode_streams(engine: &Engine, shape: StreamsShape) -> Result<Duration, SessionError> {
    let each = shape.prompt_tokens + shape.steps;
    let options = ContextOptions {
        context_tokens: (shape.streams * each).next_multiple_of(256),
        kv: KvType::F16,
        windows: false,
        batch_tokens: shape.streams.max(shape.prompt_tokens),
        sequences: shape.streams,
        unified: true,
        precise_attention: false,
        pooling: None,
    };
    let counted = SessionShape {
        context_tokens: options.context_tokens,
        kv: options.kv,
        windows: false,
        chunk_tokens: options.batch_tokens,
        output_tokens: shape.streams,
        states: shape.streams,
    };
    let step = Arc::<CurrentStep>::default();
    let (drive, _) = engine.drive(counted, None, Arc::clone(&step))?;
    let mut context = engine.context(&options, drive)?;
    let mut batch = Batch::with_capacity(options.batch_tokens as usize);
    step.set(Phase::Prefill);
    let mut tokens = Vec::new();
    for stream in 0..shape.streams {
        batch.clear();
        for position in 0..shape.prompt_tokens {
            let last = position + 1 == shape.prompt_tokens;
            let token = made_up(engine, (stream * shape.prompt_tokens + position) as usize);
            batch.push(row(token, position, stream, last));
        }
        context.decode(&batch, PoolChoice::Prefill).map_err(SessionError::from)?;
        tokens.push(likeliest_of(&context, shape.prompt_tokens as usize - 1));
    }
    step.set(Phase::Decode);
    let begun = now();
    for done in 0..shape.steps {
        advance(&mut context, &mut batch, &mut tokens, shape.prompt_tokens + done)?;
    }
    Ok(begun.elapsed())
}

/// One token of every stream.
fn advance(
    context: &mut Context,
    batch: &mut Batch,
    tokens: &mut [i32],
    position: u32,
) -> Result<(), DecodeError> {
    batch.clear();
    for (stream, &token) in tokens.iter().enumerate() {
        batch.push(row(token, position, stream as u32, true));
    }
    context.decode(batch, PoolChoice::Decode)?;
    for (stream, token) in tokens.iter_mut().enumerate() {
        *token = likeliest_of(context, stream);
    }
    Ok(())
}

fn row(token: i32, position: u32, stream: u32, logits: bool) -> BatchToken {
    BatchToken { token, position: position as i32, sequence: stream as i32, logits }
}

/// Token `index` of a prompt that visits the vocabulary in large strides.
pub fn made_up(engine: &Engine, index: usize) -> i32 {
    ((index * 7919 + 13) % engine.vocab_size()) as i32
}

/// The token with the largest logit; 0 of none.
pub fn likeliest(logits: &[f32]) -> i32 {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(token, _)| token as i32)
}

fn likeliest_of(context: &Context, index: usize) -> i32 {
    likeliest(context.logits(index).unwrap_or(&[]))
}
