//! A conversation with a loaded model: turns, the cache of what was computed, one answer at a time.
//! Reads no keyboard.

use super::interrupt::Interrupt;
use super::screen::Screen;
use anyhow::Result;
use motley_engine::text::output::{OutputFormat, Parsed, Parser, Said};
use motley_engine::{Conversation, Engine, Finish, Generation, Session, TextStream};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

/// A conversation.
pub(super) struct Talk<'a> {
    pub(super) engine: &'a Engine,
    pub(super) session: Session,
    pub(super) generation: Generation,
    pub(super) screen: Screen,
    interrupt: Interrupt,
    format: OutputFormat,
    /// Turns so far, as templates take them.
    pub(super) messages: Vec<Value>,
    /// Further variables of the template.
    extra: Map<String, Value>,
    /// Tokens that the session's cache holds.
    cached: Vec<i32>,
}

/// What the model said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) thought: String,
    pub(super) tokens: Vec<i32>,
    pub(super) prompt_tokens: usize,
    pub(super) finish: Finish,
}

/// How a conversation is held.
pub(super) struct Manners<'a> {
    pub(super) system: Option<&'a str>,
    pub(super) think: bool,
    pub(super) screen: Screen,
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        session: Session,
        generation: Generation,
        manners: &Manners<'_>,
    ) -> Result<Self> {
        let interrupt = Interrupt::listen(session.cancel())?;
        let system = manners.system.map(|text| json!({ "role": "system", "content": text }));
        // The name most templates have for it (Qwen, GLM, DeepSeek, …), and gpt-oss's, which can
        // only think less.
        let quiet = [("enable_thinking", false.into()), ("reasoning_effort", "low".into())];
        let quiet = quiet.into_iter().filter(|_| !manners.think);
        let extra = quiet.map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self {
            format: engine.output_format().without_calls(),
            screen: manners.screen,
            messages: system.into_iter().collect(),
            extra,
            cached: Vec::new(),
            engine,
            session,
            generation,
            interrupt,
        })
    }

    /// Asks by the model's template. A question that cannot be asked is not part of the
    /// conversation.
    pub(super) fn ask(&mut self, question: &str) -> Result<Answer> {
        self.messages.push(json!({ "role": "user", "content": question }));
        let asked = self.answer_to_all();
        match &asked {
            Ok(answer) => self.messages.push(turn(answer)),
            Err(_) => drop(self.messages.pop()),
        }
        asked
    }

    /// Continues a text as it is.
    pub(super) fn continue_text(&mut self, text: &str) -> Result<Answer> {
        let tokens = self.engine.tokenize(text)?;
        self.answer(&tokens, OutputFormat::PLAIN)
    }

    /// Forgets all turns but what the model was told before them.
    pub(super) fn clear(&mut self) {
        self.messages.retain(|message| message["role"] == "system");
    }

    /// The last answer's thought.
    pub(super) fn last_thought(&self) -> Option<&str> {
        self.messages.last()?.get("reasoning_content")?.as_str()
    }

    fn answer_to_all(&mut self) -> Result<Answer> {
        let conversation = Conversation {
            messages: self.messages.clone(),
            tools: Vec::new(),
            extra: self.extra.clone(),
        };
        let tokens = self.engine.conversation_tokens(&conversation, None)?;
        let format = self.format.after(&self.engine.end_of(&tokens));
        self.answer(&tokens, format)
    }

    fn answer(&mut self, prompt: &[i32], format: OutputFormat) -> Result<Answer> {
        let kept = self.reuse(prompt);
        let mut answer = Answer {
            text: String::new(),
            thought: String::new(),
            tokens: Vec::new(),
            prompt_tokens: prompt.len(),
            finish: Finish::Stopped,
        };
        let ended = self.generate(&prompt[kept..], format, &mut answer);
        self.session.energy.rest();
        self.cached = [prompt, &answer.tokens].concat();
        self.cached.truncate(self.session.len() as usize);
        ended.map(|()| answer)
    }

    /// How many tokens of `prompt` the cache holds already; at least one is computed, for its logits.
    fn reuse(&mut self, prompt: &[i32]) -> usize {
        let common = self.cached.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let kept = common.min(prompt.len().saturating_sub(1));
        if self.session.truncate(kept as u32) {
            return kept;
        }
        self.session.clear();
        0
    }

    /// Generates into `answer` and shows it; Ctrl-C ends it wherever it is.
    fn generate(
        &mut self,
        prompt: &[i32],
        format: OutputFormat,
        answer: &mut Answer,
    ) -> Result<()> {
        let Self { engine, session, generation, interrupt, screen, .. } = self;
        let mut stream = TextStream::default();
        let mut parser = Parser::new(format);
        let mut page = screen.begin();
        let mut shown = Ok(());
        interrupt.begin();
        let ended = session.generate(prompt, generation, &mut |token| {
            let bytes = match format.control_tokens() {
                true => engine.token_bytes_with_control(token),
                false => engine.token_bytes(token),
            };
            answer.tokens.push(token);
            let parsed = said(parser.push(&stream.push(&bytes)));
            shown = page.show(&parsed);
            answer.add(parsed);
            match shown.is_err() || interrupt.is_pressed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        shown?;
        answer.finish = match ended {
            Err(error) if error.is_cancelled() => Finish::Stopped,
            ended => ended?,
        };
        for parsed in [parser.push(&stream.finish()), parser.finish()].map(said) {
            page.show(&parsed)?;
            answer.add(parsed);
        }
        Ok(page.end()?)
    }
}

impl Answer {
    fn add(&mut self, parsed: Parsed) {
        self.text.push_str(&parsed.text);
        self.thought.push_str(&parsed.thought);
    }
}

/// Calls of functions that nobody offered are part of the text.
fn said(pieces: Vec<Said>) -> Parsed {
    let mut parsed: Parsed = pieces.into_iter().collect();
    for call in std::mem::take(&mut parsed.calls) {
        parsed.text.push_str(&format!("{}({})", call.name, call.arguments));
    }
    parsed
}

fn turn(answer: &Answer) -> Value {
    let mut turn = json!({ "role": "assistant", "content": answer.text });
    if !answer.thought.is_empty() {
        turn["reasoning_content"] = answer.thought.as_str().into();
    }
    turn
}
