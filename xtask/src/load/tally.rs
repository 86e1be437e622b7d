//! Turns of several servers as a table for people and as JSON: medians of each server at each
//! number of streams, and ratios of the first to the others within the same round.

use super::{Figures, Turn};
use motley_cost::statistics::{median, quantile};
use serde_json::{Value, json};

/// Everything as JSON; `said` is what each server said of itself, in the order of `names`.
pub fn report(turns: &[Turn], names: &[String], said: &[Value]) -> Value {
    let servers: Vec<Value> =
        names.iter().zip(said).map(|(name, said)| json!({ "name": name, "said": said })).collect();
    json!({ "servers": servers, "lines": lines(turns, names), "turns": turns })
}

/// A Markdown table.
pub fn table(turns: &[Turn], names: &[String]) -> String {
    let mut text = String::from(
        "| streams | server | turns | tokens/s | first token p50 / p99 ms | between p50 / p99 ms | \
         first ÷ this (quartiles) | load | others' CPU s |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for line in lines(turns, names) {
        let number = |key: &str| line[key].as_f64().unwrap_or(0.0);
        let ratio = match line["ratio"].as_f64() {
            Some(ratio) => {
                format!("{ratio:.2} ({:.2}–{:.2})", number("ratio_q1"), number("ratio_q3"))
            }
            None => "–".into(),
        };
        text.push_str(&format!(
            "| {} | {} | {} of {} | {:.1} | {:.0} / {:.0} | {:.1} / {:.1} | {ratio} | {:.1} | {:.2} |\n",
            line["streams"],
            line["server"].as_str().unwrap_or_default(),
            line["well"],
            line["turns"],
            number("tokens_per_s"),
            number("ttft_ms_p50"),
            number("ttft_ms_p99"),
            number("between_ms_p50"),
            number("between_ms_p99"),
            number("load_most"),
            number("others_cpu_s_most"),
        ));
    }
    text
}

/// One line per number of streams and server.
fn lines(turns: &[Turn], names: &[String]) -> Vec<Value> {
    let mut streams: Vec<usize> = turns.iter().map(|turn| turn.streams).collect();
    streams.sort_unstable();
    streams.dedup();
    let pairs = streams.iter().flat_map(|&at| names.iter().map(move |name| (at, name)));
    pairs.map(|(streams, name)| line(turns, &names[0], name, streams)).collect()
}

fn line(turns: &[Turn], first: &str, name: &str, streams: usize) -> Value {
    let of = |name: &str| {
        let mine = |turn: &&Turn| turn.streams == streams && turn.server == name;
        turns.iter().filter(mine).collect::<Vec<_>>()
    };
    let mine = of(name);
    let well: Vec<&Figures> = mine.iter().filter_map(|turn| turn.figures.as_ref()).collect();
    let middle = |figure: fn(&Figures) -> f64| {
        median(&well.iter().map(|turn| figure(turn)).collect::<Vec<_>>())
    };
    let ratios = || ratios(&of(first), &mine);
    let ratio = |share| if name == first { None } else { quantile(&ratios(), share) };
    let most = |figure: fn(&Turn) -> f64| mine.iter().map(|turn| figure(turn)).reduce(f64::max);
    json!({
        "streams": streams,
        "server": name,
        "turns": mine.len(),
        "well": well.len(),
        "tokens_per_s": middle(|turn| turn.tokens_per_s),
        "ttft_ms_p50": middle(|turn| turn.ttft_ms_p50),
        "ttft_ms_p99": middle(|turn| turn.ttft_ms_p99),
        "between_ms_p50": middle(|turn| turn.between_ms_p50),
        "between_ms_p99": middle(|turn| turn.between_ms_p99),
        "ratio": ratio(0.5),
        "ratio_q1": ratio(0.25),
        "ratio_q3": ratio(0.75),
        "load_most": most(|turn| turn.load),
        "others_cpu_s_most": most(|turn| turn.others_cpu_s),
    })
}

/// Tokens per second of `first` over those of `other`, round by round.
fn ratios(first: &[&Turn], other: &[&Turn]) -> Vec<f64> {
    let rate = |turn: &Turn| turn.figures.map(|figures| figures.tokens_per_s);
    let pair = |turn: &&Turn| {
        let same = other.iter().find(|other| other.round == turn.round)?;
        Some(rate(turn)? / rate(same)?)
    };
    first.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(server: &str, round: usize, tokens_per_s: Option<f64>) -> Turn {
        let figures = tokens_per_s.map(|tokens_per_s| Figures {
            streams: 4,
            requests: 8,
            tokens: 512,
            seconds: 512.0 / tokens_per_s,
            tokens_per_s,
            ttft_ms_p50: 20.0,
            ttft_ms_p99: 40.0,
            between_ms_p50: 5.0,
            between_ms_p99: 9.0,
            mixed_up: 0,
        });
        let failed = figures.is_none().then(|| "gone".to_owned());
        let server = server.to_owned();
        Turn { server, round, streams: 4, load: 0.5, others_cpu_s: 0.01, figures, failed }
    }

    fn names() -> Vec<String> {
        vec!["ours".into(), "theirs".into()]
    }

    #[test]
    fn ratios_are_of_turns_of_the_same_round() {
        let turns = [
            turn("ours", 0, Some(100.0)),
            turn("theirs", 0, Some(50.0)),
            turn("theirs", 1, Some(50.0)),
            turn("ours", 1, Some(200.0)),
        ];
        let text = table(&turns, &names());
        let expected =
            "| 4 | theirs | 2 of 2 | 50.0 | 20 / 40 | 5.0 / 9.0 | 3.00 (2.50–3.50) | 0.5 | 0.01 |";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("| 4 | ours | 2 of 2 | 150.0 |"), "{text}");
    }

    #[test]
    fn a_failed_turn_counts_only_as_failed() {
        let turns = [turn("ours", 0, Some(100.0)), turn("theirs", 0, None)];
        let report = report(&turns, &names(), &[json!({"url": "x"}), Value::Null]);
        let theirs = &report["lines"][1];
        assert_eq!((&theirs["well"], &theirs["turns"]), (&json!(0), &json!(1)));
        assert_eq!(theirs["ratio"], Value::Null);
        assert_eq!(report["turns"][1]["failed"], "gone");
        assert_eq!(report["servers"][0]["said"]["url"], "x");
    }
}
