//! A figure as a plot.
//!
//! A figure has curves for numbers, and groups of bars for categories. From top to bottom the picture has the
//! title, the plot, the numbers and the label of the x axis, the legend, and remarks. Nothing covers data.

mod bars;
mod canvas;
mod curves;
mod frame;
mod legend;
mod look;
mod span;

use super::words::{called, plain, wrap};
use super::{Figure, Origin, Point, Scale, Series};
use canvas::{Anchor, BODY, Canvas, INK, LETTER, Pencil, SMALL, SOFT, TITLE};
use frame::{Frame, Names};
use legend::Legend;
use span::{Span, is_drawable};

/// Width of the picture, and height of the plot's rectangle, in pixels.
const SIZE: (f64, f64) = (860.0, 360.0);
/// The most lines of the y axis' label.
const Y_TITLE_LINES: usize = 2;

/// Renders a figure as a self-contained SVG picture on a white background.
pub fn svg(figure: &Figure) -> String {
    let has_names = !figure.x.categories.is_empty();
    let is_placed = |point: &&Point| {
        if has_names { bars::slot(figure, point).is_some() } else { curves::is_placed(point) }
    };
    let all: Vec<&Point> = figure.series.iter().flat_map(|series| &series.points).collect();
    let placed: Vec<&Point> = all.iter().copied().filter(is_placed).collect();
    let ys = placed.iter().flat_map(|point| [point.y.median, point.y.min, point.y.max]);
    let mut ys: Vec<f64> = ys.filter(|value| is_drawable(*value)).collect();
    if has_names && let Some(least) = ys.iter().copied().filter(|y| *y > 0.0).min_by(f64::total_cmp) {
        // Gives the lowest bar a height on a logarithmic axis.
        ys.push(least / 2.0);
    }
    let y = Span::upright(&figure.y, &ys);

    let titles = wrap(&plain(&figure.title), ((SIZE.0 - 20.0) / (LETTER * TITLE)) as usize);
    let top = 28.0 + titles.len() as f64 * 22.0;
    let mut y_titles = wrap(&plain(&figure.y.title()), (SIZE.1 / (LETTER * BODY)) as usize);
    y_titles.truncate(Y_TITLE_LINES);
    let left = 30.0 + 17.0 * y_titles.len() as f64 + Frame::beside(&y);
    let frame = Frame { left, width: SIZE.0 - left - 32.0, top, height: SIZE.1, y };
    let names: Vec<String> = figure.x.categories.iter().map(|name| plain(name)).collect();
    let names = Names::of(&names, frame.width / names.len().max(1) as f64);
    let below = if has_names { names.height } else { 15.0 };
    let x_titles = wrap(&plain(&figure.x.title()), (frame.width / (LETTER * BODY)) as usize);
    let legend = Legend::of(figure, SIZE.0 - 40.0);
    let remarks: Vec<String> = remarks(figure, &placed, all.len())
        .iter()
        .flat_map(|remark| wrap(remark, ((SIZE.0 - 40.0) / (LETTER * SMALL)) as usize))
        .collect();

    let x_title_top = frame.bottom() + 14.0 + below;
    let legend_top = x_title_top + x_titles.len() as f64 * 17.0 + 12.0;
    let remarks_top = legend_top + legend.height() + 10.0;
    let size = (SIZE.0, remarks_top + remarks.len() as f64 * 16.0 + 8.0);

    let canvas = Canvas::new(size);
    let bold = Pencil { bold: true, ..Pencil::new(TITLE, INK) };
    for (at, line) in titles.iter().enumerate() {
        canvas.text(line, (20.0, 20.0 + at as f64 * 22.0), &bold);
    }
    frame.draw(&canvas, &y_titles);
    let looks = look::looks(&figure.series);
    let middle = Pencil { anchor: Anchor::Middle, ..Pencil::new(BODY, INK) };
    if has_names {
        names.draw(&canvas, &frame);
        bars::draw(&canvas, &frame, figure, &looks);
    } else {
        let xs: Vec<f64> = placed.iter().map(|point| point.x).collect();
        let x = Span::lying(&figure.x, &xs, frame.width);
        frame.draw_ticks(&canvas, &x);
        curves::draw(&canvas, &frame, &x, figure, &looks);
    }
    if placed.is_empty() {
        let center = (frame.left + frame.width / 2.0, frame.top + frame.height / 2.0);
        canvas.text("nothing was measured", center, &Pencil { color: SOFT, ..middle });
    }
    for (at, line) in x_titles.iter().enumerate() {
        let spot = (frame.left + frame.width / 2.0, x_title_top + 8.0 + at as f64 * 17.0);
        canvas.text(line, spot, &middle);
    }
    legend.draw(&canvas, (20.0, legend_top), &looks, |look, (x, y)| {
        if has_names {
            bars::piece(&canvas, look, (x - 10.0, y - 6.0), (x + 10.0, y + 6.0), false);
            return;
        }
        canvas.line(&[(x - 16.0, y), (x + 16.0, y)], &look.pen);
        look.mark(&canvas, (x, y), false);
    });
    for (at, line) in remarks.iter().enumerate() {
        canvas.text(line, (20.0, remarks_top + 8.0 + at as f64 * 16.0), &Pencil::new(SMALL, SOFT));
    }
    canvas.finish(&plain(&figure.title))
}

/// The remarks that explain the marks.
fn remarks(figure: &Figure, placed: &[&Point], all: usize) -> Vec<String> {
    let mut remarks: Vec<String> = vec![];
    let mut remark = |is_so: bool, told: &str| remarks.extend(is_so.then(|| told.to_string()));
    let any = |is_one: fn(&Point) -> bool| placed.iter().any(|point| is_one(point));
    let curve = |is_one: fn(&Series) -> bool| figure.series.iter().any(is_one);
    let is_peer = curve(|series| series.origin == Origin::Peer);
    let is_paper = curve(|series| series.place().is_some());
    let disturbed =
        "Hollow in colour: disturbed, something else had the core, or cores had been moved apart.";
    remark(any(|point| point.y.min < point.y.max), "Whiskers: smallest and largest of the repeats.");
    remark(is_peer, "Peers: other systems, measured in the same run.");
    remark(is_paper, "Papers: their own values, from other machines; a reference only.");
    remark(any(|point| point.disturbed), disturbed);
    let log = |scale: Scale, value: fn(&Point) -> f64| {
        scale == Scale::Log && placed.iter().any(|point| value(point) <= 0.0)
    };
    remark(
        log(figure.y.scale, |point| point.y.median),
        "The lower edge stands for 0, which a logarithmic axis does not have.",
    );
    remark(
        figure.x.categories.is_empty() && log(figure.x.scale, |point| point.x),
        "The left edge stands for 0, which a logarithmic axis does not have.",
    );
    remark(
        placed.len() < all,
        &format!("Left out, without a place here: {} of {all} points.", all - placed.len()),
    );
    let empty: Vec<String> =
        figure.series.iter().filter(|series| series.points.is_empty()).map(called).collect();
    remark(!empty.is_empty(), &format!("Not measured: {}.", empty.join(", ")));
    // One paragraph.
    if remarks.is_empty() { remarks } else { vec![remarks.join(" ")] }
}

#[cfg(test)]
mod tests;
