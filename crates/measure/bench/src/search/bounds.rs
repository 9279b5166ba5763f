//! Classifies a load by the trials at it (RFC 9971, section 4.8 and its appendices on load classification and
//! conditional throughput).

use super::goal::Goal;
use serde::{Deserialize, Serialize};

/// A trial at a load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The offered load, in frames a second.
    pub load: f64,
    /// Length of the trial, in seconds.
    pub duration_s: f64,
    /// The lost frames as a share of those to be offered. Frames that a generator could not offer count as
    /// lost.
    pub loss_ratio: f64,
}

impl Trial {
    /// Whether it took as long as a goal's final trials do.
    pub(super) fn is_full(&self, goal: &Goal) -> bool {
        self.duration_s >= goal.final_trial_s * (1.0 - 1e-9)
    }
}

/// What a load is for a goal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// The load is carried, whatever the results of further trials.
    Lower,
    /// The load is not carried, whatever the results of further trials.
    Upper,
    /// Further trials have to decide.
    Open,
}

/// Classifies a load by the trials at it.
///
/// Full-length trials count by their duration; those with too much loss count against the load. Shorter
/// trials count only as far as they lose more often than the exceed ratio allows. The load is a lower bound
/// if it would still be one with the worst outcome of the remaining trials, and an upper bound if it would
/// not be carried even with the best outcome.
pub fn classify(goal: &Goal, trials: &[Trial]) -> Bound {
    let sum = |is_full: bool, is_lossy: bool| -> f64 {
        let of = |trial: &&Trial| {
            trial.is_full(goal) == is_full && (trial.loss_ratio > goal.loss_ratio) == is_lossy
        };
        trials.iter().filter(of).map(|trial| trial.duration_s).sum()
    };
    let (full_good, full_bad) = (sum(true, false), sum(true, true));
    let (short_good, short_bad) = (sum(false, false), sum(false, true));
    let balance = short_good * goal.exceed_ratio / (1.0 - goal.exceed_ratio);
    let bad = full_bad + (short_bad - balance).max(0.0);
    let whole = (full_good + bad).max(goal.duration_sum_s);
    // Tolerates rounding errors in the sums of durations.
    let allowed = whole * goal.exceed_ratio + whole * 1e-9;
    let is_lower_at_best = bad <= allowed;
    let is_lower_at_worst = whole - full_good <= allowed;
    match (is_lower_at_best, is_lower_at_worst) {
        (_, true) => Bound::Lower,
        (false, _) => Bound::Upper,
        (true, false) => Bound::Open,
    }
}

/// Frames a second that come through at a load: its loss is the loss at the quantile that the exceed ratio
/// allows.
pub fn conditional_throughput(goal: &Goal, trials: &[Trial]) -> f64 {
    let mut full: Vec<Trial> = trials.iter().filter(|trial| trial.is_full(goal)).copied().collect();
    let Some(load) = full.first().map(|trial| trial.load) else { return 0.0 };
    full.sort_by(|one, other| one.loss_ratio.total_cmp(&other.loss_ratio));
    let all: f64 = full.iter().map(|trial| trial.duration_s).sum::<f64>().max(goal.duration_sum_s);
    let mut left = all * (1.0 - goal.exceed_ratio) * (1.0 - 1e-9);
    let mut lost = None;
    for trial in &full {
        if lost.is_some() && left <= 0.0 {
            break;
        }
        lost = Some(trial.loss_ratio);
        left -= trial.duration_s;
    }
    // Trials that are missing count as full loss.
    let lost = if left > 0.0 { 1.0 } else { lost.unwrap_or(1.0) };
    load * (1.0 - lost)
}
