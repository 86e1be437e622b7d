//! Grouped bars as SVG: one group per label, one colour per series. Draws; computes nothing.

use plotters::prelude::*;

use crate::error::ReproduceError;

/// What to draw.
#[derive(Debug, Clone)]
pub struct Bars<'a> {
    /// Above the picture.
    pub title: &'a str,
    /// Beside the vertical axis.
    pub y_label: &'a str,
    /// Names of the series, in the order of each group's values.
    pub series: &'a [&'a str],
    /// Groups from left to right: label and one value per series.
    pub groups: Vec<(String, Vec<f64>)>,
}

const COLOURS: [RGBColor; 5] = [
    RGBColor(150, 150, 150),
    RGBColor(31, 119, 180),
    RGBColor(44, 160, 44),
    RGBColor(214, 120, 30),
    RGBColor(150, 80, 170),
];
const HEIGHT_PX: u32 = 420;
const GROUP_PX: u32 = 110;

impl Bars<'_> {
    /// The picture as SVG text.
    pub fn to_svg(&self) -> Result<String, ReproduceError> {
        let width = (self.groups.len() as u32 * GROUP_PX + 120).max(640);
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, (width, HEIGHT_PX)).into_drawing_area();
        self.draw(&root).map_err(|error| ReproduceError::Picture(error.to_string()))?;
        drop(root);
        Ok(svg)
    }

    fn draw(
        &self,
        root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    ) -> Result<(), Box<dyn std::error::Error>> {
        root.fill(&WHITE)?;
        let values = self.groups.iter().flat_map(|(_, values)| values);
        let highest = values.fold(1.0f64, |highest, value| highest.max(*value));
        let mut chart = ChartBuilder::on(root)
            .caption(self.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..self.groups.len() as f64, 0.0..highest * 1.25)?;
        let label = |x: &f64| {
            let group = self.groups.get((x - 0.5).round() as usize);
            let at_centre = (x.fract() - 0.5).abs() < 1e-6;
            group.filter(|_| at_centre).map_or(String::new(), |(name, _)| name.clone())
        };
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_labels(2 * self.groups.len() + 1)
            .x_label_formatter(&label)
            .x_label_style(("sans-serif", 13))
            .y_label_style(("sans-serif", 13))
            .y_desc(self.y_label)
            .draw()?;
        let bar = 0.8 / self.series.len() as f64;
        for (at, name) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let bars = self.groups.iter().enumerate().filter_map(|(group, (_, values))| {
                let left = group as f64 + 0.1 + at as f64 * bar;
                let value = *values.get(at)?;
                let corners = [(left, 0.0), (left + bar * 0.92, value)];
                Some(Rectangle::new(corners, colour.filled()))
            });
            chart.draw_series(bars)?.label(*name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled())
            });
            let texts = self.groups.iter().enumerate().filter_map(|(group, (_, values))| {
                let left = group as f64 + 0.1 + at as f64 * bar;
                let value = *values.get(at)?;
                let place = (left, value + highest * 0.035);
                Some(Text::new(format!("{value:.2}"), place, ("sans-serif", 11)))
            });
            chart.draw_series(texts)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 13))
            .draw()?;
        root.present()?;
        Ok(())
    }
}
