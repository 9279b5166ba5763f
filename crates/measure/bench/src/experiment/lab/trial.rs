//! Measures a chain: at saturation, at set rates, or without loss.

use super::Lab;
use crate::BenchError;
use crate::load::{Batching, ChainOptions, ChainUnderTest, Observed, Offer};
use crate::search::{Goal, Limits, search_one};
use crate::start::{Loaded, RunOptions, RunningChain, failed};
use crate::trial::closed::ClosedLoop;
use crate::trial::{Sample, Trials};
use chain::{PortKind, PortSource};
use std::path::Path;

/// Capacity of a port's receive ring, in frames.
pub const RING: u64 = 1_024;
/// The note of figures from trials at set rates.
pub fn open_loop(seconds: f64) -> String {
    format!(
        "Open loop: frames are due whether the chain is ready or not. Trials of {seconds} s, where RFC 2544 asks for 60 s \
         (throughput) and 120 s (latency): these do not conform to it."
    )
}

/// The least frames of a trial at a low rate.
const LEAST_FRAMES: f64 = 20.0;
/// The lowest and the highest load of a search, in frames a second, and the seconds that it may take.
const LIMITS: Limits = Limits { least: 1_000.0, most: 200e6, patience_s: 600.0 };

/// Refuses a chain without generated traffic, before any measurement.
///
/// # Errors
/// When the chain has no generated traffic, or has errors.
pub fn check(path: &Path) -> Result<(), BenchError> {
    let loaded = Loaded::read(path)?;
    let is_made = |kind: &PortKind| matches!(kind, PortKind::Local(PortSource::Traffic(_), _));
    if loaded.chain.ports.iter().any(|port| is_made(&port.kind)) {
        return Ok(());
    }
    let told = "what a chain carries is measured with generated traffic: give a port `traffic = { … }`, as in \
                examples/throughput/chain.toml";
    Err(BenchError::BadText(format!("{}: {told}", path.display())))
}

/// Throughput of a chain at saturation in Mpps, and whether the measurement was disturbed: something else had
/// the core for too long, or the cores that share packets were far apart.
///
/// # Errors
/// When the chain has errors, no packets arrive, or not every packet is accounted for.
pub fn saturation(lab: &Lab, path: &Path, run: &RunOptions) -> Result<(f64, bool), BenchError> {
    let chain = ClosedLoop::warmed_up(path, run)?;
    let was_far = !chain.await_near();
    let window = chain.watch(lab.effort.seconds);
    let is_far = was_far || chain.is_far();
    ended(lab, chain)?;
    let window = window?;
    Ok((window.per_second(window.packets) / 1e6, is_far || window.is_disturbed()))
}

/// Ends a chain, and counts its packets.
///
/// # Errors
/// When not every packet is accounted for.
pub fn ended(lab: &Lab, chain: RunningChain) -> Result<(), BenchError> {
    let shape = chain.shape;
    let outcome = chain.end();
    lab.accounting.borrow_mut().add_chain(shape, &outcome);
    if outcome.is_balanced() {
        Ok(())
    } else {
        Err(failed("not every packet was accounted for; this is a defect"))
    }
}

/// Starts a chain under test, to which loads can be offered.
///
/// # Errors
/// As [`ChainUnderTest::start`].
pub fn open(path: &Path, run: &RunOptions, batching: Batching) -> Result<Box<ChainUnderTest>, BenchError> {
    let options = ChainOptions { run: run.clone(), ring: RING, batching, parts: false };
    Ok(Box::new(ChainUnderTest::start(path, &options)?))
}

/// The same, and the parts of latencies are recorded.
///
/// # Errors
/// As [`ChainUnderTest::start`].
pub fn open_timed(path: &Path, run: &RunOptions) -> Result<Box<ChainUnderTest>, BenchError> {
    let options = ChainOptions { run: run.clone(), ring: RING, batching: Batching::Adaptive, parts: true };
    Ok(Box::new(ChainUnderTest::start(path, &options)?))
}

/// Offers one load after the other to a chain, each at its place on the x axis, then ends it. `values` has
/// the curves and the values of what was observed.
///
/// # Errors
/// When nothing can be measured, or not every packet is accounted for.
pub fn offered<Values: IntoIterator<Item = (String, f64)>>(
    lab: &Lab,
    mut chain: Box<ChainUnderTest>,
    offers: impl IntoIterator<Item = (f64, Offer)>,
    values: impl Fn(&Observed) -> Values,
) -> Result<Vec<Sample>, BenchError> {
    let mut trials = Trials::new(chain.as_mut());
    let mut samples = vec![];
    let all = offers.into_iter().try_for_each(|(x, offer)| {
        let observed = trials.offer(&offer)?;
        lab.accounting.borrow_mut().add_trial(&observed);
        let disturbed = observed.is_disturbed();
        samples.extend(values(&observed).into_iter().map(|(series, y)| Sample { series, x, y, disturbed }));
        Ok(())
    });
    ended(lab, chain.into_chain())?;
    all.map(|()| samples)
}

/// Median and 99th percentile of latency, in microseconds, where something was seen: at each place of `loads`
/// with frames that come at that rate.
///
/// # Errors
/// As [`open`] and [`offered`].
pub fn latencies(
    lab: &Lab,
    path: &Path,
    (run, batching): (&RunOptions, Batching),
    name: &str,
    loads: &[(f64, f64)],
) -> Result<Vec<Sample>, BenchError> {
    let offers = loads.iter().map(|(x, rate)| (*x, Offer::sampled(*rate, latency_s(lab, *rate))));
    offered(lab, open(path, run, batching)?, offers, |observed| {
        let us = |(told, quantile): (&str, f64)| {
            Some((format!("{name}, {told}"), observed.latency()?.value_at_quantile(quantile) as f64 / 1e3))
        };
        [("median", 0.5), ("99 %", 0.99)].map(us).into_iter().flatten()
    })
}

/// Seconds of a latency trial at a rate.
pub fn latency_s(lab: &Lab, rate: f64) -> f64 {
    lab.effort.latency_s.max(LEAST_FRAMES / rate)
}

/// Searches for the frames a second that a chain carries by a goal; also returns whether most trials were
/// disturbed, even after repeats.
///
/// # Errors
/// When nothing can be measured, or not every packet is accounted for.
pub fn carried(lab: &Lab, mut chain: Box<ChainUnderTest>, goal: Goal) -> Result<(f64, bool), BenchError> {
    let mut trials = Trials::new(chain.as_mut());
    let found = search_one(lab.effort.goal(goal), &LIMITS, &mut trials);
    let disturbed = trials.tally.disturbed * 2 > trials.tally.trials;
    ended(lab, chain.into_chain())?;
    Ok((found?.throughput(), disturbed))
}
