//! Measures points by turns ([`crate::trial`]), and lists what could not be measured.

use super::Lab;
use crate::BenchError;
use crate::figure::{Figure, Skipped};
use crate::trial::{Order, Sample, again, by_turns, curves};
use std::convert::Infallible;

/// The most disturbed measurements that are repeated, as a share of all: on a machine that is never quiet,
/// repeats would not end.
const REPEATED: f64 = 0.5;

/// The note of saturation figures.
const CLOSED_LOOP: &str = "Closed loop: frames come from memory as fast as they are taken. These are saturation \
                               figures, not rates that RFC 2544 searches for.";

/// The result of a case.
type Measured = Result<Vec<Sample>, BenchError>;

/// A measurement, of one point or of several points of the same run.
pub struct Case<'c> {
    name: String,
    measure: Box<dyn FnMut(&Lab) -> Measured + 'c>,
}

impl<'c> Case<'c> {
    /// The name appears in progress reports and in the list of skipped measurements.
    pub fn new(name: impl Into<String>, measure: impl FnMut(&Lab) -> Measured + 'c) -> Case<'c> {
        Case { name: name.into(), measure: Box::new(measure) }
    }

    /// A measurement of one point.
    pub fn point(
        series: &str,
        x: f64,
        mut measure: impl FnMut(&Lab) -> Result<(f64, bool), BenchError> + 'c,
    ) -> Case<'c> {
        let name = series.to_string();
        Case::new(format!("{name}, {x}"), move |lab| {
            let (y, disturbed) = measure(lab)?;
            Ok(vec![Sample { series: name.clone(), x, y, disturbed }])
        })
    }
}

impl Lab<'_> {
    /// Measures all cases by turns, in as many rounds as the effort has, and adds their curves to the figure
    /// in the order of the cases. A case that fails once is skipped from then on.
    pub fn sweep<'c>(&mut self, mut figure: Figure, cases: impl IntoIterator<Item = Case<'c>>) -> Figure {
        let cases: Vec<Case> = cases.into_iter().collect();
        let rounds = self.effort.rounds.max(1);
        let mut measured: Vec<Sample> = vec![];
        let again_share = if self.effort.is_miniature() { 0.0 } else { REPEATED };
        let mut repeats = ((rounds * cases.len()) as f64 * again_share).ceil() as usize;
        let mut variants: Vec<(Case, Option<String>)> = cases.into_iter().map(|case| (case, None)).collect();
        let is_failed = |(_, failed): &(Case, Option<String>)| failed.is_some();
        let Ok(()) = by_turns(rounds, Order::Forward, &mut variants, is_failed, |(case, failed), round| {
            self.tell(&format!("{}: {} ({round} of {rounds})", figure.name, case.name));
            // A disturbed case is repeated once, as long as repeats are left.
            let is_disturbed = |samples: &Vec<Sample>| samples.iter().any(|sample| sample.disturbed);
            match again(repeats.min(1), || (case.measure)(self), is_disturbed) {
                Ok((samples, repeated)) => {
                    repeats -= repeated;
                    measured.extend(samples);
                }
                Err(error) => *failed = Some(error.to_string()),
            }
            Ok::<(), Infallible>(())
        });
        let skipped = variants.into_iter();
        figure.skipped.extend(skipped.filter_map(|(case, why)| Some(Skipped { what: case.name, why: why? })));
        figure.series.extend(curves(&measured));
        figure
    }

    /// Sweeps a saturation figure, and adds a note on that and the length of each measurement.
    pub fn saturate<'c>(&mut self, figure: Figure, cases: impl IntoIterator<Item = Case<'c>>) -> Figure {
        let mut figure = self.sweep(figure, cases);
        figure.settings.push(("seconds a point".into(), self.effort.seconds.to_string()));
        figure.add_note(CLOSED_LOOP);
        figure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::lab::Effort;
    use crate::figure::Axis;
    use crate::start::failed;
    use crate::stats::Quantiles;

    fn sheet(lab: &Lab) -> Figure {
        lab.sheet("test", "", "", (Axis::linear("", ""), Axis::linear("", "")))
    }

    #[test]
    fn cases_take_turns_and_what_fails_is_skipped() {
        let mut said = vec![];
        let mut tell = |what: &str| said.push(what.to_string());
        let mut lab =
            Lab::new(Effort { rounds: 3, ..Effort::MINIATURE }, std::path::Path::new("."), &mut tell);
        let mut count = 0.0;
        let cases = vec![
            Case::point("a", 2.0, |_| {
                count += 1.0;
                Ok((count, count > 1.0))
            }),
            Case::point("a", 1.0, |_| Ok((5.0, true))),
            Case::point("b", 1.0, |_| Err(failed("no such thing"))),
        ];
        let swept = lab.sweep(sheet(&lab), cases);
        assert_eq!(said.len(), 7, "{said:?}");
        let [a] = swept.series.as_slice() else { panic!("{swept:?}") };
        assert_eq!(a.points.iter().map(|point| point.x).collect::<Vec<_>>(), [1.0, 2.0]);
        let spread = Quantiles { median: 2.0, min: 1.0, max: 3.0 };
        assert_eq!((a.points[1].y, a.points[1].disturbed, a.points[0].disturbed), (spread, true, true));
        assert_eq!(swept.skipped[0].what, "b, 1");
        assert!(swept.skipped[0].why.contains("no such thing"));
        assert_eq!((swept.at("a", 1.0), swept.at("b", 1.0)), (Some(5.0), None));
    }

    #[test]
    fn what_was_disturbed_is_measured_again() {
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort { rounds: 1, ..Effort::QUICK }, std::path::Path::new("."), &mut tell);
        let mut tries = 0;
        let swept = lab.sweep(
            sheet(&lab),
            vec![Case::point("a", 0.0, |_| {
                tries += 1;
                Ok((f64::from(tries), tries < 2))
            })],
        );
        assert_eq!((swept.at("a", 0.0), swept.series[0].points[0].disturbed), (Some(2.0), false));
    }
}
