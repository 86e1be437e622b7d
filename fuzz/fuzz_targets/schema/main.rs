//! Accepted implies enforced: a schema is refused, or every answer that is drawn within it satisfies
//! it by an independent validator (`jsonschema`). Judged by the code the engine's tests are judged by.
//!
//! A text that begins with `{` is a schema, up to the first NUL byte; what follows draws the answer.
//! Anything else are choices a schema is made of, and then those that draw.
#![no_main]

mod generate;

#[path = "../../../crates/engine/tests/support/enforced.rs"]
#[allow(dead_code, reason = "the tests look at more of a verdict than whether it is broken")]
mod enforced;

use arbitrary::Unstructured;
use enforced::{Verdict, verdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if !bytes.starts_with(b"{") {
        let mut choices = Unstructured::new(bytes);
        let Ok(schema) = generate::schema(&mut choices) else { return };
        return judge(&schema.to_string(), choices.take_rest());
    }
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let Some(Ok(schema)) = parts.next().map(std::str::from_utf8) else { return };
    judge(schema, parts.next().unwrap_or_default());
});

fn judge(schema: &str, randomness: &[u8]) {
    if let Some(Verdict::Broken { answer, why }) = verdict(schema, randomness) {
        panic!("accepted and not enforced: {schema}\nanswer: {answer}\n{why}");
    }
}
