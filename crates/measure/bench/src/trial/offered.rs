//! Loads at a set rate, in trials that are made again when something else disturbed them.

use super::again::{REPEATS, again};
use crate::BenchError;
use crate::load::{Observed, Offer, UnderTest};
use crate::search::{Measurer, Trial};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How it went with trials.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Trials that count.
    pub trials: usize,
    /// Trials that were made again because something else had a packet thread's core, or cores had been moved apart.
    pub repeated: usize,
    /// Trials that something else disturbed to the end.
    pub disturbed: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { trials, repeated, disturbed } = self;
        write!(
            out,
            "{trials} trials, {repeated} of them again because something else had the core or cores were moved apart, \
             {disturbed} disturbed to the end"
        )
    }
}

/// Offers loads to something, and makes disturbed trials again.
pub struct Trials<'a> {
    under_test: &'a mut dyn UnderTest,
    is_stamped: bool,
    /// How it went.
    pub tally: Tally,
}

impl<'a> Trials<'a> {
    /// With that under test.
    pub fn new(under_test: &'a mut dyn UnderTest) -> Trials<'a> {
        Trials { under_test, is_stamped: false, tally: Tally::default() }
    }

    /// The same, where a search offers frames with stamps, too: what is carried of those.
    #[must_use]
    pub fn stamped(self) -> Trials<'a> {
        Trials { is_stamped: true, ..self }
    }

    /// A trial, made again as long as it was disturbed, a few times.
    ///
    /// # Errors
    /// When nothing can be measured.
    pub fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
        self.tally.trials += 1;
        let (observed, repeated) = again(REPEATS, || self.under_test.offer(offer), Observed::is_disturbed)?;
        self.tally.repeated += repeated;
        self.tally.disturbed += usize::from(observed.is_disturbed());
        Ok(observed)
    }
}

impl Measurer for Trials<'_> {
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError> {
        let observed = self.offer(&Offer { stamped: self.is_stamped, ..Offer::even(load, duration_s) })?;
        Ok(Trial { load, duration_s, loss_ratio: observed.loss_ratio(self.under_test.passed()) })
    }
}
