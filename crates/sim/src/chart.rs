//! Charts as SVG text: hit rate over cache size, one panel per trace, the legend in its own cell.
//! It draws what it is given and computes nothing.

use plotters::coord::Shift;
use plotters::prelude::*;
use thiserror::Error;

use crate::curves::Curve;

/// Columns of panels.
const COLUMNS: usize = 3;
/// Width and height of one panel, in pixels.
const PANEL_PX: (u32, u32) = (440, 340);

/// One panel.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// The drawing library refused; it does so for no input this crate makes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the chart could not be drawn: {reason}")]
pub struct ChartError {
    pub reason: String,
}

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for ChartError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self { reason: error.to_string() }
    }
}

/// What the panels of a chart share.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Above all panels.
    pub title: &'a str,
    /// Beside each vertical axis.
    pub y_label: &'a str,
}

/// Panels side by side, the legend after the last. Values are shares and drawn as percent.
pub fn panel_chart(frame: &Frame<'_>, panels: &[Panel]) -> Result<String, ChartError> {
    let rows = (panels.len() + 1).div_ceil(COLUMNS).max(1);
    let size = (PANEL_PX.0 * COLUMNS as u32, PANEL_PX.1 * rows as u32 + 40);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let below = root.titled(frame.title, ("sans-serif", 22))?;
        let cells = below.split_evenly((rows, COLUMNS));
        for (panel, cell) in panels.iter().zip(&cells) {
            draw_panel(frame, panel, cell)?;
        }
        if let (Some(panel), Some(cell)) = (panels.first(), cells.get(panels.len())) {
            draw_legend(panel, cell)?;
        }
        root.present()?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_panel(frame: &Frame<'_>, panel: &Panel, area: &Area<'_>) -> Result<(), ChartError> {
    let range = percent_range(panel);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(8)
        .margin_right(18)
        .x_label_area_size(38)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..100.0, range)?;
    chart
        .configure_mesh()
        .x_desc("cache, % of all experts")
        .y_desc(frame.y_label)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|value| format!("{value:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .label_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .draw()?;
    for curve in &panel.curves {
        let points = curve.points.iter().map(|&(share, rate)| (share * 100.0, rate * 100.0));
        let look = look(&curve.policy);
        if look.dashed {
            let dashes = DashedLineSeries::new(points, 7, 4, look.style());
            chart.draw_series(dashes)?;
        } else {
            chart.draw_series(LineSeries::new(points, look.style()))?;
        }
    }
    Ok(())
}

/// From the lowest to the highest value, out to whole tens (rates) or fives (differences).
fn percent_range(panel: &Panel) -> std::ops::Range<f64> {
    let values =
        || panel.curves.iter().flat_map(|curve| &curve.points).map(|point| 100.0 * point.1);
    let (lowest, highest) = (values().fold(100.0, f64::min), values().fold(-100.0, f64::max));
    let unit = if highest - lowest > 45.0 { 10.0 } else { 5.0 };
    let range = (lowest / unit).floor() * unit..(highest / unit).ceil() * unit;
    if range.is_empty() { 0.0..100.0 } else { range }
}

fn draw_legend(panel: &Panel, area: &Area<'_>) -> Result<(), ChartError> {
    for (index, curve) in panel.curves.iter().enumerate() {
        let y = 60 + 30 * index as i32;
        let look = look(&curve.policy);
        // A dashed sample is drawn as three short strokes.
        let strokes: &[(i32, i32)] =
            if look.dashed { &[(60, 72), (79, 91), (98, 110)] } else { &[(60, 110)] };
        for &(from, to) in strokes {
            area.draw(&PathElement::new(vec![(from, y), (to, y)], look.style()))?;
        }
        area.draw(&Text::new(look.label, (122, y - 8), ("sans-serif", 16)))?;
    }
    Ok(())
}

/// How a policy is drawn; colours after Okabe and Ito, told apart by the colour-blind too.
struct Look {
    colour: RGBColor,
    width: u32,
    dashed: bool,
    label: &'static str,
}

impl Look {
    fn style(&self) -> ShapeStyle {
        self.colour.stroke_width(self.width)
    }
}

fn look(policy: &str) -> Look {
    let plain = |colour, label| Look { colour, width: 2, dashed: false, label };
    match policy {
        "belady" => Look { dashed: true, ..plain(BLACK, "Belady (bound, knows the future)") },
        "blend" => Look { width: 3, ..plain(RGBColor(213, 94, 0), "blend (ours)") },
        "mrs" => plain(RGBColor(0, 114, 178), "MRS (HybriMoE)"),
        "lfru" => plain(RGBColor(204, 121, 167), "LFRU"),
        "lfu" => plain(RGBColor(230, 159, 0), "LFU"),
        "lru" => plain(RGBColor(0, 158, 115), "LRU"),
        _ => Look {
            dashed: true,
            ..plain(RGBColor(140, 140, 140), "popularity (profile of 1st half)")
        },
    }
}
