//! What chat templates expect of Python's Jinja and of Hugging Face's own additions, put on top
//! of minijinja. Knows nothing of conversations.

use super::budget::{Bounded, Budget};
use super::checked::{Compiled, compile};
use super::operations;
use crate::clock::now;
use jiff::Zoned;
use minijinja::machinery::{eval, make_string_output};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};
use std::sync::Arc;

/// Instructions a template may spend, checks included; the longest real ones stay far below.
const RENDER_FUEL: u64 = 10_000_000;
/// Bytes of a template; the longest real ones have a quarter.
const TEMPLATE_BYTES_MAX: usize = 128 << 10;
/// Stack for one byte of a template: a sign or tag may go one call deeper in parser, compiler and
/// drop. The tests fill a template with each kind.
const STACK_PER_BYTE: usize = 4 << 10;
/// Stack for all else.
const STACK_BASE_BYTES: usize = 8 << 20;
/// Widest indentation a template may ask for.
const INDENT_MAX: usize = 16;

/// Renders `template` with `root` for its variables, within bounds: instructions, bytes and time.
/// On a thread of its own, with a stack for the longest chain of operators a template of this
/// length can hold: compilers of such recurse.
pub(crate) fn render(template: &str, root: Value) -> Result<String, Error> {
    if template.len() > TEMPLATE_BYTES_MAX {
        let words = format!("it has {} bytes, the most is {TEMPLATE_BYTES_MAX}", template.len());
        return Err(Error::new(ErrorKind::InvalidOperation, words));
    }
    let stack_bytes = STACK_BASE_BYTES + template.len() * STACK_PER_BYTE;
    std::thread::scope(|threads| {
        let named = std::thread::Builder::new().name("template".into()).stack_size(stack_bytes);
        let thread =
            named.spawn_scoped(threads, || render_here(template, root)).map_err(|error| {
                let words = format!("no thread with a stack of {stack_bytes} bytes: {error}");
                Error::new(ErrorKind::InvalidOperation, words)
            })?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn render_here(template: &str, root: Value) -> Result<String, Error> {
    let source = source(template);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    let Compiled { instructions, blocks } = compile("chat", &source, syntax)?;
    let environment = environment(&Arc::new(Budget::new(now())));
    let mut text = String::new();
    let mut output = make_string_output(&mut text);
    eval(&environment, &instructions, root, &blocks, &mut output, AutoEscape::None)?;
    Ok(text)
}

/// An environment with everything templates of common models use.
fn environment(budget: &Arc<Budget>) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(RENDER_FUEL));
    operations::add(&mut environment, budget);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", |format: &str| written(&Zoned::now(), format));
    environment.add_filter("tojson", to_json);
    environment
}

/// The template with tags minijinja has not as ones it has: `generation` only marks what an
/// assistant said, for training.
fn source(template: &str) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(begin) = rest.find("{%") {
        let inside = begin + 2;
        let Some(end) = rest[inside..].find("%}").map(|end| inside + end) else { break };
        let tag = &rest[begin..end];
        text.push_str(&rest[..begin]);
        match rest[inside..end].trim_matches(['-', '+', ' ', '\n']) {
            "generation" => text.push_str(&tag.replace("generation", "if true")),
            "endgeneration" => text.push_str(&tag.replace("endgeneration", "endif")),
            _ => text.push_str(tag),
        }
        rest = &rest[end..];
    }
    text + rest
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// A time as Python's `strftime` writes it.
fn written(time: &Zoned, format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, time)
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {error}")))
}

/// JSON as Python's `json.dumps` writes it, which is what models were trained on: spaces after
/// `,` and `:`, and nothing escaped for HTML.
fn to_json(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    for known in ["ensure_ascii", "separators", "sort_keys"] {
        let _: Option<Value> = options.get(known)?;
    }
    options.assert_all_used()?;
    let mut json = Bounded::default();
    let spaces = [b' '; INDENT_MAX];
    let done = match indent {
        Some(indent) => {
            let pretty = PrettyFormatter::with_indent(&spaces[..indent.min(INDENT_MAX)]);
            value.serialize(&mut Serializer::with_formatter(&mut json, pretty))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut json, OneLine)),
    };
    done.map_err(|error| Error::new(ErrorKind::BadSerialization, format!("tojson: {error}")))?;
    Ok(Value::from_safe_string(json.0))
}

/// `{"a": 1, "b": [2, 3]}`.
struct OneLine;

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        to.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        to.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::context;

    fn check(template: &str, expected: &str) {
        let messages = serde_json::json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": "<think>\nhm\n</think>\n\nHello" },
            { "role": "user", "content": "Weather?" },
        ]);
        let tool = serde_json::json!({ "name": "now", "parameters": { "a": ["x", "<"] } });
        let context = context! {
            messages => Value::from(minijinja::value::Serde(&messages)),
            tool => Value::from(minijinja::value::Serde(&tool)),
        };
        let rendered = render(template, context);
        assert_eq!(rendered.expect("it renders"), expected, "{template}");
    }

    #[test]
    fn a_tag_of_nothing_is_an_error() {
        for template in ["{%}", "{%%}", "a{%}b%}"] {
            assert!(render(template, context! {}).is_err(), "{template}");
        }
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        check("{{ tool | tojson }}", r#"{"name": "now", "parameters": {"a": ["x", "<"]}}"#);
        check("{{ 'é' | tojson(ensure_ascii=False) }}", "\"é\"");
        check("{{ [1, 2] | tojson(indent=4) }}", "[\n    1,\n    2\n]");
    }

    #[test]
    fn times_are_written_as_python_writes_them() {
        let civil = jiff::civil::date(2024, 7, 26).at(8, 5, 9, 0);
        let time = civil.to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(written(&time, "%d %b %Y").unwrap(), "26 Jul 2024");
        assert_eq!(written(&time, "%Y-%m-%d %H:%M").unwrap(), "2024-07-26 08:05");
        assert!(written(&time, "%!").is_err());
    }

    /// Llama 3.1 asks whether there is a clock; gpt-oss and Mistral take it for granted.
    #[test]
    fn a_template_may_ask_for_the_date() {
        check("{{ strftime_now('%Y')|length }}", "4");
        check(
            "{%- if strftime_now is defined %}{%- set date = strftime_now('%d %b %Y') %}\
             {%- else %}{%- set date = '26 Jul 2024' %}{%- endif %}{{ date|length }}",
            "11",
        );
    }

    /// Qwen 3: backwards through the messages, strings cut at marks.
    #[test]
    fn qwen3() {
        check(
            "{%- set ns = namespace(last=messages|length - 1) %}\
             {%- for message in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}\
             {%- if message.role == 'assistant' and message.content is string and not \
             (message.content.startswith('<tool_response>')) %}{%- set ns.last = index %}{%- endif %}\
             {%- endfor %}{{ ns.last }}:{% set content = messages[2].content %}\
             {{- content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}|\
             {{- content.split('</think>')[-1].lstrip('\\n') }}",
            "2:hm|Hello",
        );
    }

    /// Mistral: slices, `selectattr`, items of a mapping with a condition.
    #[test]
    fn mistral() {
        check(
            "{%- set loop_messages = messages[1:] %}\
             {%- set users = loop_messages | selectattr('role', 'equalto', 'user') | list %}\
             {{- users[-1].content }} {{ loop_messages|length }} \
             {%- for key, val in tool.items() if key != 'parameters' %}\
             {{- '\"' + key + '\": \"' + val + '\"' }}{%- if not loop.last %}, {% endif %}{%- endfor %}",
            "Weather? 3\"name\": \"now\"",
        );
    }

    /// gpt-oss: macros with defaults, tests of types.
    #[test]
    fn gpt_oss() {
        check(
            "{%- macro kind(spec, nullable=false) -%}\
             {%- if spec is mapping %}object{%- elif spec is iterable and spec is not string %}\
             {{- spec|join(' | ') }}{%- else %}{{- spec }}{%- endif %}\
             {%- if nullable %} | null{%- endif %}{%- endmacro -%}\
             {{- kind(tool.parameters) }};{{ kind(['a', 'b'], nullable=true) }};{{ kind('c') }}",
            "object;a | b | null;c",
        );
    }

    /// Each would end the process with an overflow of the stack.
    #[test]
    fn chains_as_long_as_a_template_end_no_process() {
        for (begin, link, end) in [
            ("{{ a", "~a", " }}"),
            ("{{ a", "+a", " }}"),
            ("{{ a", "|e", " }}"),
            ("{{ a", ".a", " }}"),
            ("{{ a", "[0]", " }}"),
            ("{{ a", "()", " }}"),
            ("{{ a", " or a", " }}"),
            ("{{ a", " if a else a", " }}"),
            ("{{ a", " is none", " }}"),
            ("{{ ", "not ", "a }}"),
            ("{{ ", "-", "a }}"),
            ("{{ ", "[", " }}"),
            ("{{ ", "(", " }}"),
            ("{{ ", "{1:", " }}"),
            ("", "{%if a%}", ""),
            ("{%if a%}", "{%elif a%}", "{%endif%}"),
            ("", "{%for a in a%}", ""),
        ] {
            // Rendered or refused: what matters is that it returns.
            for links in [1000, (TEMPLATE_BYTES_MAX - begin.len() - end.len()) / link.len()] {
                let template = format!("{begin}{}{end}", link.repeat(links));
                drop(render(&template, Value::from(())));
            }
        }
        assert!(render(&" ".repeat(TEMPLATE_BYTES_MAX + 1), Value::from(())).is_err());
    }

    #[test]
    fn marks_for_training_are_passed_over() {
        check("a {%- generation -%} b {%- endgeneration %} c", "ab c");
        check("{{ '{% generation' }}", "{% generation");
    }
}
