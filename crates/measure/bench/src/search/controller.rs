//! Which loads are tried, and when that is enough.
//!
//! For each goal, the most demanding first: short trials find the interval in which the answer lies, full-length trials
//! settle its ends and halve it until it is narrow. Trials at a load count for all goals.

use super::bounds::{Bound, Trial, classify, conditional_throughput};
use super::goal::{Goal, GoalResult};
use crate::BenchError;

/// How much shorter trials are that look where the answer may lie.
const SHORT: f64 = 0.1;
/// How much wider the interval may be that those leave.
const COARSE: f64 = 4.0;
/// How much wider the next step is where an end of the interval does not hold.
const GROWTH: f64 = 2.0;

/// Who offers loads to a device under test.
pub trait Measurer {
    /// Offers so many frames a second for so long.
    ///
    /// # Errors
    /// When nothing can be measured.
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError>;
}

/// Between which loads to search, in frames a second, and how long at most.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// The least.
    pub least: f64,
    /// The most: of the link, or of who offers it.
    pub most: f64,
    /// Seconds of trials after which it gives up.
    pub patience_s: f64,
}

/// Searches for all goals; the results in their order.
///
/// # Errors
/// When a goal or the limits make no sense, nothing can be measured, or it took too long.
pub fn search(
    goals: &[Goal],
    limits: &Limits,
    measurer: &mut dyn Measurer,
) -> Result<Vec<GoalResult>, BenchError> {
    goals.iter().try_for_each(Goal::check)?;
    if !(limits.least > 0.0 && limits.most > limits.least && limits.most.is_finite()) {
        let Limits { least, most, .. } = limits;
        return Err(BenchError::Measurement(format!(
            "no loads lie between {least} and {most} frames a second"
        )));
    }
    let mut search = Search { limits: *limits, measurer, trials: vec![], spent_s: 0.0 };
    goals.iter().map(|goal| search.goal(goal)).collect()
}

struct Search<'a> {
    limits: Limits,
    measurer: &'a mut dyn Measurer,
    trials: Vec<Trial>,
    spent_s: f64,
}

/// The ends of the interval in which the answer lies, as far as there are any.
type Interval = (Option<f64>, Option<f64>);

impl Search<'_> {
    fn goal(&mut self, goal: &Goal) -> Result<GoalResult, BenchError> {
        // One short trial says what a load is; full-length ones have the last word.
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

    /// Tries loads until the interval is narrow.
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

    /// A load between the ends: where earlier trials saw the end of loss, or in the middle.
    fn between(&self, goal: &Goal, lower: f64, upper: f64) -> f64 {
        self.guess(goal, lower, upper).unwrap_or_else(|| {
            // In whole widths from the upper end, so that the last step is as wide as it may be.
            let widths = ((lower / upper).ln() / (1.0 - goal.width).ln()).ceil();
            upper * (1.0 - goal.width).powf((widths / 2.0).floor().max(1.0))
        })
    }

    /// A load inside these ends at which no trial of this goal's length was made yet, and at which earlier, shorter ones
    /// changed from no loss to loss.
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

    /// Tries a load until it is known what it is.
    fn settle(&mut self, goal: &Goal, load: f64) -> Result<(), BenchError> {
        while classify(goal, &self.at(load)) == Bound::Open {
            if self.spent_s > self.limits.patience_s {
                return Err(BenchError::Measurement(format!(
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

    /// The lowest load that is not carried, and the highest below that is.
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
