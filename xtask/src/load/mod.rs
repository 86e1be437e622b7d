//! Many streams at once against OpenAI-compatible servers, ours or others: tokens per second
//! over all, time to the first token, and whether any answer differs from the one the same
//! question gets alone.
//!
//! * `ask`: one request over a plain socket.
//! * `round`: so many streams at once, to their end.
//! * `versus`: several servers in turn, round by round.
//! * `tally`: what came of that, as a table and as JSON.

mod ask;
mod round;
mod tally;
mod versus;

pub use ask::{Answer, Target, ask, converse, prompt};
pub use round::{Figures, HEADER, Round, round};
pub use tally::{report, table};
pub use versus::{Contender, Turn, Versus, versus};
