//! The goals and the results of a search.

use crate::BenchError;
use crate::start::failed;
use serde::{Deserialize, Serialize};

/// A search goal (RFC 9971, section 4.6): which loads count as carried, and how narrow the result has to be.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Goal {
    /// The accepted loss, as a share of the frames of a trial: 0 for NDR.
    pub loss_ratio: f64,
    /// The share of the time that may have more loss than that, so that disturbed trials do not decide.
    pub exceed_ratio: f64,
    /// Length of a full-length trial, in seconds.
    pub final_trial_s: f64,
    /// The sum of full-length trials that decides whether a load is carried, in seconds.
    pub duration_sum_s: f64,
    /// The distance of the bounds at which the search ends, as a share of the upper one.
    pub width: f64,
}

impl Goal {
    /// The throughput of RFC 2544 (sections 24 and 26.1): no loss in one trial of 60 s.
    pub const RFC2544: Goal =
        Goal { loss_ratio: 0.0, exceed_ratio: 0.0, final_trial_s: 60.0, duration_sum_s: 60.0, width: 0.005 };

    /// The non-drop rate, by many short trials (as in FD.io's CSIT; RFC 9971, section 4.6.1).
    pub const NDR: Goal =
        Goal { loss_ratio: 0.0, exceed_ratio: 0.5, final_trial_s: 1.0, duration_sum_s: 21.0, width: 0.005 };

    /// The partial drop rate: half a percent of loss is accepted.
    pub const PDR: Goal = Goal { loss_ratio: 0.005, ..Goal::NDR };

    /// The same goal with other trials: `trials` of `trial_s` seconds.
    #[must_use]
    pub fn quick(self, trial_s: f64, trials: u32) -> Goal {
        Goal { final_trial_s: trial_s, duration_sum_s: trial_s * f64::from(trials), ..self }
    }

    /// Whether a load that meets this goal also meets RFC 2544.
    pub fn conforms_to_rfc2544(&self) -> bool {
        self.loss_ratio == 0.0 && self.exceed_ratio == 0.0 && self.final_trial_s >= 60.0
    }

    /// Checks whether the goal is valid.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), BenchError> {
        let Goal { loss_ratio, exceed_ratio, final_trial_s: trial_s, duration_sum_s: sum_s, width } = *self;
        let is_share = |share: f64| (0.0..1.0).contains(&share);
        Err(failed(match () {
            () if !is_share(loss_ratio) => {
                format!("a loss ratio of {loss_ratio}: it is a share, from 0 up to and without 1")
            }
            () if !is_share(exceed_ratio) => {
                format!("an exceed ratio of {exceed_ratio}: it is a share, from 0 up to and without 1")
            }
            () if !(trial_s > 0.0 && trial_s.is_finite()) => format!("trials of {trial_s} s: they take time"),
            () if sum_s < trial_s || !sum_s.is_finite() => {
                format!("{sum_s} s of trials that take {trial_s} s each: at least one is needed")
            }
            () if !(width > 0.0 && width < 1.0) => {
                format!("a width of {width}: it is a share of the load, above 0 and below 1")
            }
            () => return Ok(()),
        }))
    }
}

/// What was found for a goal. Loads are in frames a second.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum GoalResult {
    /// The carried rate is between two bounds.
    Regular {
        /// The highest carried load with no failed load below it (relevant lower bound).
        lower: f64,
        /// The lowest failed load above it (relevant upper bound).
        upper: f64,
        /// Frames a second that come through at the lower bound (conditional throughput).
        throughput: f64,
    },
    /// Every load that could be offered was carried.
    AllCarried {
        /// The highest load that was offered.
        highest: f64,
        /// Frames a second that come through at that load.
        throughput: f64,
    },
    /// Not even the lowest load was carried.
    NoneCarried {
        /// The lowest load that was offered.
        lowest: f64,
    },
}

impl GoalResult {
    /// The highest load that is carried; 0 where none is.
    pub fn carried(&self) -> f64 {
        match *self {
            GoalResult::Regular { lower, .. } => lower,
            GoalResult::AllCarried { highest, .. } => highest,
            GoalResult::NoneCarried { .. } => 0.0,
        }
    }

    /// Frames a second that come through; 0 where nothing is carried.
    pub fn throughput(&self) -> f64 {
        match *self {
            GoalResult::Regular { throughput, .. } | GoalResult::AllCarried { throughput, .. } => throughput,
            GoalResult::NoneCarried { .. } => 0.0,
        }
    }
}
