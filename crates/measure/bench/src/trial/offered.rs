//! Loads at a set rate, in trials that are repeated when something else disturbed them.

use super::again::{REPEATS, again};
use crate::BenchError;
use crate::load::{Observed, Offer, UnderTest};
use crate::search::{Measurer, Trial};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of trials, and of disturbed ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Trials, without their repeats.
    pub trials: usize,
    /// Repeats, because something else had a worker's core, or cores were far apart.
    pub repeated: usize,
    /// Trials that were still disturbed after their repeats.
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

/// Offers loads to a system under test, and repeats disturbed trials.
pub struct Trials<'a, U: UnderTest + ?Sized = dyn UnderTest> {
    /// The system.
    pub under_test: &'a mut U,
    is_stamped: bool,
    /// The most repeats of a trial.
    repeats: usize,
    /// The trials so far.
    pub tally: Tally,
}

impl<'a, U: UnderTest + ?Sized> Trials<'a, U> {
    /// Trials with this system under test, without stamps in a search.
    pub fn new(under_test: &'a mut U) -> Trials<'a, U> {
        Trials { under_test, is_stamped: false, repeats: REPEATS, tally: Tally::default() }
    }

    /// Repeats no trial: disturbed ones are only counted.
    #[must_use]
    pub fn once(self) -> Trials<'a, U> {
        Trials { repeats: 0, ..self }
    }

    /// Makes a search offer frames with stamps, so that it finds the rate that is carried with stamps.
    #[must_use]
    pub fn stamped(self) -> Trials<'a, U> {
        Trials { is_stamped: true, ..self }
    }

    /// Offers a load in one trial, and repeats it while it is disturbed: up to [`REPEATS`] times, unless none is
    /// to be repeated.
    ///
    /// # Errors
    /// When nothing can be measured.
    pub fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
        self.tally.trials += 1;
        let (observed, repeated) =
            again(self.repeats, || self.under_test.offer(offer), Observed::is_disturbed)?;
        self.tally.repeated += repeated;
        self.tally.disturbed += usize::from(observed.is_disturbed());
        Ok(observed)
    }
}

impl<U: UnderTest + ?Sized> Measurer for Trials<'_, U> {
    fn measure(&mut self, load: f64, duration_s: f64) -> Result<Trial, BenchError> {
        let observed = self.offer(&Offer { stamped: self.is_stamped, ..Offer::even(load, duration_s) })?;
        Ok(Trial { load, duration_s, loss_ratio: observed.loss_ratio(self.under_test.passed()) })
    }
}
