//! How thoroughly experiments measure.

use crate::search::Goal;
use crate::units::counted;

/// What a quick measurement is good for.
const DIRECTION: &str = "which show the direction of a result and not its last digits";

/// How often was measured and for how long, as a sentence that stands first in a figure's description. Where that is
/// quick, the sentence says what it means.
pub fn sentence_of(is_quick: bool, measured: &str) -> String {
    if is_quick { format!("Quick: {measured}, {DIRECTION}.") } else { format!("{measured}.") }
}

/// The repeats, times and points of measurements.
#[derive(Clone, PartialEq, Debug)]
pub struct Effort {
    /// Its name: `quick`, `full` or `miniature`.
    pub name: &'static str,
    /// Measurements of each point, by turns.
    pub rounds: usize,
    /// Seconds for a saturation point, without warm-up.
    pub seconds: f64,
    /// Seconds of a trial at a set rate.
    pub trial_s: f64,
    /// Trials that decide whether a load is carried, in a search.
    pub trials: u32,
    /// The relative width of a search's result.
    pub width: f64,
    /// Seconds for a point of latency.
    pub latency_s: f64,
    /// Frame sizes, FCS counted.
    pub sizes: &'static [u16],
    /// The most NFs in a row of NFs in processes.
    pub most: usize,
}

impl Effort {
    /// All experiments of the report take less than half an hour on two cores.
    pub const QUICK: Effort = Effort {
        name: "quick",
        rounds: 3,
        seconds: 0.15,
        trial_s: 0.05,
        trials: 3,
        width: 0.03,
        latency_s: 0.2,
        sizes: &[64, 128, 256, 512, 1024, 1518],
        most: 5,
    };

    /// Trials of RFC 9971, and more and longer rounds: all experiments take about two hours.
    pub const FULL: Effort = Effort {
        name: "full",
        rounds: 5,
        seconds: 0.5,
        trial_s: 1.0,
        trials: 21,
        width: 0.005,
        latency_s: 2.0,
        sizes: &[64, 96, 128, 256, 512, 1024, 1280, 1518],
        most: 8,
    };

    /// Just enough to see the direction of a result.
    pub const MINIATURE: Effort = Effort {
        name: "miniature",
        rounds: 1,
        seconds: 0.05,
        trial_s: 0.05,
        trials: 1,
        width: 0.2,
        latency_s: 0.1,
        sizes: &[64, 1518],
        most: 3,
    };

    /// The effort that the options ask for: [`Effort::FULL`], [`Effort::MINIATURE`], otherwise
    /// [`Effort::QUICK`].
    pub fn of(full: bool, miniature: bool) -> Effort {
        match (full, miniature) {
            (true, _) => Effort::FULL,
            (_, true) => Effort::MINIATURE,
            _ => Effort::QUICK,
        }
    }

    /// What the effort means for a figure, in a sentence that stands first in its description.
    pub fn sentence(&self) -> String {
        let Effort { rounds, seconds, trial_s, latency_s, .. } = self;
        let rounds = counted(*rounds, "round");
        let measured = format!(
            "{rounds} of {seconds} s at saturation, {trial_s} s for a trial at a set rate, {latency_s} s for latency"
        );
        match self.name {
            "full" => format!("Full: {measured}."),
            "quick" => sentence_of(true, &measured),
            _ => format!("In miniature: {measured}, {DIRECTION}."),
        }
    }

    /// Whether this is [`Effort::MINIATURE`].
    pub fn is_miniature(&self) -> bool {
        self.name == Effort::MINIATURE.name
    }

    /// A goal with this effort's trials.
    pub fn goal(&self, goal: Goal) -> Goal {
        Goal { width: self.width, ..goal.quick(self.trial_s, self.trials) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, sentence_of};

    #[test]
    fn an_effort_says_what_it_means() {
        let quick = Effort::QUICK.sentence();
        assert!(quick.starts_with("Quick: 3 rounds of 0.15 s at saturation, 0.05 s for a trial"), "{quick}");
        assert!(quick.contains("not its last digits"), "{quick}");
        let full = Effort::FULL.sentence();
        assert!(full.starts_with("Full: 5 rounds of 0.5 s") && !full.contains("digits"), "{full}");
        assert_eq!(sentence_of(false, "5 rounds of 0.5 s"), "5 rounds of 0.5 s.");
    }
}
