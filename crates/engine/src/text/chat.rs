//! The model's own chat template (Jinja, as Hugging Face writes them), rendered
//! with minijinja. Templates come from model files: rendering is bounded and an
//! error is a message, never a panic.

use crate::text::template;
use minijinja::value::Serde;
use minijinja::{Value, context};
use motley_ggml::TokenizeError;
use serde::{Deserialize, Serialize};

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user`, `assistant`, …
    pub role: String,
    pub content: String,
}

impl ChatMessage {
    /// A turn of `role`.
    pub fn new(role: &str, content: &str) -> Self {
        Self { role: role.into(), content: content.into() }
    }
}

/// Why a conversation could not be written out.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The GGUF carries no template.
    #[error("the model has no chat template; give a plain prompt with -p")]
    NoTemplate,
    /// The template failed.
    #[error("the model's chat template failed: {0}")]
    Template(#[from] minijinja::Error),
    /// What it wrote was not tokenized.
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
}

/// A conversation with all a template may look at.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Conversation {
    /// Turns as the API has them: `role`, `content`, `tool_calls`, …
    pub messages: Vec<serde_json::Value>,
    /// Functions the model may call, as the API has them; absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<serde_json::Value>,
    /// Further variables (`enable_thinking`, `reasoning_effort`).
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl From<&[ChatMessage]> for Conversation {
    fn from(messages: &[ChatMessage]) -> Self {
        let turn = |m: &ChatMessage| serde_json::json!({ "role": m.role, "content": m.content });
        Self { messages: messages.iter().map(turn).collect(), ..Self::default() }
    }
}

/// Writes a conversation out with `template`, ready for the assistant's answer. Public because a
/// template is a stranger's program: it can be tried without the model it came with.
pub fn render_chat(
    template: &str,
    conversation: &Conversation,
    begin_text: &str,
    end_text: &str,
) -> Result<String, ChatError> {
    let root = context! {
        add_generation_prompt => true,
        bos_token => begin_text,
        eos_token => end_text,
        ..Value::from(Serde(conversation))
    };
    Ok(template::render(template, root)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHATML: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
        {{ '<|im_start|>system\nBe helpful<|im_end|>\n' }}{% endif %}\
        {{'<|im_start|>' + message['role'] + '\n' + message['content'].strip() + '<|im_end|>' + '\n'}}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    #[test]
    fn chatml_opens_the_assistants_turn() {
        let messages = [ChatMessage::new("user", " Hi ")];
        let text = render_chat(CHATML, &messages[..].into(), "", "").unwrap();
        assert_eq!(
            text,
            "<|im_start|>system\nBe helpful<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
        );
    }

    #[test]
    fn a_template_may_refuse_with_its_own_words() {
        let error = render_chat(
            "{{ raise_exception('roles must alternate') }}",
            &Conversation::default(),
            "",
            "",
        );
        assert!(error.unwrap_err().to_string().contains("roles must alternate"));
    }

    #[test]
    fn tools_and_further_variables_reach_the_template() {
        let conversation = Conversation {
            tools: vec![serde_json::json!({ "function": { "name": "now" } })],
            extra: [("effort".to_owned(), "low".into())].into_iter().collect(),
            ..Conversation::default()
        };
        let template = "{% if tools %}{{ tools[0].function.name }}{% endif %} {{ effort }}";
        assert_eq!(render_chat(template, &conversation, "", "").unwrap(), "now low");
        let without = Conversation { tools: Vec::new(), ..conversation };
        assert_eq!(render_chat(template, &without, "", "").unwrap(), " low");
    }

    #[test]
    fn an_endless_template_runs_out_of_fuel() {
        let template =
            "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
        assert!(matches!(
            render_chat(template, &Conversation::default(), "", ""),
            Err(ChatError::Template(_))
        ));
    }
}
