//! Selects the loads of trials, and decides when the search ends.
//!
//! The goals are searched in the caller's order, which should begin with the most demanding one. For each
//! goal short trials find the interval of the result; then full-length trials confirm its ends and halve it
//! until it is narrow enough. Trials at a load count for all goals.

use super::bounds::{Bound, Trial, classify, conditional_throughput};
use super::goal::{Goal, GoalResult};
use crate::BenchError;
use crate::start::failed;

/// The length of the first, short trials, as a share of full-length ones.
const SHORT: f64 = 0.1;
/// The width of the interval after the short trials, as a multiple of the goal's.
const COARSE: f64 = 4.0;
/// The factor by which steps grow while an end of the interval is unknown.
const GROWTH: f64 = 2.0;

/// Offers loads to a device under test.
pub trait Measurer {
    /// Offers a load in frames a second for some seconds.
    ///
    /// # Errors
    /// When nothing can be measured.
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError>;
}

/// The loads to search between, in frames a second, and the limit of the search's time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// The lowest load.
    pub least: f64,
    /// The highest load: that of the link, or of the generator.
    pub most: f64,
    /// The search gives up after trials of this many seconds.
    pub patience_s: f64,
}

/// Searches for all goals; returns the results in the same order.
///
/// # Errors
/// When a goal or the limits are invalid, nothing can be measured, or the search took too long.
pub fn search(
    goals: &[Goal],
    limits: &Limits,
    measurer: &mut dyn Measurer,
) -> Result<Vec<GoalResult>, BenchError> {
    let mut search = Search::new(goals, limits, measurer)?;
    goals.iter().map(|goal| search.goal(goal)).collect()
}

/// Searches for one goal.
///
/// # Errors
/// As [`search`].
pub fn search_one(
    goal: Goal,
    limits: &Limits,
    measurer: &mut dyn Measurer,
) -> Result<GoalResult, BenchError> {
    Search::new(&[goal], limits, measurer)?.goal(&goal)
}

struct Search<'a> {
    limits: Limits,
    measurer: &'a mut dyn Measurer,
    trials: Vec<Trial>,
    spent_s: f64,
}

/// The ends of the interval in which the answer lies, as far as there are any.
type Interval = (Option<f64>, Option<f64>);

impl<'a> Search<'a> {
    /// A search for these goals, before its first trial.
    fn new(
        goals: &[Goal],
        limits: &Limits,
        measurer: &'a mut dyn Measurer,
    ) -> Result<Search<'a>, BenchError> {
        goals.iter().try_for_each(Goal::check)?;
        if !(limits.least > 0.0 && limits.most > limits.least && limits.most.is_finite()) {
            let Limits { least, most, .. } = limits;
            return Err(failed(format!("no loads lie between {least} and {most} frames a second")));
        }
        Ok(Search { limits: *limits, measurer, trials: vec![], spent_s: 0.0 })
    }

    fn goal(&mut self, goal: &Goal) -> Result<GoalResult, BenchError> {
        // One short trial classifies a load here; the full-length ones decide.
        let short = Goal {
            final_trial_s: goal.final_trial_s * SHORT,
            duration_sum_s: goal.final_trial_s * SHORT,
            width: (goal.width * COARSE).min(0.5),
            ..*goal
        };
        if goal.duration_sum_s > short.duration_sum_s * 2.0 {
            self.narrow(&short)?;
        }
        self.narrow(goal)?;
        let at = |load: f64| conditional_throughput(goal, &self.at(load));
        Ok(match self.interval(goal) {
            (Some(lower), Some(upper)) => GoalResult::Regular { lower, upper, throughput: at(lower) },
            (Some(highest), None) => GoalResult::AllCarried { highest, throughput: at(highest) },
            (None, upper) => GoalResult::NoneCarried { lowest: upper.unwrap_or(self.limits.least) },
        })
    }

    /// Tries loads until the interval is narrow enough.
    fn narrow(&mut self, goal: &Goal) -> Result<(), BenchError> {
        let mut step = goal.width;
        loop {
            let load = match self.interval(goal) {
                (Some(lower), Some(upper)) if upper - lower <= upper * goal.width * (1.0 + 1e-9) => {
                    return Ok(());
                }
                (Some(lower), Some(upper)) => self.between(goal, lower, upper),
                (Some(lower), None) if lower >= self.limits.most => return Ok(()),
                (None, Some(upper)) if upper <= self.limits.least => return Ok(()),
                (Some(lower), None) => {
                    step *= GROWTH;
                    self.guess(goal, lower, f64::MAX).unwrap_or(lower / (1.0 - step.min(0.5)))
                }
                (None, Some(upper)) => {
                    step *= GROWTH;
                    self.guess(goal, 0.0, upper).unwrap_or(upper * (1.0 - step.min(0.5)))
                }
                (None, None) => self.guess(goal, 0.0, f64::MAX).unwrap_or(self.limits.most),
            };
            self.settle(goal, load.clamp(self.limits.least, self.limits.most))?;
        }
    }

    /// A load between the ends: where shorter trials saw the end of loss, otherwise in the middle.
    fn between(&self, goal: &Goal, lower: f64, upper: f64) -> f64 {
        self.guess(goal, lower, upper).unwrap_or_else(|| {
            // A whole number of widths below the upper end, so that the last step has the full width.
            let widths = ((lower / upper).ln() / (1.0 - goal.width).ln()).ceil();
            upper * (1.0 - goal.width).powf((widths / 2.0).floor().max(1.0))
        })
    }

    /// A load between these ends without a trial of this goal's length, at which shorter trials changed from
    /// no loss to loss.
    fn guess(&self, goal: &Goal, lower: f64, upper: f64) -> Option<f64> {
        let is_new = |load: f64| !self.trials.iter().any(|trial| trial.load == load && trial.is_full(goal));
        let inside = |load: &f64| *load > lower && *load < upper && is_new(*load);
        let shorter = self.trials.iter().filter(|trial| !trial.is_full(goal));
        let (good, bad): (Vec<&Trial>, Vec<&Trial>) =
            shorter.partition(|trial| trial.loss_ratio <= goal.loss_ratio);
        let least_bad = bad.iter().map(|trial| trial.load).fold(f64::MAX, f64::min);
        let good = good.iter().map(|trial| trial.load).filter(|load| *load < least_bad && inside(load));
        good.reduce(f64::max).or(Some(least_bad).filter(|load| *load < f64::MAX && inside(load)))
    }

    /// Tries a load until it is classified.
    fn settle(&mut self, goal: &Goal, load: f64) -> Result<(), BenchError> {
        while classify(goal, &self.at(load)) == Bound::Open {
            if self.spent_s > self.limits.patience_s {
                return Err(failed(format!(
                    "the search for {load:.0} frames a second took longer than {} s",
                    self.limits.patience_s
                )));
            }
            let trial = self.measurer.measure(load, goal.final_trial_s)?;
            self.spent_s += goal.final_trial_s;
            self.trials.push(Trial { load, duration_s: goal.final_trial_s, ..trial });
        }
        Ok(())
    }

    fn at(&self, load: f64) -> Vec<Trial> {
        self.trials.iter().filter(|trial| trial.load == load).copied().collect()
    }

    /// The lowest load that is not carried, and the highest carried one below it.
    fn interval(&self, goal: &Goal) -> Interval {
        let mut loads: Vec<f64> = self.trials.iter().map(|trial| trial.load).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        let (mut lower, mut upper) = (None, None);
        for load in loads {
            match classify(goal, &self.at(load)) {
                Bound::Lower => lower = Some(load),
                Bound::Upper => {
                    upper = Some(load);
                    break;
                }
                Bound::Open => {}
            }
        }
        (lower, upper)
    }
}
