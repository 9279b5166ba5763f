//! A figure for a terminal.

use super::Figure;
use super::grid::Grid;
use super::words::{DISTURBED, any_disturbed, holds, plain, wrap};
use comfy_table::ContentArrangement;
use comfy_table::presets::NOTHING;

/// Width of running text, in columns.
const WIDTH: usize = 100;

/// Renders a figure as text: title, table, skipped measurements, notes and expectations.
pub fn text(figure: &Figure) -> String {
    let mut out = format!("== {}: {}\n\n", plain(&figure.name), plain(&figure.title));
    out += &paragraph("", &figure.about);
    if let Some(source) = &figure.source {
        out += &paragraph("after ", source);
    }
    out += &format!("\n{}: median (min–max)\n\n", plain(&figure.y.title()));
    let mut table = Grid::of(figure).table(NOTHING, str::to_string);
    // On a terminal, cells are wrapped to its width.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    out += &format!("{table}\n");
    if any_disturbed(figure) {
        out += &paragraph(&format!("{} ", DISTURBED.0), DISTURBED.1);
    }
    out.push('\n');
    for series in &figure.series {
        if let Some(place) = series.place() {
            out += &paragraph("paper: ", &format!("{}: {place}, for reference only", series.name));
        }
    }
    for (name, setting) in &figure.settings {
        out += &paragraph("", &format!("{name}: {setting}"));
    }
    for skipped in &figure.skipped {
        out += &paragraph("SKIP: ", &format!("{}: {}", skipped.what, skipped.why));
    }
    for note in &figure.notes {
        out += &paragraph("NOTE: ", note);
    }
    for expectation in &figure.expected {
        out += &paragraph(&format!("{}: ", holds(expectation.holds)), &expectation.sentence);
    }
    // Not wrapped, so that users can copy it.
    out + &format!("\n$ {}\n", plain(&figure.command))
}

/// A wrapped paragraph that begins with `front`; if `front` is not empty, further lines are indented.
pub fn paragraph(front: &str, text: &str) -> String {
    wrap(&format!("{front}{}", plain(text)), WIDTH).join(if front.is_empty() { "\n" } else { "\n    " })
        + "\n"
}
