//! The operations of templates that can make much of little, each with a look at what it will make
//! before it does. All others are looked at afterwards ([`super::checked`]).

use super::budget::{Budget, is_namespace, refused, weight};
use super::checked::{ADD, CHECKED, CONCAT, MULTIPLY, STORED};
use minijinja::value::{Kwargs, Rest, ValueOrKwargs};
use minijinja::{Environment, Error, State, Value, context, escape_formatter, filters};
use minijinja_contrib::pycompat::unknown_method_callback;
use std::sync::Arc;

/// Gives `environment` the checked operations, on this budget.
pub(super) fn add(environment: &mut Environment<'static>, budget: &Arc<Budget>) {
    operators(environment, budget);
    checks(environment, budget);
    let mut grow = |name: &'static str, original: Value, bytes: fn(&[Value]) -> Option<u64>| {
        let budget = Arc::clone(budget);
        environment.add_filter(name, move |state: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            grown(&budget, bytes, &args)?;
            original.call(state, &args)
        });
    };
    grow("replace", Value::from_function(filters::replace), replaced);
    grow("join", Value::from_function(filters::join), joined);
    grow("indent", Value::from_function(filters::indent), indented);
    grow("format", Value::from_function(filters::format), formatted);
    grow("batch", Value::from_function(filters::batch), divided);
    grow("slice", Value::from_function(filters::slice), divided);
    environment.remove_filter("pprint");
    environment.remove_global("debug");
    let budget = Arc::clone(budget);
    environment.set_unknown_method_callback(move |state, value, method, args| {
        let all: Vec<Value> = std::iter::once(value).chain(args).cloned().collect();
        let bytes = match method {
            "replace" => replaced,
            "join" => joined_by,
            "format" => formatted,
            _ => plain,
        };
        grown(&budget, bytes, &all)?;
        unknown_method_callback(state, value, method, args)
    });
}

/// `+`, `*` and `~`.
fn operators(environment: &mut Environment<'static>, budget: &Arc<Budget>) {
    let of = Arc::clone(budget);
    environment.add_filter(ADD, move |a: &Value, b: &Value| match (a.as_str(), b.as_str()) {
        (Some(_), Some(_)) => Ok(Value::from(of.text(&[a, b])?)),
        _ if a.as_object().is_some() && b.as_object().is_some() => {
            of.take(weight(a)? + weight(b)?)?;
            evaluate("a + b", a, b)
        }
        _ => evaluate("a + b", a, b),
    });
    let of = Arc::clone(budget);
    environment.add_filter(MULTIPLY, move |a: &Value, b: &Value| {
        let times = |many: &Value, times: &Value| match times.as_usize() {
            Some(times) if !many.is_number() => of.take(bytes(many).saturating_mul(times as u64)),
            _ => Ok(()),
        };
        times(a, b)?;
        times(b, a)?;
        evaluate("a * b", a, b)
    });
    let of = Arc::clone(budget);
    environment.add_filter(CONCAT, move |a: &Value, b: &Value| of.text(&[a, b]).map(Value::from));
}

/// What is made by any other operation, kept in a namespace, or written.
fn checks(environment: &mut Environment<'static>, budget: &Arc<Budget>) {
    let of = Arc::clone(budget);
    environment.add_filter(CHECKED, move |value: Value| of.made(&value).map(|()| value));
    environment.add_filter(STORED, |value: Value| match is_namespace(&value) {
        true => Err(refused("a namespace inside another".into())),
        false => weight(&value).map(|_| value),
    });
    let of = Arc::clone(budget);
    environment.set_formatter(move |out, state, value| {
        match value.as_str() {
            Some(text) => of.take(text.len() as u64)?,
            None => drop(of.text(&[value])?),
        }
        escape_formatter(out, state, value)
    });
}

/// The operator itself.
fn evaluate(operator: &'static str, a: &Value, b: &Value) -> Result<Value, Error> {
    let environment = Environment::empty();
    environment.compile_expression(operator)?.eval(context! { a, b })
}

/// Takes what the operation will make of its arguments, which are no larger than a value may be.
fn grown(budget: &Budget, bytes: fn(&[Value]) -> Option<u64>, args: &[Value]) -> Result<(), Error> {
    for value in args {
        weight(value)?;
    }
    budget.take(bytes(args).unwrap_or(u64::MAX))
}

/// As much as the first argument, again and again.
fn plain(args: &[Value]) -> Option<u64> {
    Some(args.first().map_or(0, bytes))
}

/// A text, what is replaced in it, and by what.
fn replaced(args: &[Value]) -> Option<u64> {
    let [text, old, new, ..] = args else { return Some(0) };
    let most = bytes(text).checked_div(bytes(old)).unwrap_or(bytes(text)) + 1;
    most.checked_mul(bytes(new))?.checked_add(bytes(text))
}

/// Values, and what comes between them.
fn joined(args: &[Value]) -> Option<u64> {
    let between: u64 = args.iter().skip(1).map(bytes).sum();
    let values = args.first()?;
    (values.len().unwrap_or(0) as u64).checked_mul(between)?.checked_add(bytes(values))
}

/// As [`joined`], the other way round.
fn joined_by(args: &[Value]) -> Option<u64> {
    let [between, values] = args else { return Some(0) };
    joined(&[values.clone(), between.clone()])
}

/// A text, and how wide a margin it gets.
fn indented(args: &[Value]) -> Option<u64> {
    let text = args.first()?;
    let lines = text.as_str().map_or(1, |text| text.matches('\n').count() as u64 + 1);
    let margin = args.iter().skip(1).map(|arg| largest(arg).saturating_add(bytes(arg))).max();
    lines.checked_mul(margin.unwrap_or(0).saturating_add(8))?.checked_add(bytes(text))
}

/// A text with places for the other arguments, each as wide as a number in it says.
fn formatted(args: &[Value]) -> Option<u64> {
    let text = args.first()?;
    let format = text.as_str()?;
    let places = format.matches(['%', '{']).count() as u64;
    let numbers = format.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widest = numbers.map(|digits| digits.parse().unwrap_or(u64::MAX)).max().unwrap_or(0);
    // A width may be an argument as well.
    let starred = args.iter().skip(1).map(largest).max().unwrap_or(0);
    let starred = if format.contains('*') || places > 1 { starred } else { 0 };
    let each = args.iter().skip(1).map(bytes).sum::<u64>().checked_add(widest)?;
    places.checked_mul(each.checked_add(starred)?)?.checked_add(bytes(text))
}

/// Values, and into how many lists, or how long ones.
fn divided(args: &[Value]) -> Option<u64> {
    let lists = args.iter().skip(1).map(largest).max().unwrap_or(0);
    lists.checked_mul(64)?.checked_add(bytes(args.first()?))
}

/// The largest number in an argument, or among named ones.
fn largest(arg: &Value) -> u64 {
    if let Ok(named) = Kwargs::try_from(arg.clone()) {
        let numbers = named.args().filter_map(|name| named.peek::<Value>(name).ok());
        return numbers.map(|value| value.as_usize().unwrap_or(0) as u64).max().unwrap_or(0);
    }
    arg.as_usize().unwrap_or(0) as u64
}

/// What a value takes, as text too.
fn bytes(value: &Value) -> u64 {
    match value.as_str() {
        Some(text) => text.len() as u64,
        None => weight(value).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use crate::text::template::render;
    use minijinja::Value;

    /// What `template` makes is too much, and it is refused before it is made.
    fn check_refused(template: &str) {
        let outcome = render(template, Value::from(()));
        let error = outcome.map(|text| text.len()).expect_err(template);
        assert!(format!("{error:#}").contains("it takes"), "{template}: {error:#}");
    }

    fn check(template: &str, expected: &str) {
        assert_eq!(render(template, Value::from(())).expect(template), expected);
    }

    /// `{% set ns.v = … %}`, forty times.
    fn forty_times(begin: &str, step: &str, end: &str) -> String {
        format!(
            "{{% set ns = namespace(v={begin}) %}}{{% for i in range(40) %}}\
             {{% set ns.v = {step} %}}{{% endfor %}}{end}"
        )
    }

    #[test]
    fn doubling_is_refused() {
        let text = "'xxxxxxxxxxxxxxxx'";
        for step in ["ns.v ~ ns.v", "ns.v + ns.v", "ns.v * 2", "2 * ns.v", "[ns.v, ns.v]|join"] {
            check_refused(&forty_times(text, step, "{{ ns.v|length }}"));
        }
        for step in [
            "ns.v|replace('x', 'xx')",
            "ns.v.replace('x', 'xx')",
            "'%s%s'|format(ns.v, ns.v)",
            "'{0}{0}'.format(ns.v)",
            "ns.v.join([ns.v, ns.v])",
            "[ns.v, ns.v]|join(ns.v)",
            "[ns.v, ns.v]|tojson",
        ] {
            check_refused(&forty_times(text, step, "{{ ns.v|length }}"));
        }
        for step in
            ["ns.v + ns.v", "[ns.v, ns.v]", "(ns.v, ns.v)", "{'a': ns.v, 'b': ns.v}", "ns.v * 2"]
        {
            check_refused(&forty_times("['x']", step, "{{ ns.v }}"));
        }
        check_refused(&forty_times("'x'", "dict(a=ns.v, b=ns.v)", "{{ ns.v }}"));
    }

    #[test]
    fn much_at_once_is_refused() {
        for template in [
            "{{ 'x' * 100000000 }}",
            "{{ ('x' * 99999999) ~ ('x' * 99999999) }}",
            "{{ ['x'] * 100000000 }}",
            "{{ '%1000000000s'|format('x') }}",
            "{{ '%*d'|format(1000000000, 1) }}",
            "{{ '{:1000000000}'.format(1) }}",
            "{{ '{:{}}{}'.format(1, 1000000000, 2) }}",
            "{{ 'x\ny'|indent(1000000000) }}",
            "{{ 'x\ny'|indent(width=1000000000) }}",
            "{{ ['x', 'y']|join(d='x' * 8000000) }}",
            "{{ [1]|batch(1000000000, 'x')|list }}",
            "{{ [1]|slice(1000000000, 'x')|list }}",
        ] {
            check_refused(template);
        }
    }

    #[test]
    fn a_little_again_and_again_is_refused() {
        let long = "x".repeat(100_000);
        let hundred = "{% for a in range(10000) %}";
        check_refused(&format!("{hundred}{long}{{% endfor %}}"));
        check_refused(&format!("{{% set x %}}{hundred}{long}{{% endfor %}}{{% endset %}}"));
        check_refused(&format!(
            "{{% macro m() %}}{long}{{% endmacro %}}{hundred}{{% set x = m() %}}{{% endfor %}}"
        ));
        check_refused(&format!(
            "{{% set ns = namespace(l=[]) %}}{hundred}\
             {{% set ns.l = ns.l + ['{long}' ~ a] %}}{{% endfor %}}"
        ));
    }

    /// Each would end the process with an overflow of the stack when shown or dropped.
    #[test]
    fn what_is_deep_is_refused() {
        let many = "{% set ns = namespace(v=1) %}{% for i in range(20000) %}";
        check_refused(&format!("{many}{{% set ns.v = [ns.v] %}}{{% endfor %}}"));
        check_refused(&format!("{many}{{% set ns.v = {{'a': ns.v}} %}}{{% endfor %}}"));
        check_refused(&format!("{many}{{% set ns.v = [ns.v]|batch(1)|list %}}{{% endfor %}}"));
        check_refused("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}");
        check_refused("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}");
        check_refused("{% set ns = namespace() %}{{ dict(a=ns) }}");
        check_refused(&format!(
            "{many}{{% set n = namespace() %}}{{% set n.p = ns.v %}}{{% set ns.v = n %}}{{% endfor %}}"
        ));
        assert!(
            render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Value::from(())).is_err()
        );
    }

    #[test]
    fn operations_do_what_they_do() {
        check(
            "{{ 1 + 2 }} {{ 1.5 + 2 }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ (1,) + (2,) }}",
            "3 3.5 ab [1, 2] (1, 2)",
        );
        check("{{ 2 * 3 }} {{ 'ab' * 2 }} {{ 2 * 'ab' }} {{ [1] * 2 }}", "6 abab abab [1, 1]");
        check("{{ 'a' ~ 1 ~ none ~ [2] }}", "a1None[2]");
        check("{{ 'a-b'|replace('-', '+') }} {{ 'a-b'.replace('-', '') }}", "a+b ab");
        check("{{ [1, 2]|join(', ') }} {{ '-'.join(['a', 'b']) }}", "1, 2 a-b");
        check("{{ 'a\nb'|indent(2) }} {{ '%s %05d'|format('x', 7) }}", "a\n  b x 00007");
        check("{{ 'a\nb'|indent(width=1) }} {{ [1, 2]|join(d='-') }}", "a\n b 1-2");
        check("{{ '{} {x}'.format(1, x=2) }} {{ [1, 2, 3]|batch(2)|list }}", "1 2 [[1, 2], [3]]");
        check(
            "{% for a in [1, [2, [3]]] recursive %}{% if a is iterable %}{{ loop(a) }}{% else %}{{ a }}{% endif %}{% endfor %}",
            "123",
        );
        check("{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}", "2");
        check("{% macro m(a, b=2) %}{{ a + b }}{% endmacro %}{{ m(1) }}{{ m(1, b=3) }}", "34");
        check("{% set x %}a{% endset %}{{ x }}{% filter upper %}b{% endfilter %}", "aB");
        check("{{ 1 if none is none and 'a' in 'abc' and 1 < 2 < 3 else 2 }}", "1");
    }
}
