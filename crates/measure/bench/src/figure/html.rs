//! A report as one self-contained HTML page: it needs no network and no scripts.

use super::grid::Grid;
use super::name::file_names;
use super::words::{DISTURBED, any_disturbed, called, duration, held, holds, plain, warning};
use super::{Expectation, Figure, Report, svg};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

const STYLE: &str = include_str!("page.css");

/// Renders a report as HTML.
pub fn html(report: &Report) -> String {
    let names = file_names(report);
    let named = || report.figures.iter().zip(&names);
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="millrace bench report";
                title { "Measurements: " (plain(&report.program)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Measurements" }
                    (about(report))
                }
                nav {
                    h2 { "Contents" }
                    ol {
                        @for (figure, name) in named() {
                            li { a href={ "#" (name) } { (plain(&figure.title)) } " " (count(figure)) }
                        }
                    }
                }
                section {
                    h2 { "Expectations" }
                    (summary(report, &names))
                }
                main {
                    @for (figure, name) in named() { (section(figure, name)) }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn about(report: &Report) -> Markup {
    markup! {
        dl {
            dt { "Machine" } dd { (plain(&report.machine.sentence())) }
            dt { "Program" } dd { (plain(&report.program)) }
            dt { "Run" }
            dd { (plain(&report.began)) ", " (plain(&report.effort)) " effort, took " (duration(report.took_s)) }
        }
        @if let Some(warning) = warning(&report.machine) { p.warning { (warning) } }
        p {
            "Values are the median of the repeats, with the smallest and the largest in brackets. Peers are other "
            "systems in the same run; papers’ values are from their own machines and a reference only."
        }
    }
}

/// The number of a figure's expectations that do not hold.
fn count(figure: &Figure) -> Markup {
    let failed = figure.expected.iter().filter(|expectation| !expectation.holds).count();
    markup! { @if failed > 0 { span.fails { "✗ " (failed) " not as expected" } } }
}

fn summary(report: &Report, names: &[String]) -> Markup {
    let (holding, all) = held(report);
    markup! {
        p { (holding) " of " (all) " hold." }
        ul.expected {
            @for (figure, name) in report.figures.iter().zip(names) {
                @for expectation in &figure.expected {
                    li { (expected(expectation)) " (" a href={ "#" (name) } { (plain(&figure.name)) } ")" }
                }
            }
        }
    }
}

fn expected(expectation: &Expectation) -> Markup {
    let (class, sign) = if expectation.holds { ("holds", "✓") } else { ("fails", "✗") };
    markup! { span class=(class) { (sign) " " (holds(expectation.holds)) } ": " (plain(&expectation.sentence)) }
}

fn section(figure: &Figure, name: &str) -> Markup {
    markup! {
        article id=(name) {
            h2 { (plain(&figure.title)) }
            p { (plain(&figure.about)) }
            @if let Some(source) = &figure.source { p.source { "After " (plain(source).trim_end_matches('.')) "." } }
            @if figure.is_empty() {
                p { "Nothing was measured." }
            } @else {
                figure { (PreEscaped(svg(figure))) }
                details {
                    summary { "Values: " (plain(&figure.y.title())) ", median (min–max)" }
                    (table(figure))
                }
            }
            (list("Expectations", figure.expected.iter().map(expected)))
            (list("Not measured here", figure.skipped.iter().map(|skipped| markup! {
                b { (plain(&skipped.what)) } ": " (plain(&skipped.why))
            })))
            (list("Notes", figure.notes.iter().map(|note| markup! { (plain(note)) })))
            (list("Where the papers’ values are from", figure.series.iter().filter_map(place)))
            @if !figure.settings.is_empty() {
                h3 { "Settings" }
                dl {
                    @for (name, setting) in &figure.settings { dt { (plain(name)) } dd { (plain(setting)) } }
                }
            }
            p { "Measured by " code { (plain(&figure.command)) } }
        }
    }
}

fn place(series: &super::Series) -> Option<Markup> {
    Some(markup! { (called(series)) ": " (plain(series.place()?)) })
}

fn list(heading: &str, items: impl Iterator<Item = Markup>) -> Markup {
    let mut items = items.peekable();
    markup! {
        @if items.peek().is_some() {
            h3 { (heading) }
            ul { @for item in items { li { (item) } } }
        }
    }
}

fn table(figure: &Figure) -> Markup {
    let grid = Grid::of(figure);
    markup! {
        div.wide {
            table {
                thead { tr { @for cell in &grid.header { th scope="col" { (cell) } } } }
                tbody {
                    @for row in &grid.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
        @if any_disturbed(figure) { p.source { (DISTURBED.0) " " (DISTURBED.1) "." } }
    }
}
