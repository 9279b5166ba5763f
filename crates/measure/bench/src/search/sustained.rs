//! Whether a search's trials are long enough for the buffers of what is measured.
//!
//! A queue, a token bucket or a ring takes frames above the rate that is carried, until it is full: in short
//! trials they come through, or are lost by none. So a load that a search settles on is offered again in
//! longer trials. What comes through in the time by which those are longer is carried without buffers.

use super::controller::Measurer;
use super::goal::{Goal, GoalResult};
use crate::BenchError;
use crate::stats::median;
use serde::{Deserialize, Serialize};

/// The length of the longer trials, as a multiple of the search's.
const LONGER: f64 = 3.0;
/// Trials of each length; the median counts. One is enough where it takes long.
const TRIALS: usize = 3;
const LONG_S: f64 = 0.5;
/// The least difference that counts, as a share of the load: trials are disturbed by as much.
const DOUBT: f64 = 0.01;

/// What longer trials found at the load that a search settled on. Rates are in frames a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sustained {
    /// The load.
    pub load: f64,
    /// Length of the search's trials, in seconds.
    pub trial_s: f64,
    /// The rate that comes through in the time by which the longer trials are longer.
    pub rate: f64,
    /// Frames that came through above that rate: the room of buffers, as far as the trials filled it.
    pub buffered: f64,
    /// Whether the trials were long enough: the rate is that of the load, but for the loss that the goal
    /// accepts and the width of the result.
    pub is_enough: bool,
    /// Length of trials in which the buffers are no more than the width of the result, in seconds.
    pub enough_s: f64,
}

/// Offers the load of a result in trials of the goal's length and in longer ones. `None` where no load was
/// found to fail: no buffer hides a limit then.
///
/// # Errors
/// When nothing can be measured.
pub fn sustained(
    goal: &Goal,
    result: &GoalResult,
    measurer: &mut dyn Measurer,
) -> Result<Option<Sustained>, BenchError> {
    let GoalResult::Regular { lower: load, .. } = *result else { return Ok(None) };
    let trial_s = goal.final_trial_s;
    let (mut short, mut long) = (vec![], vec![]);
    for _ in 0..if trial_s < LONG_S { TRIALS } else { 1 } {
        let mut through = |seconds: f64| -> Result<f64, BenchError> {
            let trial = measurer.measure(load, seconds)?;
            Ok(load * seconds * (1.0 - trial.loss_ratio))
        };
        short.push(through(trial_s)?);
        long.push(through(trial_s * LONGER)?);
    }
    let (short, long) = (median(short).unwrap_or(0.0), median(long).unwrap_or(0.0));
    let rate = ((long - short) / (trial_s * (LONGER - 1.0))).max(0.0);
    let width = goal.width.max(DOUBT);
    let buffered = (short - rate * trial_s).max(0.0);
    let is_enough = rate >= load * (1.0 - goal.loss_ratio - width);
    let enough_s = if is_enough { trial_s } else { (buffered / (width * load)).max(trial_s * LONGER) };
    Ok(Some(Sustained { load, trial_s, rate, buffered, is_enough, enough_s }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Limits, Trial, search_one};

    /// Carries a rate, and takes a number of frames above it in each trial.
    struct Bucket {
        rate: f64,
        tokens: f64,
    }

    impl Measurer for Bucket {
        fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError> {
            let offered = load * duration_s;
            let through = offered.min(self.rate * duration_s + self.tokens);
            Ok(Trial { load, duration_s, loss_ratio: 1.0 - through / offered })
        }
    }

    const LIMITS: Limits = Limits { least: 1e3, most: 1e8, patience_s: 1e6 };

    fn found(bucket: &mut Bucket, trial_s: f64) -> (f64, Sustained) {
        let goal = Goal { width: 0.01, ..Goal::PDR.quick(trial_s, 3) };
        let result = search_one(goal, &LIMITS, bucket).expect("a result");
        let sustained = sustained(&goal, &result, bucket).expect("trials").expect("a load");
        (result.carried(), sustained)
    }

    #[test]
    fn a_burst_in_short_trials_is_noticed_and_the_trials_that_are_enough_are_told() {
        // 20 ms of 500,000 frames a second.
        let mut bucket = Bucket { rate: 5e5, tokens: 1e4 };
        let (carried, short) = found(&mut bucket, 0.2);
        assert!(carried > 5.4e5 && !short.is_enough, "{carried}: {short:?}");
        assert!(
            (short.rate / 5e5 - 1.0).abs() < 1e-6 && (short.buffered / 1e4 - 1.0).abs() < 1e-6,
            "{short:?}"
        );
        let (carried, long) = found(&mut bucket, short.enough_s);
        assert!(long.is_enough && (carried / 5e5 - 1.0).abs() < 0.02, "{carried}: {long:?}");
    }

    #[test]
    fn without_buffers_short_trials_are_enough() {
        let (carried, sustained) = found(&mut Bucket { rate: 5e5, tokens: 0.0 }, 0.2);
        assert!(sustained.is_enough && sustained.enough_s == 0.2 && (carried / 5e5 - 1.0).abs() < 0.02);
        let all = GoalResult::AllCarried { highest: 1e6, throughput: 1e6 };
        let none = super::sustained(&Goal::NDR, &all, &mut Bucket { rate: 1.0, tokens: 0.0 });
        assert_eq!(none.expect("no trial"), None);
    }
}
