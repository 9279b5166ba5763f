//! `millrace bench report`: renders a saved report as pages and plots.

use crate::exit::{ExitStatus, refuse};
use crate::text::print;
use ::bench::figure::{markdown, read, write};
use clap::Args;
use std::path::{Path, PathBuf};

/// Renders a saved report again: as a page, as plots and as tables.
///
/// Writes report.html, report.md and report.json, and an SVG and a CSV file for each figure. With --markdown
/// alone it writes no file.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The report, a `report.json`
    file: PathBuf,

    /// Where the files are written; beside the report by default
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,

    /// Prints the report as Markdown
    #[arg(long)]
    markdown: bool,

    /// The Markdown shows the plots in this folder, as seen from the page
    #[arg(long, value_name = "FOLDER", requires = "markdown")]
    plots: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// When there is no report, or a file cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitStatus> {
    let report = read(&args.file)?;
    let folder = match (&args.to, args.markdown) {
        (Some(folder), _) => Some(folder.clone()),
        (None, true) => None,
        (None, false) => Some(beside(&args.file)?),
    };
    if let Some(folder) = folder {
        let files = write(&report, &folder)?;
        if !args.markdown {
            let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
            print(&lines)?;
        }
    }
    if args.markdown {
        print(&markdown(&report, args.plots.as_deref()))?;
    }
    Ok(ExitStatus::Good)
}

/// The folder of a report.
///
/// # Errors
/// When the folder contains another report, which would be overwritten.
fn beside(file: &Path) -> anyhow::Result<PathBuf> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new(".")).to_path_buf();
    let other = folder.join("report.json");
    if other.exists() && other.canonicalize()? != file.canonicalize()? {
        refuse!(
            "{} is another report and would be overwritten; say where to write with --to",
            other.display()
        );
    }
    Ok(folder)
}
