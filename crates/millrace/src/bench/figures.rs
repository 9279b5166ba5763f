//! What experiments have in common as commands: how their chains start processes, and how figures are printed.

use crate::text::print;
use ::bench::experiment::Setting;
use ::bench::figure::{Figure, text};
use ::bench::machine::Machine;
use anyhow::Context;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How the chains of experiments run: the packet thread on the last core, and this program in processes.
pub fn setting() -> Setting {
    Setting { core: Machine::look().cores.last().copied(), runs_click: true, ..Setting::default() }
}

/// This program as the NF of the benchmark.
///
/// # Errors
/// When its file is not known.
pub fn relay() -> anyhow::Result<(PathBuf, Vec<String>)> {
    Ok((std::env::current_exe()?, vec!["nf-relay".into()]))
}

/// What the user typed.
pub fn typed() -> String {
    let words = std::env::args().skip(1);
    ["millrace".to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
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

/// A line that replaces the one before, where somebody looks.
pub fn progress(line: &str) {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{line}");
    }
    let _ = out.flush();
}

/// A folder that goes away again, unless it is to be kept.
pub struct Scratch {
    /// Where it is.
    pub folder: PathBuf,
    keep: bool,
}

impl Scratch {
    /// This folder, to be kept, or a new one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(keep: Option<&Path>) -> anyhow::Result<Scratch> {
        let made = || std::env::temp_dir().join(format!("millrace-bench-{}", std::process::id()));
        let folder = keep.map_or_else(made, Path::to_path_buf);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Scratch { folder, keep: keep.is_some() })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
