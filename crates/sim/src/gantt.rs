//! A stretch of a drive as a picture: one row per unit and one for the link, time to the right.
//! Draws recorded spans; computes nothing but where they go.

use motley_cost::Nanos;
use motley_sched::spans::{Row, RowNames, Span, SpanKind, Spans};
use motley_sched::{Purpose, Unit};
use plotters::prelude::*;

/// Why a picture could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GanttError {
    /// Nothing was recorded in the window.
    #[error("nothing ran between {from} and {to}")]
    Empty { from: Nanos, to: Nanos },
    /// The drawing library refused.
    #[error("the picture could not be drawn: {reason}")]
    Drawing { reason: String },
}

/// What to draw.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    pub title: &'a str,
    /// Beginning of the stretch.
    pub from: Nanos,
    /// End of the stretch.
    pub to: Nanos,
    /// What the rows are called.
    pub rows: RowNames<'a>,
}

const WIDTH_PX: u32 = 1100;
const ROW_PX: u32 = 64;
/// Title, axis and legend.
const FRAME_PX: u32 = 130;
const DENSE: RGBColor = RGBColor(190, 190, 190);
const FAST: RGBColor = RGBColor(44, 160, 44);
const DEMAND: RGBColor = RGBColor(214, 120, 30);
const GUESS: RGBColor = RGBColor(240, 200, 120);
const HOME: RGBColor = RGBColor(31, 119, 180);

/// The window as SVG text. Experts are written as layer.expert where there is room.
pub fn gantt(spans: &Spans, window: &Window<'_>) -> Result<String, GanttError> {
    stacked(&[(spans, *window)])
}

/// Several windows, one below the other, as one SVG text. Their time runs equally fast when they
/// are equally long.
pub fn stacked(pictures: &[(&Spans, Window<'_>)]) -> Result<String, GanttError> {
    let mut parts = Vec::new();
    for (spans, window) in pictures {
        let Window { from, to, .. } = *window;
        let inside = |span: &&Span| span.ends > from && span.begins < to;
        let seen: Vec<&Span> = spans.iter().filter(inside).collect();
        let row = |span: &&Span| Row::of(span.kind).number(spans.tiers());
        let Some(last_row) = seen.iter().map(row).max() else {
            return Err(GanttError::Empty { from, to });
        };
        let rows = last_row.max(Row::Tier(0).number(1)) + 1;
        parts.push((window, Seen { spans, seen, rows }));
    }
    let height = |rows: u16| ROW_PX * u32::from(rows) + FRAME_PX;
    let all = parts.iter().map(|(_, seen)| height(seen.rows)).sum();
    let mut svg = String::new();
    let refused = |reason: String| GanttError::Drawing { reason };
    let root = SVGBackend::with_string(&mut svg, (WIDTH_PX, all)).into_drawing_area();
    let mut left = root.clone();
    for (window, seen) in &parts {
        let (area, rest) = left.split_vertically(height(seen.rows) as i32);
        draw(&area, window, seen).map_err(|error| refused(error.to_string()))?;
        left = rest;
    }
    root.present().map_err(|error| refused(error.to_string()))?;
    drop((root, left));
    Ok(svg)
}

/// What a window shows.
struct Seen<'a> {
    spans: &'a Spans,
    seen: Vec<&'a Span>,
    rows: u16,
}

fn draw(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    window: &Window<'_>,
    Seen { spans, seen, rows }: &Seen<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (rows, tiers, names) = (*rows, spans.tiers(), window.rows.all(spans));
    root.fill(&WHITE)?;
    let length_us = window.to.since(window.from).as_us();
    let mut chart = ChartBuilder::on(root)
        .caption(window.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(90)
        .build_cartesian_2d(0.0..length_us, 0.0..f64::from(rows) + 0.7)?;
    let name = |y: &f64| {
        let at_centre = (y.fract() - 0.5).abs() < 1e-6 && *y < f64::from(rows);
        let row = usize::from(rows - 1).saturating_sub(*y as usize);
        names.get(row).filter(|_| at_centre).cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("microseconds")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_labels(2 * usize::from(rows) + 2)
        .y_label_formatter(&name)
        .label_style(("sans-serif", 14))
        .draw()?;
    for span in seen {
        let bottom = f64::from(rows - 1 - Row::of(span.kind).number(tiers));
        let left = span.begins.since(window.from).as_us();
        let right = span.ends.min(window.to).since(window.from).as_us();
        let corners = [(left, bottom + 0.12), (right, bottom + 0.88)];
        chart.draw_series([
            Rectangle::new(corners, colour(span, &window.rows).filled()),
            Rectangle::new(corners, BLACK.mix(0.5)),
        ])?;
        let pixels = (right - left) / length_us * f64::from(WIDTH_PX - 130);
        let text = label(span);
        if pixels > 6.5 * text.len() as f64 {
            let at = (left + 3.0 * length_us / f64::from(WIDTH_PX), bottom + 0.58);
            chart.draw_series([Text::new(text, at, ("sans-serif", 12))])?;
        }
    }
    for (at, (name, colour)) in legend(spans, &window.rows).into_iter().enumerate() {
        let left = length_us * (0.01 + 0.19 * at as f64);
        let top = f64::from(rows);
        let box_width = length_us * 0.016;
        let corners = [(left, top + 0.25), (left + box_width, top + 0.5)];
        chart.draw_series([Rectangle::new(corners, colour.filled())])?;
        let place = (left + 1.4 * box_width, top + 0.47);
        chart.draw_series([Text::new(name, place, ("sans-serif", 13))])?;
    }
    Ok(())
}

/// What colours there are mean.
fn legend(spans: &Spans, rows: &RowNames<'_>) -> Vec<(String, RGBColor)> {
    let RowNames { dense, first, fast, link, home } = *rows;
    let links = match first {
        Some((_, disk)) if spans.tiers() < 2 => disk.to_owned(),
        Some((_, disk)) => format!("{disk} and {link}"),
        None => link.to_owned(),
    };
    let all = [
        (dense.to_owned(), DENSE),
        (fast.to_owned(), FAST),
        (home.to_owned(), HOME),
        (format!("{links}: on demand"), DEMAND),
        (format!("{links}: on a guess"), GUESS),
    ];
    // Units that are not there are not named; what a link could carry is.
    let is_used = |of: RGBColor| spans.iter().any(|span| colour(span, rows) == of);
    let units = [FAST, HOME];
    all.into_iter().filter(|(_, colour)| !units.contains(colour) || is_used(*colour)).collect()
}

fn colour(span: &Span, rows: &RowNames<'_>) -> RGBColor {
    match span.kind {
        SpanKind::Compute { unit: Unit::Tier(0), .. } if rows.first.is_some() => HOME,
        SpanKind::Dense { .. } => DENSE,
        SpanKind::Load { purpose: Purpose::Demand, .. } => DEMAND,
        SpanKind::Load { purpose: Purpose::Guess, .. } => GUESS,
        SpanKind::Compute { unit: Unit::Tier(_), .. } => FAST,
        SpanKind::Compute { unit: Unit::Home(_), .. } => HOME,
    }
}

fn label(span: &Span) -> String {
    match span.kind {
        SpanKind::Dense { layer } => format!("layer {layer}"),
        SpanKind::Load { key, .. } => key.to_string(),
        SpanKind::Compute { key, tokens: 1, .. } => key.to_string(),
        SpanKind::Compute { key, tokens, .. } => format!("{key} x{tokens}"),
    }
}
