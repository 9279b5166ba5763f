//! Shared code of the experiments' commands: the programs that they start, their scratch folder, and the
//! output of figures.

use crate::exit::{ExitStatus, refuse};
use crate::text::print_found;
use ::bench::BenchError;
use ::bench::experiment::{Effort, Lab};
use ::bench::figure::{Figure, text};
use ::bench::machine::Machine;
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The environment of experiments, which start this program as their NF and as `millrace`.
///
/// # Errors
/// When the program's own file cannot be found.
pub fn lab<'a>(effort: Effort, scratch: &Scratch, progress: &'a mut dyn FnMut(&str)) -> Result<Lab<'a>> {
    let mut lab = Lab::new(effort, &scratch.folder, progress);
    lab.millrace = Some(std::env::current_exe().context("this program's own file")?);
    Ok(lab)
}

/// The command line of this program.
pub fn typed() -> String {
    let words = std::env::args().skip(1);
    ["millrace".to_string()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Warns on standard error if this is a debug build, whose figures are meaningless.
pub fn warn() {
    if cfg!(debug_assertions) {
        eprintln!("WARNING: not built in release mode: the figures say nothing");
    }
}

/// Several figures as JSON.
#[derive(Serialize)]
pub struct Listed<'a> {
    /// They.
    pub figures: &'a [&'a Figure],
}

/// Prints figures; a single one as a JSON object, several as a list in one.
///
/// # Errors
/// When they cannot be printed.
pub fn show(figures: &[Figure], json: bool) -> Result<ExitStatus> {
    let texts = || figures.iter().map(text).collect::<Vec<_>>().join("\n");
    match figures {
        [one] => print_found(json, one, texts)?,
        several => {
            let figures: Vec<&Figure> = several.iter().collect();
            print_found(json, &Listed { figures: &figures }, texts)?
        }
    }
    Ok(ExitStatus::Good)
}

/// Measures figures with this effort, with a progress line, and prints them. `sentence` stands first in their
/// descriptions: how often was measured, and for how long.
///
/// # Errors
/// When they cannot be measured or printed.
pub fn measured(
    json: bool,
    effort: Effort,
    sentence: &str,
    measure: impl FnOnce(&mut Lab) -> Result<Vec<Figure>, BenchError>,
) -> Result<ExitStatus> {
    warn();
    let scratch = Scratch::new(None)?;
    let mut tell = progress;
    let mut figures = measure(&mut lab(effort, &scratch, &mut tell)?)?;
    progress("");
    figures.iter_mut().for_each(|figure| figure.introduce(sentence));
    show(&figures, json)
}

/// The first lines of what was found: of what, on which machine.
pub fn head(what: &str, machine: &Machine) -> String {
    let mut text = format!("{what}, on {}\n", machine.processor);
    if machine.is_busy() {
        text += &format!("WARNING: the machine was busy before: load {:.2}\n", machine.load);
    }
    text
}

/// The items of `all` that one of `names` selects. A name selects the item with this name; if there is none,
/// all items whose names begin with it. So `l3-10` does not select `l3-10-spread`.
///
/// # Errors
/// When a name selects nothing.
pub fn chosen<T>(all: Vec<T>, kind: &str, name_of: impl Fn(&T) -> &str, names: &[String]) -> Result<Vec<T>> {
    let is_whole = |name: &String| all.iter().any(|known| name_of(known) == name);
    let means = |name: &String, known: &T| match is_whole(name) {
        true => name_of(known) == name,
        false => name_of(known).starts_with(name.as_str()),
    };
    if let Some(name) = names.iter().find(|name| !all.iter().any(|known| means(name, known))) {
        let all: Vec<&str> = all.iter().map(name_of).collect();
        refuse!("there is no {kind} `{name}`; there are {}", all.join(", "));
    }
    let is_meant: Vec<bool> = all.iter().map(|known| names.iter().any(|name| means(name, known))).collect();
    Ok(all.into_iter().zip(is_meant).filter_map(|(known, is_meant)| is_meant.then_some(known)).collect())
}

/// Replaces the progress line, if standard error is a terminal.
pub fn progress(line: &str) {
    let mut out = std::io::stderr().lock();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{line}");
    }
    let _ = out.flush();
}

/// A folder that is removed on drop, unless it is to be kept.
pub struct Scratch {
    /// Its path.
    pub folder: PathBuf,
    keep: bool,
}

impl Scratch {
    /// The folder `keep`, which is not removed, or a new temporary one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(keep: Option<&Path>) -> Result<Scratch> {
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
