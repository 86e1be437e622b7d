//! Three machines and three models as tables of 80 columns: prefill, decode, and decode of recorded
//! traces. Lays out; every number comes from `motley_reproduce::machines`.

use crate::page::{align_right, table};
use comfy_table::presets;
use motley_reproduce::machines::{Row, SHOWN_PROMPT, Speeds, rate, regime_name};

/// The page, empty without rows.
pub(super) fn render(rows: &[Row], recorded: &[Row], width: u16) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let prompt = format!("Prefill of {SHOWN_PROMPT} tokens, tokens per second");
    let decode = "Decode, tokens per second";
    let mut text = titled(&prompt, &phase(rows, width, Row::shown_prompt));
    text += &titled(decode, &phase(rows, width, |row| Some(&row.decode)));
    let shared: Vec<Row> = recorded.iter().filter(|row| row.is_shared()).cloned().collect();
    if !shared.is_empty() {
        text +=
            &titled("Decode of the recorded traces", &phase(&shared, width, |r| Some(&r.decode)));
    }
    text += " split: llama.cpp, whole layers; pinned: kTransformers, most used experts.\n";
    text += " gain: ours over pinned; bound: what is busy longest in ours.\n";
    text += " Predicted from descriptions of machines, not measured.\n";
    text
}

fn titled(title: &str, table: &str) -> String {
    format!(" {title}\n{table}\n")
}

fn phase(rows: &[Row], width: u16, of: impl Fn(&Row) -> Option<&Speeds>) -> String {
    let mut found = table(width, presets::UTF8_FULL_CONDENSED);
    found.set_header(["Model", "Experts", "split", "pinned", "ours", "gain", "bound"]);
    let mut machine = "";
    for row in rows {
        let Some(speeds) = of(row) else { continue };
        if row.machine != machine {
            machine = &row.machine;
            found.add_row([machine]);
        }
        found.add_row([
            format!("  {}", row.model.split(' ').next().unwrap_or_default()),
            regime_name(row.regime).to_owned(),
            rate(speeds.static_split),
            speeds.pinned.map_or("–".into(), rate),
            rate(speeds.ours),
            speeds.gain().map_or("–".into(), |gain| format!("{gain:.2}")),
            speeds.bound_by.name().to_owned(),
        ]);
    }
    align_right(&mut found, &[2, 3, 4, 5]);
    found.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_machine::Regime;
    use motley_reproduce::machines::Busiest;

    fn row(model: &'static str, regime: Regime, pinned: Option<f64>) -> Row {
        let speeds = |tokens| Speeds {
            tokens,
            static_split: 10928.2,
            pinned,
            ours: 12021.0,
            parts: 12021.0,
            all_near: 20000.0,
            bound_by: Busiest::Pcie,
            prefetch: "none",
            hit_rate: 0.5,
            pinned_hit_rate: pinned.map(|_| 0.4),
        };
        Row {
            machine: "workstation-2gpu".into(),
            model,
            regime,
            held: 0.3,
            prefill: vec![speeds(SHOWN_PROMPT)],
            decode: speeds(1),
            lanes: None,
        }
    }

    #[test]
    fn the_page_fits_eighty_columns_and_says_what_cannot_run() {
        let rows = [
            row("DeepSeek-V2-Lite Q4_K_M", Regime::OneMemory, Some(10928.2)),
            row("gpt-oss-120b MXFP4", Regime::BeyondRam, None),
        ];
        let page = render(&rows, &[row("gpt-oss-120b MXFP4", Regime::Hybrid, Some(10928.2))], 80);
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        assert!(
            page.contains("DeepSeek-V2-Lite") && page.contains("all on the GPU"),
            "one line each: {page}"
        );
        assert!(page.contains("1.10") && page.contains("beyond RAM") && page.contains('–'));
        assert!(page.contains("recorded traces") && page.contains("not measured"));
        assert_eq!(render(&[], &[], 80), "");
    }
}
