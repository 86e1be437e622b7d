//! Between text and tokens: the chat template, the sampler, text as it arrives.
//!
//! * `tokens`: what an engine does with text.
//! * [`chat`]: the model's own chat template; `literal`: what clients say stays text.
//! * `template`: what a template expects of Python; `checked`: it sent through checks;
//!   `operations`: the checks; `budget`: what it may cost.
//! * [`sampling`]: from settings to llama.cpp's sampler chain.
//! * [`stream`]: tokens to text as they arrive.

mod budget;
pub mod chat;
mod checked;
mod literal;
mod operations;
pub mod sampling;
pub mod stream;
mod template;
mod tokens;
