//! A run explained as SVG: one stacked bar per phase, and below it what changes would give.
//! Draws; computes nothing but where things go.

use std::fmt::Write;

use super::parts::{PhaseParts, TimePart};

const WIDTH_PX: f64 = 820.0;
const LEFT_PX: f64 = 230.0;
const BAR_PX: f64 = WIDTH_PX - LEFT_PX - 90.0;
const ROW_PX: f64 = 26.0;
const TITLE_PX: f64 = 18.0;
/// Width of a letter over its height, on average and a little more.
const LETTER: f64 = 0.56;
/// The least that the bars of gains span: between these two is little.
const LITTLE: (f64, f64) = (0.9, 1.5);

/// What to draw.
#[derive(Debug, Clone)]
pub struct Picture<'a> {
    pub title: &'a str,
    /// Phases by name.
    pub phases: Vec<(&'a str, &'a PhaseParts)>,
    /// Changes and their gains: 1 is none.
    pub gains: Vec<(String, f64)>,
}

impl Picture<'_> {
    /// The picture as SVG text.
    pub fn to_svg(&self) -> String {
        let mut out = Canvas::default();
        out.title(self.title);
        out.y = 52.0;
        for (name, parts) in &self.phases {
            phase(&mut out, name, parts);
        }
        legend(&mut out, &self.phases);
        if !self.gains.is_empty() {
            out.y += ROW_PX;
            out.text(16.0, out.y, "head", "What if: time of the run over the changed run's");
            out.y += 12.0;
            let scale = Scale::of(&self.gains);
            self.gains.iter().for_each(|(name, gain)| bar(&mut out, name, *gain, &scale));
            let top = out.y - ROW_PX * self.gains.len() as f64;
            out.line(scale.x(1.0), top, out.y);
        }
        out.finish()
    }
}

fn phase(out: &mut Canvas, name: &str, parts: &PhaseParts) {
    let text = format!("{name}, {} tokens", parts.tokens);
    out.text(16.0, out.y + 17.0, "label", &text);
    let mut x = LEFT_PX;
    for (part, seconds) in parts.parts.iter().filter(|(_, seconds)| *seconds > 0.0) {
        let width = BAR_PX * seconds / parts.time_s.max(f64::MIN_POSITIVE);
        out.rect(x, width, colour(*part));
        x += width;
    }
    out.text(LEFT_PX + BAR_PX + 8.0, out.y + 17.0, "label", &format!("{:.2} s", parts.time_s));
    out.y += ROW_PX;
}

/// Colours of the parts that are there, in two columns.
fn legend(out: &mut Canvas, phases: &[(&str, &PhaseParts)]) {
    out.y += 8.0;
    let there = |part: &&TimePart| phases.iter().any(|(_, parts)| parts.seconds(**part) > 0.0);
    for (index, part) in TimePart::ALL.iter().filter(there).enumerate() {
        let x = LEFT_PX + (index % 3) as f64 * 180.0;
        if index > 0 && index % 3 == 0 {
            out.y += 20.0;
        }
        out.swatch(x, colour(*part));
        out.text(x + 18.0, out.y + 11.0, "small", part.name());
    }
    out.y += 20.0;
}

/// Where a gain is: a tenth and ten times are equally far from none.
struct Scale {
    least: f64,
    most: f64,
}

impl Scale {
    fn of(gains: &[(String, f64)]) -> Self {
        let all = || gains.iter().map(|(_, gain)| *gain).filter(|gain| *gain > 0.0);
        Self { least: all().fold(LITTLE.0, f64::min), most: all().fold(LITTLE.1, f64::max) }
    }

    fn x(&self, gain: f64) -> f64 {
        let gain = gain.clamp(self.least, self.most);
        LEFT_PX + BAR_PX * (gain / self.least).ln() / (self.most / self.least).ln()
    }
}

/// From no change to the gain.
fn bar(out: &mut Canvas, name: &str, gain: f64, scale: &Scale) {
    out.text(16.0, out.y + 17.0, "label", name);
    let (none, end) = (scale.x(1.0), scale.x(gain));
    let colour = if gain >= 1.0 { "#2ca02c" } else { "#b0b0b0" };
    out.rect(none.min(end), (end - none).abs(), colour);
    out.text(LEFT_PX + BAR_PX + 8.0, out.y + 17.0, "label", &format!("{gain:.2} ×"));
    out.y += ROW_PX;
}

fn colour(part: TimePart) -> &'static str {
    match part {
        TimePart::Dense => "#9a9a9a",
        TimePart::Compute => "#1f77b4",
        TimePart::Memory => "#74b3de",
        TimePart::Moving => "#5a9bd4",
        TimePart::Waiting => "#c6dbef",
        TimePart::Disk => "#d6781e",
        TimePart::Transfer => "#9650aa",
        TimePart::FirstUnit => "#c2588f",
        TimePart::Sync => "#d8c04a",
        TimePart::Draft => "#8c6d4f",
        TimePart::Sampling => "#2ca02c",
    }
}

/// SVG elements, and how far down they go.
#[derive(Default)]
struct Canvas {
    body: String,
    y: f64,
}

impl Canvas {
    /// As large as fits.
    fn title(&mut self, text: &str) {
        let letters = text.chars().count().max(1) as f64;
        let size = TITLE_PX.min((WIDTH_PX - 32.0) / (letters * LETTER));
        let text = escape(text);
        let style = format!("font-size:{size:.1}px");
        let _ = writeln!(self.body, r#"<text x="16" y="30" style="{style}">{text}</text>"#);
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escape(text);
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" class="{class}">{text}</text>"#);
    }

    fn rect(&mut self, x: f64, width: f64, fill: &str) {
        let y = self.y + 2.0;
        let height = ROW_PX - 6.0;
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height}" fill="{fill}"/>"#
        );
    }

    fn swatch(&mut self, x: f64, fill: &str) {
        let y = self.y;
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="12" height="12" fill="{fill}"/>"#
        );
    }

    fn line(&mut self, x: f64, from: f64, to: f64) {
        let _ = writeln!(
            self.body,
            r##"<line x1="{x:.1}" y1="{from:.1}" x2="{x:.1}" y2="{to:.1}" stroke="#333" stroke-dasharray="3 3"/>"##
        );
    }

    fn finish(self) -> String {
        let height = self.y + 16.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH_PX}\" height=\"{height:.0}\">\n\
             <style>text{{font-family:sans-serif;fill:#222}}\
             .head,.label{{font-size:14px}}.small{{font-size:12px}}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::Bottleneck;

    #[test]
    fn bars_fill_the_width_and_text_cannot_break_out() {
        let parts = PhaseParts {
            tokens: 3,
            time_s: 2.0,
            parts: vec![(TimePart::Dense, 0.5), (TimePart::Disk, 1.5)],
            bound: Bottleneck::Disk,
            memory_gb_per_s: None,
        };
        let picture = Picture {
            title: "a <b> & c",
            phases: vec![("decode", &parts)],
            gains: vec![("disk × 2".into(), 1.6), ("a GPU".into(), 40.0), ("lru".into(), 0.8)],
        };
        let svg = picture.to_svg();
        assert!(svg.contains("a &lt;b&gt; &amp; c"), "{svg}");
        let quarter = format!(r#"width="{:.1}""#, BAR_PX / 4.0);
        assert!(svg.contains(&quarter) && svg.contains("1.60 ×"), "{svg}");
        let scale = Scale::of(&picture.gains);
        assert_eq!((scale.x(0.8), scale.x(40.0)), (LEFT_PX, LEFT_PX + BAR_PX));
        assert!(scale.x(1.6) - scale.x(1.0) > 20.0, "a small gain is seen beside a large one");
        assert!(!svg.contains("transfer") && svg.contains("waiting for disk"), "{svg}");
    }
}
