//! A model's tokens as bytes in a trie, and schemas compiled against them. Built once per model.

use super::accepted::accepted;
use super::error::ConstraintError;
use super::progress::Constraint;
use super::text_form::TextForm;
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory};
use serde_json::Value;
use std::sync::Arc;

/// Bytes of all tokens; the trie has as many nodes at most, and counts them in 24 bits.
const VOCABULARY_BYTES_MAX: usize = (1 << 24) - 1;
/// Longest token that is offered; longer ones are runs of spaces and the like.
const TOKEN_BYTES_MAX: usize = 1 << 10;

/// White space between the parts of a JSON text: as much as people write, so that a model
/// cannot go on with it for ever.
const WHITE_SPACE: &str = r" |\n{1,2}[ \t]{0,20}";
/// Escapes within strings. Without `\u`, so that a name has one spelling only.
const ESCAPES: &str = "nrbtf\\\"";

/// Stack of a compilation: references and patterns nest as deep as a schema is long.
const COMPILER_STACK_BYTES: usize = 64 << 20;

/// Work and memory of one constraint, in the library's units.
const LIMITS: ParserLimits = ParserLimits {
    // Positions of the grammar that are open at once; 8 bytes each, per part of the answer.
    max_items_in_row: 2_000,
    // 20 ms of compiling regular expressions.
    initial_lexer_fuel: 1_000_000,
    // 7 ms per token.
    step_lexer_fuel: 100_000,
    // 2.5 ms per token.
    step_max_items: 50_000,
    // 1 to 2 kB each.
    max_lexer_states: 20_000,
    max_grammar_size: 200_000,
    // It would pass the whole vocabulary through each long pattern before the first token.
    precompute_large_lexemes: false,
    // Errors are shown to clients; the grammar is not.
    verbose_errors: false,
};

/// One token of a model.
pub struct Token {
    /// What it writes; not always whole UTF-8, and nothing for a control token.
    pub bytes: Vec<u8>,
    /// It ends an answer.
    pub ends: bool,
}

/// A model's tokens, arranged for constraints.
pub struct Vocabulary {
    factory: Arc<ParserFactory>,
    /// Tokens that end an answer.
    ends: Arc<[u32]>,
}

impl Vocabulary {
    /// Arranges `tokens`, in the order of their ids.
    pub fn new(tokens: impl Iterator<Item = Token>) -> Result<Self, ConstraintError> {
        let (mut words, mut ends) = (Vec::new(), Vec::new());
        for (id, token) in tokens.enumerate() {
            if token.ends {
                ends.push(id as u32);
            }
            let silent = token.ends || token.bytes.len() > TOKEN_BYTES_MAX;
            words.push(if silent { Vec::new() } else { token.bytes });
        }
        if words.iter().map(Vec::len).sum::<usize>() > VOCABULARY_BYTES_MAX {
            return Err(ConstraintError::Vocabulary);
        }
        let info = TokRxInfo::new(words.len() as u32, INVALID_TOKEN);
        let mut trie = TokTrie::from(&info, &words);
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(&ends);
        }
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = SlicedBiasComputer::json_slices();
        let factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices);
        let mut factory = factory.map_err(|_| ConstraintError::Vocabulary)?;
        *factory.limits_mut() = LIMITS;
        factory.quiet();
        Ok(Self { factory: Arc::new(factory), ends: ends.into() })
    }

    /// A schema at its beginning: every answer that ends by itself satisfies it.
    pub fn constraint(&self, schema: &Value) -> Result<Constraint, ConstraintError> {
        let mut schema = accepted(schema)?;
        if !schema.is_object() {
            return Err(ConstraintError::Schema("it must be a JSON object".to_owned()));
        }
        options().apply_to(&mut schema);
        self.compiled(TopLevelGrammar::from_json_schema(schema), ConstraintError::Schema)
    }

    /// The same for a text that is no JSON.
    pub fn text_constraint(&self, form: TextForm<'_>) -> Result<Constraint, ConstraintError> {
        self.compiled(TopLevelGrammar::from_lark(form.lark()?), ConstraintError::Text)
    }

    /// A grammar at its beginning; what the compiler says of it is told as `refused`.
    fn compiled(
        &self,
        grammar: TopLevelGrammar,
        refused: fn(String) -> ConstraintError,
    ) -> Result<Constraint, ConstraintError> {
        let factory = Arc::clone(&self.factory);
        let compile = move || {
            let mut matcher = Matcher::new(factory.create_parser(grammar));
            // The first mask is computed here: what fails at once is refused.
            let _ = matcher.compute_mask();
            matcher
        };
        let thread = std::thread::Builder::new().stack_size(COMPILER_STACK_BYTES).spawn(compile);
        let thread = thread.map_err(|error| refused(error.to_string()))?;
        let mut matcher = thread.join().map_err(|_| ConstraintError::TooComplex)?;
        if let Some(words) = matcher.get_error() {
            return Err(refusal(&words, refused));
        }
        if let Some(warning) = matcher.grammar_warnings().into_iter().next() {
            return Err(refused(warning));
        }
        Ok(Constraint::new(matcher, Arc::clone(&self.ends)))
    }
}

fn options() -> JsonCompileOptions {
    JsonCompileOptions {
        whitespace_pattern: Some(WHITE_SPACE.to_owned()),
        json_allowed_escapes: Some(ESCAPES.to_owned()),
        lenient: false,
        coerce_one_of: false,
        ..JsonCompileOptions::default()
    }
}

/// The compiler's words, short and on one line.
fn refusal(words: &str, refused: fn(String) -> ConstraintError) -> ConstraintError {
    const WORDS_MAX: usize = 200;
    let first = words.lines().next().unwrap_or_default();
    let of_limits =
        ["too large", "fuel", "exceeded", "limit", "too complex", "too many", "Unable to"];
    if of_limits.iter().any(|limit| first.contains(limit)) {
        return ConstraintError::TooComplex;
    }
    // It asserts what its own parser lets through.
    if first.starts_with("panic") {
        return refused("the compiler does not take it".to_owned());
    }
    refused(first.chars().take(WORDS_MAX).collect())
}
