//! The data of figures.

use crate::machine::Machine;
use crate::stats::Quantiles;
use serde::{Deserialize, Serialize};

/// Experiments, and the machine that they ran on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The program's version, and the build's.
    pub program: String,
    /// When it began, as `2026-11-23 09:30 UTC`.
    pub began: String,
    /// Seconds that it took.
    pub took_s: f64,
    /// How thoroughly: `quick`, `full` or `miniature`.
    pub effort: String,
    /// What was found, in the order of measuring.
    pub figures: Vec<Figure>,
}

/// What an experiment found.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The experiment's name, `niu-baseline`.
    pub name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What was measured, on which ports, and how, in a sentence or two.
    pub about: String,
    /// The paper, and the figure or table of it that this follows.
    pub source: Option<String>,
    /// The command that measures it again.
    pub command: String,
    /// What is varied.
    pub x: Axis,
    /// What is measured.
    pub y: Axis,
    /// The curves, or groups of bars where the x axis has categories.
    pub series: Vec<Series>,
    /// Settings that the result hangs on: frame sizes, trials, bursts, cores.
    pub settings: Vec<(String, String)>,
    /// What this machine could not measure.
    pub skipped: Vec<Skipped>,
    /// What a reader has to know: closed loop, shorter trials than the RFC asks, disturbed points.
    pub notes: Vec<String>,
    /// What the experiment expects of its result, and whether that is so.
    pub expected: Vec<Expectation>,
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Axis {
    /// What it shows: `frame size`.
    pub label: String,
    /// Its unit, `bytes`; empty for counts.
    pub unit: String,
    /// How values are spaced.
    pub scale: Scale,
    /// Names for the x values 0, 1, 2, … where values are no numbers; empty where they are.
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
    /// What it is, for the legend.
    pub name: String,
    /// Whose figures these are.
    pub origin: Origin,
    /// The points, by x.
    pub points: Vec<Point>,
}

/// Whose figures a curve shows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Millrace's, measured in this run.
    Own,
    /// Another system's, measured in this run.
    Peer,
    /// A paper's, on its own machine: a reference only. With the place in the paper and the machine.
    Paper(String),
}

/// One measured value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Where on the x axis; the category's number where there are categories.
    pub x: f64,
    /// Median and range of the repeats; a paper's values have no range.
    pub y: Quantiles,
    /// How often it was measured.
    pub repeats: usize,
    /// Whether something else had the core for more than a fiftieth of the time, in most repeats.
    pub disturbed: bool,
}

/// Something that could not be measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// What.
    pub what: String,
    /// Why, and what would be needed.
    pub why: String,
}

/// What an experiment expects of its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Expectation {
    /// In words, with the figures that were found.
    #[serde(alias = "told")]
    pub sentence: String,
    /// Whether it is so.
    pub holds: bool,
    /// Whether it is about what is counted, such as packets: then it holds however busy the machine is.
    #[serde(default)]
    pub counted: bool,
}

impl Expectation {
    /// About what is counted.
    pub fn of_counts(sentence: String, holds: bool) -> Expectation {
        Expectation { sentence, holds, counted: true }
    }

    /// About rates or times, which a busy machine changes.
    pub fn of_times(sentence: String, holds: bool) -> Expectation {
        Expectation { sentence, holds, counted: false }
    }
}

impl Axis {
    /// Numbers, evenly spaced from 0.
    pub fn linear(label: &str, unit: &str) -> Axis {
        Axis { label: label.into(), unit: unit.into(), scale: Scale::Linear, categories: vec![] }
    }

    /// Numbers, by their logarithm.
    pub fn log(label: &str, unit: &str) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label, unit) }
    }

    /// Names.
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
    /// Of the figures of all repeats; `None` when there are none, or one is no number.
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
    /// Millrace's, with what was measured in this run.
    pub fn own(name: impl Into<String>, points: Vec<Point>) -> Series {
        Series { name: name.into(), origin: Origin::Own, points }
    }

    /// A paper's values.
    pub fn paper(name: &str, place: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        let points = points.into_iter().map(|(x, y)| Point::single(x, y)).collect();
        Series { name: name.into(), origin: Origin::Paper(place.into()), points }
    }

    /// The median at some x.
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.x == x).map(|point| point.y.median)
    }
}

impl Figure {
    /// The curve of that name.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// The median of a curve somewhere.
    pub fn at(&self, series: &str, x: f64) -> Option<f64> {
        self.series(series)?.at(x)
    }

    /// What is expected of two values, where both were measured: `told` gets them.
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

    /// Says of something that it was not measured, and why.
    pub fn skip(&mut self, what: impl Into<String>, why: impl ToString) {
        self.skipped.push(Skipped { what: what.into(), why: why.to_string() });
    }

    /// Whether nothing was measured, and no paper has values.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// Whether all is as expected.
    pub fn holds(&self) -> bool {
        self.expected.iter().all(|expectation| expectation.holds)
    }
}
