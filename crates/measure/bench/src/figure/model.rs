//! The data of figures.

use crate::machine::Machine;
use crate::stats::Quantiles;
use serde::{Deserialize, Serialize};

/// The figures of experiments, and the machine that they ran on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The version of the program, and its build.
    pub program: String,
    /// When the measurements began, as `2026-11-23 09:30 UTC`.
    pub began: String,
    /// Length of all measurements, in seconds.
    pub took_s: f64,
    /// How thorough the measurements were: `quick`, `full` or `miniature`.
    pub effort: String,
    /// The user's rules that were measured beside those of the experiments, where there are some: the file's name, and
    /// what it hashes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// The figures, in the order of measuring.
    pub figures: Vec<Figure>,
}

/// The result of an experiment.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The name of the experiment, such as `niu-baseline`.
    pub name: String,
    /// The title, in a few words.
    pub title: String,
    /// What was measured, on which ports, and how, in one or two sentences.
    pub about: String,
    /// The paper, and the figure or table of it that this follows.
    pub source: Option<String>,
    /// The command that repeats the measurement.
    pub command: String,
    /// The varied quantity.
    pub x: Axis,
    /// The measured quantity.
    pub y: Axis,
    /// The curves, or groups of bars where the x axis has categories.
    pub series: Vec<Series>,
    /// Settings that influence the result: frame sizes, trials, bursts, cores.
    pub settings: Vec<(String, String)>,
    /// What this machine could not measure.
    pub skipped: Vec<Skipped>,
    /// Facts that a reader needs: closed loop, shorter trials than the RFC requires, disturbed points.
    pub notes: Vec<String>,
    /// What the experiment expects of its result, and whether the expectation holds.
    pub expected: Vec<Expectation>,
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity, such as `frame size`.
    pub label: String,
    /// Its unit, such as `bytes`; empty for counts.
    pub unit: String,
    /// How values are spaced.
    pub scale: Scale,
    /// Names for the x values 0, 1, 2, … where they are categories; empty for numbers.
    pub categories: Vec<String>,
}

/// How values are spaced on an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly, from 0.
    #[default]
    Linear,
    /// By their logarithm.
    Log,
}

/// One curve.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// The name of the curve in the legend.
    pub name: String,
    /// The origin of its values.
    pub origin: Origin,
    /// The points, in the order of x.
    pub points: Vec<Point>,
}

/// The origin of a curve's values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Values of Millrace, measured in this run.
    Own,
    /// Values of another system, measured in this run.
    Peer,
    /// Values of a paper, from its own machine: a reference only. The text names the place in the paper and
    /// the machine.
    Paper(String),
}

/// One measured value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The x value; for categories, the number of the category.
    pub x: f64,
    /// Median and range of the repeats; a paper's values have no range.
    pub y: Quantiles,
    /// The number of measurements.
    pub repeats: usize,
    /// Whether most repeats were disturbed: something else had the core for more than a fiftieth of the time,
    /// or cores that share packets were far apart.
    pub disturbed: bool,
}

/// A measurement that was not possible.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// What was not measured.
    pub what: String,
    /// The reason, and what would be needed.
    pub why: String,
}

/// An expectation about the result of an experiment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Expectation {
    /// The expectation as a sentence, with the measured values.
    #[serde(alias = "told")]
    pub sentence: String,
    /// Whether the expectation holds.
    pub holds: bool,
    /// Whether it is about counts, such as packets: those do not depend on how busy the machine is.
    #[serde(default)]
    pub counted: bool,
}

impl Expectation {
    /// An expectation about counts.
    pub fn of_counts(sentence: String, holds: bool) -> Expectation {
        Expectation { sentence, holds, counted: true }
    }

    /// An expectation about rates or times, which a busy machine changes.
    pub fn of_times(sentence: String, holds: bool) -> Expectation {
        Expectation { sentence, holds, counted: false }
    }
}

impl Axis {
    /// An axis for numbers, evenly spaced from 0.
    pub fn linear(label: &str, unit: &str) -> Axis {
        Axis { label: label.into(), unit: unit.into(), scale: Scale::Linear, categories: vec![] }
    }

    /// An axis for numbers, spaced by their logarithm.
    pub fn log(label: &str, unit: &str) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label, unit) }
    }

    /// An axis for categories with these names.
    pub fn names<Name: Into<String>>(label: &str, names: impl IntoIterator<Item = Name>) -> Axis {
        let categories = names.into_iter().map(Into::into).collect();
        Axis { categories, ..Axis::linear(label, "") }
    }

    /// Label and unit.
    pub fn title(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }

    /// A value as a table shows it.
    pub fn value(&self, x: f64) -> String {
        let name = self.categories.get(x as usize).filter(|_| x >= 0.0);
        name.cloned().unwrap_or_else(|| format!("{x}"))
    }
}

impl Point {
    /// A point of the values of all repeats; `None` where there are none, or one is not a number.
    pub fn of(x: f64, figures: impl IntoIterator<Item = f64>, disturbed: bool) -> Option<Point> {
        let figures: Vec<f64> = figures.into_iter().collect();
        let repeats = figures.len();
        Some(Point { x, y: Quantiles::of(figures)?, repeats, disturbed })
    }

    /// A single value.
    pub fn single(x: f64, y: f64) -> Point {
        Point { x, y: Quantiles::single(y), repeats: 1, disturbed: false }
    }
}

impl Series {
    /// A curve of Millrace's, measured in this run.
    pub fn own(name: impl Into<String>, points: Vec<Point>) -> Series {
        Series { name: name.into(), origin: Origin::Own, points }
    }

    /// A curve with a paper's values.
    pub fn paper(name: &str, place: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().map(|(x, y)| Point::single(x, y)).collect();
        Series { name: name.into(), origin: Origin::Paper(place.into()), points }
    }

    /// The place in a paper that the values are from, where a paper has them.
    pub fn place(&self) -> Option<&str> {
        match &self.origin {
            Origin::Paper(place) => Some(place),
            Origin::Own | Origin::Peer => None,
        }
    }

    /// The median at an x value.
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.x == x).map(|point| point.y.median)
    }
}

impl Figure {
    /// The curve of that name.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// The median of a curve at an x value.
    pub fn at(&self, series: &str, x: f64) -> Option<f64> {
        self.series(series)?.at(x)
    }

    /// Adds an expectation about two values, where both were measured. Its sentence is `told` and the values.
    pub fn expect(
        &mut self,
        values: (Option<f64>, Option<f64>),
        told: &str,
        holds: impl FnOnce(f64, f64) -> bool,
    ) {
        if let (Some(one), Some(other)) = values {
            let told = format!("{told}: {one:.3} and {other:.3}");
            self.expected.push(Expectation::of_times(told, holds(one, other)));
        }
    }

    /// Puts a sentence in front of the description.
    pub fn introduce(&mut self, sentence: &str) {
        self.about = format!("{sentence} {}", self.about);
    }

    /// Adds a note.
    pub fn add_note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a curve with a paper's values.
    pub fn paper(&mut self, name: &str, place: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        self.series.push(Series::paper(name, place, points));
    }

    /// Says of something that it was not measured, and why.
    pub fn skip(&mut self, what: impl Into<String>, why: impl ToString) {
        self.skipped.push(Skipped { what: what.into(), why: why.to_string() });
    }

    /// Whether nothing was measured, and no paper has values.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Whether all expectations hold.
    pub fn holds(&self) -> bool {
        self.expected.iter().all(|expectation| expectation.holds)
    }
}
