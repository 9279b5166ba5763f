//! What experiments have in common as commands: how their chains start processes, and how figures are printed.

use crate::nf_process::{Brief, starter};
use crate::text::print;
use ::bench::BenchError;
use ::bench::experiment::{Setting, Starting};
use ::bench::figure::Figure;
use ::bench::speed::machine::Machine;
use control::api::Cache;
use host::nf::NfOutput;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// How the chains of experiments run: the packet thread on the last core, and this program in processes.
pub fn setting() -> Setting {
    let starting: Starting = Arc::new(|path, sources, burst| {
        let (chain, defines) = (path.to_path_buf(), vec![]);
        let brief = Brief { chain, defines, evaluator: false, fused: false, cache: Cache::Auto, sources };
        starter(brief, burst, NfOutput::Log).map_err(|error| BenchError::Measurement(format!("{error:#}")))
    });
    Setting { core: Machine::look().cores.last().copied(), starting: Some(starting), ..Setting::default() }
}

/// This program as the NF of the benchmark.
///
/// # Errors
/// When its file is not known.
pub fn relay() -> anyhow::Result<(PathBuf, Vec<String>)> {
    Ok((std::env::current_exe()?, vec!["nf-relay".into()]))
}

/// Says aloud that figures of a debug build are none.
pub fn warn() {
    if cfg!(debug_assertions) {
        eprintln!("WARNING: not built in release mode: the figures say nothing");
    }
}

/// Prints figures; a single one as a JSON object, several as a list.
///
/// # Errors
/// When they cannot be printed.
pub fn show(figures: &[Figure], json: bool) -> anyhow::Result<ExitCode> {
    print(&match figures {
        [one] if json => format!("{}\n", serde_json::to_string_pretty(one)?),
        _ if json => format!("{}\n", serde_json::to_string_pretty(figures)?),
        _ => figures.iter().map(text).collect::<Vec<_>>().join("\n"),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A figure as text.
fn text(figure: &Figure) -> String {
    let mut out = format!("{}: {}\n{}\n\n", figure.name, figure.title, figure.about);
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    let titles = figure.series.iter().map(|series| series.name.clone());
    table.set_header(std::iter::once(figure.x.title()).chain(titles));
    let mut places: Vec<f64> =
        figure.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    for x in places {
        let cell = |series: &::bench::figure::Series| {
            let point = series.points.iter().find(|point| point.x == x)?;
            let (y, range) = (point.y, point.repeats > 1);
            Some(if range {
                format!("{:.4} ({:.4} to {:.4})", y.median, y.min, y.max)
            } else {
                format!("{:.4}", y.median)
            })
        };
        let cells = figure.series.iter().map(|series| cell(series).unwrap_or_default());
        table.add_row(std::iter::once(figure.x.value(x)).chain(cells));
    }
    out += &format!("{}: {}\n{table}\n\n", "values", figure.y.title());
    for skipped in &figure.skipped {
        out += &format!("skipped    {}: {}\n", skipped.what, skipped.why);
    }
    for expectation in &figure.expected {
        out += &format!(
            "{:<10} {}\n",
            if expectation.holds { "as expected" } else { "NOT SO" },
            expectation.told
        );
    }
    for note in &figure.notes {
        out += &format!("note       {note}\n");
    }
    out
}
