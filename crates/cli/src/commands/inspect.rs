//! `motley inspect MODEL [--json]`: what a model is, in a table a person likes to read.
//!
//! Renders a `Summary` of the model crate; knows no GGUF and loads no weights.

use crate::terminal::{print_json, print_page};
use std::path::Path;

use crate::page::{Fact, facts, file_name, printable, table, width_of};
use anyhow::Context;
use comfy_table::{CellAlignment, presets};
use motley_engine::SessionOptions;
use motley_model::{
    Gating, KvType, ModelFiles, ModelSpec, Router, Summary, TypeShare, format_bytes,
};
use motley_plan::budget::{Budget, SessionShape};
use serde::Serialize;

/// Prints the model at `path`: as JSON, or as a table of at most `width` columns. Memory is
/// given for `context_tokens`, or fewer if the model was trained for fewer.
pub(crate) fn run(
    path: &Path,
    json: bool,
    context_tokens: u32,
    width: Option<u16>,
) -> anyhow::Result<()> {
    let (spec, files) = ModelSpec::open(path)?;
    let inspected = Inspected::of(&spec, &files, context_tokens);
    match json {
        true => print_json(&serde_json::to_string_pretty(&inspected).context("cannot write JSON")?),
        false => {
            let model = path.display().to_string();
            print_page(&inspected.page(&model, width_of(width)))
        }
    }
}

/// What is known of a model from its headers; as it is printed with `--json`.
#[derive(Serialize)]
pub(crate) struct Inspected {
    #[serde(flatten)]
    summary: Summary,
    memory: Memory,
}

impl Inspected {
    /// With memory for `context_tokens`.
    pub(crate) fn of(spec: &ModelSpec, files: &ModelFiles, context_tokens: u32) -> Self {
        let memory = Memory::of(spec, context_tokens);
        Self { summary: Summary::new(spec, files), memory }
    }

    /// For people, with `model` as they would type it.
    pub(crate) fn page(&self, model: &str, width: u16) -> String {
        render(&self.summary, self.memory, model, width)
    }
}

/// Between which budgets `--memory` makes sense (M3).
#[derive(Clone, Copy, Serialize)]
struct Memory {
    context_tokens: u32,
    smallest_bytes: u64,
    largest_sensible_bytes: u64,
}

impl Memory {
    fn of(spec: &ModelSpec, context_tokens: u32) -> Self {
        let trained = u32::try_from(spec.shape.context_tokens).unwrap_or(u32::MAX);
        let context_tokens = context_tokens.min(trained);
        let chunk_tokens = SessionOptions::default().chunk_tokens;
        let budget = Budget::of(
            spec,
            SessionShape {
                context_tokens,
                kv: KvType::F16,
                windows: true,
                chunk_tokens,
                output_tokens: 1,
                states: 1,
            },
        );
        Self {
            context_tokens,
            smallest_bytes: budget.smallest_bytes(),
            largest_sensible_bytes: budget.largest_sensible_bytes(),
        }
    }
}

/// The whole page: title, shape, sizes, needs, hint.
fn render(summary: &Summary, memory: Memory, model: &str, width: u16) -> String {
    let mut pages = vec![title(summary, model), facts(&shape_facts(summary), width)];
    if summary.sizes.total_bytes > 0 {
        pages.push(parts(summary, width));
        pages.push(facts(&need_facts(summary, memory), width));
    }
    pages.push(hint(summary, model));
    pages.join("\n\n")
}

fn title(summary: &Summary, model: &str) -> String {
    let fallback = || file_name(Path::new(model));
    let name = summary.name.as_deref().map(printable).filter(|name| !name.is_empty());
    let parameters = match summary.experts {
        0 => format!("{} parameters", count(summary.sizes.parameters)),
        _ => format!(
            "{} parameters, {} active",
            count(summary.sizes.parameters),
            count(summary.sizes.active_parameters)
        ),
    };
    let files = match summary.files.len() {
        1 => "one file".to_owned(),
        parts => format!("{parts} files"),
    };
    let architecture = printable(&summary.architecture);
    format!(
        " {}\n {architecture} · {parameters} · {} in {files}",
        name.unwrap_or_else(fallback),
        format_bytes(summary.files.iter().map(|file| file.len_bytes).sum())
    )
}

fn shape_facts(summary: &Summary) -> Vec<Fact> {
    let mut facts = vec![("Shape", shape(summary)), ("Attention", attention(summary))];
    let Some(router) = &summary.router else {
        facts.push(("Experts", "none: this is a dense model".to_owned()));
        return facts;
    };
    facts.push(("Experts", experts(summary)));
    if let Some(shared) = summary.shared {
        let together = if shared.count == 1 { "" } else { "together " };
        let gate = if shared.gated { ", weighed by a gate" } else { "" };
        let text = format!("{} per layer, {together}{} wide{gate}", shared.count, shared.width);
        facts.push(("Shared experts", text));
    }
    facts.push(("Router", describe_router(router, summary.used)));
    facts
}

fn need_facts(summary: &Summary, memory: Memory) -> Vec<Fact> {
    let sizes = &summary.sizes;
    let context = memory.context_tokens;
    let all = format_bytes(memory.largest_sensible_bytes);
    let memory =
        format!("{} with {context} tokens of context", format_bytes(memory.smallest_bytes));
    let active = format_bytes(sizes.token_active_bytes);
    if summary.experts == 0 {
        return vec![("Read per token", active), ("Smallest memory", memory)];
    }
    let routed = format_bytes(sizes.token_routed_bytes);
    vec![
        ("One expert", range(sizes.expert_bytes_min, sizes.expert_bytes_max)),
        ("Read per token", format!("{active}, of which experts {routed}")),
        ("Smallest memory", memory),
        ("Largest sensible", format!("{all}: every expert stays")),
    ]
}

fn shape(summary: &Summary) -> String {
    let shape = &summary.shape;
    let vocabulary = shape.vocabulary.map(|v| format!(", vocabulary {v}")).unwrap_or_default();
    let predictors = match shape.predictor_layers {
        0 => String::new(),
        layers => format!(" (and {layers} to predict further tokens)"),
    };
    format!(
        "{} layers{predictors}, hidden {}, context {}{vocabulary}",
        shape.layers, shape.hidden, shape.context_tokens
    )
}

fn attention(summary: &Summary) -> String {
    let attention = &summary.shape.attention;
    let (heads, width) = (attention.heads, attention.key_width);
    let heads = match attention.mla {
        true => format!("{heads} heads, one latent row of {width}"),
        false if attention.kv_heads == heads => format!("{heads} heads of {width}"),
        false => format!("{heads} heads of {width}, {} for KV", attention.kv_heads),
    };
    let layers = match summary.shape.layers - attention.kv_layers {
        0 => String::new(),
        _ => format!(" in {} layers", attention.kv_layers),
    };
    let at_most = if attention.sliding_window.is_some() { "at most " } else { "" };
    let cache = format_bytes(summary.sizes.kv_bytes_per_token);
    format!("{heads}{layers}; cache {at_most}{cache} per token")
}

fn experts(summary: &Summary) -> String {
    let layers = match summary.expert_layers.len() {
        with if with == summary.shape.layers as usize => "in every layer".to_owned(),
        with => format!("in {with} of {} layers", summary.shape.layers),
    };
    format!(
        "{} {layers}, {} per token, each {} wide",
        summary.experts, summary.used, summary.expert_width
    )
}

fn describe_router(router: &Router, used: u32) -> String {
    let mut text = match router.gating {
        Gating::Softmax => format!("softmax, best {used}"),
        Gating::Sigmoid => format!("sigmoid, best {used}"),
        Gating::SoftmaxWeight => format!("best {used}, softmax over these"),
        Gating::SqrtSoftplus => format!("square root of softplus, best {used}"),
        Gating::Unknown => format!("best {used}, by a score the file does not name"),
    };
    if let Some(groups) = router.groups {
        text += &format!(" within {} of {} groups", groups.used, groups.count);
    }
    if router.selection_bias {
        text += ", chosen with a bias";
    }
    if router.logit_bias {
        text += ", logits with a bias";
    }
    if router.normalised {
        text += ", weights normalised";
    }
    if let Some(scale) = router.weights_scale {
        text += format!(", times {scale:.4}").trim_end_matches('0').trim_end_matches('.');
    }
    text
}

/// Where the bytes are: one row per part, only parts that exist.
fn parts(summary: &Summary, width: u16) -> String {
    let (sizes, mix) = (&summary.sizes, &summary.quantisation);
    let rows = [
        ("routed experts", sizes.routed_bytes, types(&mix.routed)),
        ("shared experts", sizes.shared_bytes, types(&mix.shared)),
        ("dense", sizes.dense_bytes, types(&mix.dense)),
        ("predictors", sizes.predictor_bytes, "not used in plain decoding".to_owned()),
        ("total", sizes.total_bytes, String::new()),
    ];
    let mut table = table(width, presets::UTF8_FULL_CONDENSED);
    table.set_header(["Weights", "Size", "Share", "Quantisation"]);
    for (part, size, note) in rows.into_iter().filter(|(_, size, _)| *size > 0) {
        let share = format!("{:.1} %", 100.0 * size as f64 / sizes.total_bytes as f64);
        table.add_row([part.to_owned(), format_bytes(size), share, note]);
    }
    for column in [1, 2] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// `2.5 MiB`, or `2.5 to 2.9 MiB` where a quantiser favours some layers.
fn range(least: u64, most: u64) -> String {
    let (low, high) = (format_bytes(least), format_bytes(most));
    match (low.split_once(' '), high.split_once(' ')) {
        _ if low == high => high,
        (Some((low, unit)), Some((_, other))) if unit == other => format!("{low} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn hint(summary: &Summary, model: &str) -> String {
    if summary.sizes.total_bytes == 0 {
        return " This file holds a vocabulary and no weights; nothing can run.".to_owned();
    }
    let quoted = || format!("{model:?}");
    let model = if model.contains(char::is_whitespace) { quoted() } else { model.to_owned() };
    match summary.experts {
        0 => format!(" No experts to place; it still runs: motley run {model}"),
        _ => format!(" Try it: motley run {model} -p \"Hello\""),
    }
}

/// `q4_K 71 %, q6_K 29 %, a little f32`: the types that matter with their shares of the bytes.
fn types(shares: &[TypeShare]) -> String {
    let total: u64 = shares.iter().map(|share| share.bytes).sum();
    let part = |share: &TypeShare| {
        let percent = (100.0 * share.bytes as f64 / total.max(1) as f64).round() as u64;
        match percent {
            0 => format!("a little {}", share.ty),
            100 => share.ty.to_string(),
            percent => format!("{} {percent} %", share.ty),
        }
    };
    shares.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// `30.5 B` for thirty billion.
fn count(count: u64) -> String {
    const UNITS: [&str; 5] = ["", " K", " M", " B", " T"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { count.to_string() } else { format!("{value:.1}{}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_model::gguf::{GgmlType, GgufHeader, GgufLimits, GgufWriter, Metadata, TensorDesc};

    #[test]
    fn numbers_read_well() {
        assert_eq!((count(999), count(30_532_122_624)), ("999".into(), "30.5 B".into()));
        assert_eq!(range(2 << 20, 3 << 20), "2.0 to 3.0 MiB");
        assert_eq!(range(512, 3 << 20), "512 B to 3.0 MiB");
        assert_eq!(range(2 << 20, 2 << 20), "2.0 MiB");
    }

    #[test]
    fn a_page_fits_its_width_and_tells_the_essentials() {
        let page = page(80);
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        for text in ["Small · model", "8 in every layer, 2 per token", "sigmoid, best 2"] {
            assert!(page.contains(text), "{text} in\n{page}");
        }
        assert!(page.contains("Smallest memory"), "{page}");
    }

    /// The page of a small model with experts of eight.
    fn page(width: u16) -> String {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", "glm4moe");
        metadata.insert("general.name", "Small · model");
        let counts = [
            ("block_count", 1u32),
            ("context_length", 512),
            ("embedding_length", 64),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
            ("expert_count", 8),
            ("expert_used_count", 2),
        ];
        for (key, value) in counts {
            metadata.insert(&format!("glm4moe.{key}"), value);
        }
        let dims = vec![64, 64, 8];
        let tensor = |stem: &str| TensorDesc {
            name: format!("blk.0.ffn_{stem}_exps.weight"),
            dims: dims.clone(),
            ty: GgmlType::Q4_0,
        };
        let tensors = [tensor("gate"), tensor("up"), tensor("down")];
        let mut writer = GgufWriter::new(Vec::new(), &metadata, &tensors).unwrap();
        for tensor in &tensors {
            let len = GgmlType::Q4_0.tensor_bytes(&dims).unwrap();
            writer.tensor(&tensor.name, &vec![0; len as usize]).unwrap();
        }
        let file = std::io::Cursor::new(writer.finish().unwrap());
        let headers = vec![GgufHeader::read(file, &GgufLimits::default()).unwrap()];
        let spec = ModelSpec::from_headers(&headers).unwrap();
        let files = ModelFiles { paths: vec!["small.gguf".into()], opened: Vec::new(), headers };
        let memory = Memory::of(&spec, 4096);
        render(&Summary::new(&spec, &files), memory, "small.gguf", width)
    }
}
