//! A report as a Markdown page.
//!
//! Texts are escaped: a name that looks like a table, a link or a tag is shown as it is.

use super::grid::Grid;
use super::name::file_names;
use super::words::{DISTURBED, any_disturbed, called, duration, held, holds, plain, warning};
use super::{Figure, Report, Series};
use comfy_table::presets::ASCII_MARKDOWN;
use std::fmt::{Result, Write};

/// Renders a report as Markdown. `plots` is the folder of the plots that [`super::write()`] writes, relative
/// to the page: `plots` or `.`. `docs/performance.md` has no plots.
pub fn markdown(report: &Report, plots: Option<&str>) -> String {
    let names = file_names(report);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut out, report, &names);
    for (figure, name) in report.figures.iter().zip(&names) {
        let plot = plots.map(|folder| format!("{folder}/{name}.svg"));
        let _ = section(&mut out, figure, name, plot.as_deref());
    }
    out
}

fn head(out: &mut String, report: &Report, names: &[String]) -> Result {
    writeln!(out, "<!-- Generated from a report of `millrace bench` by")?;
    writeln!(out, "     `millrace bench report report.json --markdown`; changes belong there. -->\n")?;
    writeln!(out, "# Measurements\n")?;
    writeln!(out, "- **Machine**: {}", escape(&report.machine.sentence()))?;
    writeln!(out, "- **Program**: {}", escape(&report.program))?;
    writeln!(
        out,
        "- **Run**: {}, {} effort, took {}",
        escape(&report.began),
        escape(&report.effort),
        duration(report.took_s)
    )?;
    let (holding, all) = held(report);
    writeln!(out, "- **Expectations**: {holding} of {all} hold")?;
    writeln!(out, "\nValues are the median of the repeats, with the smallest and the largest in brackets.")?;
    writeln!(
        out,
        "Columns that begin with `peer:` are other systems in the same run; those that begin with"
    )?;
    writeln!(out, "`paper:` are a paper's own values from its own machine, for reference only.\n")?;
    if let Some(warning) = warning(&report.machine) {
        writeln!(out, "**{warning}**\n")?;
    }
    for (figure, name) in report.figures.iter().zip(names) {
        let failed = if figure.holds() { "" } else { " (**not as expected**)" };
        writeln!(out, "- [{}](#{name}){failed}", escape(&figure.title))?;
    }
    Ok(())
}

fn section(out: &mut String, figure: &Figure, name: &str, plot: Option<&str>) -> Result {
    // An explicit anchor: sites differ in the anchors that they derive from headings.
    writeln!(out, "\n<a id=\"{name}\"></a>\n\n## {}\n", escape(&figure.title))?;
    writeln!(out, "{}\n", escape(&figure.about))?;
    if let Some(source) = &figure.source {
        writeln!(out, "After {}.\n", escape(source.trim_end_matches('.')))?;
    }
    writeln!(out, "Measured by {}.\n", code(&figure.command))?;
    if figure.is_empty() {
        writeln!(out, "Nothing was measured.\n")?;
    } else {
        if let Some(plot) = plot {
            writeln!(out, "![{}]({plot})\n", escape(&figure.title))?;
        }
        writeln!(out, "{}, median (min–max):\n", escape(&figure.y.title()))?;
        writeln!(out, "{}\n", Grid::of(figure).table(ASCII_MARKDOWN, inline))?;
    }
    if any_disturbed(figure) {
        writeln!(out, "\\{} {}.\n", DISTURBED.0, DISTURBED.1)?;
    }
    let place = |series: &Series| Some(format!("{}: {}", escape(&called(series)), escape(series.place()?)));
    let papers = figure.series.iter().filter_map(place);
    let settings = figure.settings.iter();
    let settings = settings.map(|(name, setting)| format!("{}: {}", escape(name), escape(setting)));
    let skipped = figure.skipped.iter();
    let skipped = skipped.map(|skipped| format!("**{}**: {}", escape(&skipped.what), escape(&skipped.why)));
    let notes = figure.notes.iter().map(|note| escape(note));
    let expected = figure.expected.iter();
    let expected = expected
        .map(|expectation| format!("**{}**: {}", holds(expectation.holds), escape(&expectation.sentence)));
    list(out, "Where the papers' values are from", papers)?;
    list(out, "Settings", settings)?;
    list(out, "Not measured here", skipped)?;
    list(out, "Notes", notes)?;
    list(out, "Expectations", expected)
}

fn list(out: &mut String, heading: &str, items: impl Iterator<Item = String>) -> Result {
    let items: String = items.map(|item| format!("- {item}\n")).collect();
    if items.is_empty() { Ok(()) } else { writeln!(out, "{heading}:\n\n{items}") }
}

/// Escapes a text for a paragraph: Markdown shows it as it is.
fn escape(text: &str) -> String {
    let text = inline(text);
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let begins_list = number.len() < text.len() && number.starts_with(['.', ')']);
    match text.chars().next() {
        Some('#' | '+' | '-' | '=') => format!("\\{text}"),
        // `3.5` is a number, `3. 5` an item.
        Some(_) if begins_list && number.chars().nth(1).is_none_or(|c| c == ' ') => {
            let (digits, rest) = text.split_at(text.len() - number.len());
            format!("{digits}\\{rest}")
        }
        _ => text,
    }
}

/// Escapes a text for a table cell, where nothing begins a heading or a list.
fn inline(text: &str) -> String {
    let text = plain(text);
    let letters: Vec<char> = text.chars().collect();
    let is_word = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphanumeric());
    let mut out = String::with_capacity(text.len());
    for (at, letter) in letters.iter().enumerate() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => out.extend(['\\', *letter]),
            // Within a word an underscore is plain text, and many names have one.
            '_' if !(is_word(at.checked_sub(1)) && is_word(Some(at + 1))) => out.push_str("\\_"),
            letter => out.push(*letter),
        }
    }
    out
}

/// A code span of any text.
fn code(text: &str) -> String {
    let text = plain(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Markdown removes one space at each end, so a text that begins or ends with a backquote is padded.
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_names() {
        assert_eq!(escape("a|b <c> *d* [e](f) g_h _i_"), r"a\|b &lt;c&gt; \*d\* \[e\](f) g_h \_i\_");
        assert_eq!(escape("# x"), r"\# x");
        assert_eq!(escape("12. x 3.5"), r"12\. x 3.5");
        assert_eq!(escape("3.5"), "3.5");
        assert_eq!(inline("-3.5"), "-3.5");
        assert_eq!(escape("two\n\nlines"), "two  lines");
    }

    #[test]
    fn code_spans_hold_backquotes() {
        assert_eq!(code("millrace bench"), "`millrace bench`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`x`"), "`` `x` ``");
    }
}
