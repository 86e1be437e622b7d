//! Between text and tokens: the chat template, the sampler, text as it arrives.
//!
//! * `tokens`: what an engine does with text.
//! * `texts`: texts that become vectors or scores.
//! * [`chat`]: the model's own chat template; `literal`: what clients say stays text.
//! * `template`: what a template expects of Python; `checked`: it sent through checks;
//!   `operations`: the checks; `budget`: what it may cost.
//! * [`constraint`]: what an answer may look like, from a JSON schema.
//! * [`sampling`]: from settings to llama.cpp's sampler chain; one token, within a constraint.
//! * [`output`]: what a model wrote, as text, thoughts and function calls.
//! * [`stream`]: tokens to text as they arrive.

mod budget;
pub mod chat;
mod checked;
pub mod constraint;
mod literal;
mod operations;
pub mod output;
pub mod sampling;
pub mod stream;
mod template;
mod texts;
mod tokens;
