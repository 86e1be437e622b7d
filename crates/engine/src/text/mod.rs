//! Between text and tokens: the chat template, the sampler, text as it arrives.
//!
//! * [`chat`]: the model's own chat template; `template`: what it expects of Python.
//! * [`sampling`]: from settings to llama.cpp's sampler chain.
//! * [`stream`]: tokens to text as they arrive.

pub mod chat;
pub mod sampling;
pub mod stream;
mod template;
