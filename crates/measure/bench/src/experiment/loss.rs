//! Behaviour under too high loads: the frame loss curve (RFC 2544, section 26.3), and back-to-back frames
//! (section 26.4, as updated by RFC 9004).
//!
//! Ports are open-loop: frames arrive when they are due, in a ring with room for 1,024.

use super::lab::{Case, Lab, Mode, trial};
use crate::BenchError;
use crate::figure::{Axis, Figure};
use crate::load::{Batching, Observed, Offer, UnderTest};
use crate::search::Goal;
use crate::start::failed;
use crate::trial::Sample;
use crate::trial::Trials;
use crate::units::Rate;
use std::path::Path;

/// Loads of the curve, as shares of the load that is carried with half a percent of loss.
const SHARES: [f64; 9] = [0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0];
/// The longest run of frames back to back, in seconds: RFC 2544 asks for 2 s at least.
const LONGEST_S: f64 = 2.0;
/// The precision of the longest run, as a share of it.
const NEAR: f64 = 0.05;

const MODES: [Mode; 2] = [Mode::MODULAR, Mode::CACHED];

/// Measures the frame loss over the offered load, for each execution mode.
///
/// # Errors
/// When the chain cannot run.
pub fn loss(lab: &mut Lab, path: &Path) -> Result<Vec<Figure>, BenchError> {
    trial::check(path)?;
    // All rounds use the same loads: shares of the rate that was carried first.
    let mut cases = vec![];
    let mut carried = vec![];
    for mode in MODES {
        lab.tell(&format!("loss: what is carried, {}", mode.name));
        let chain = trial::open(path, &lab.run_options(mode, None), Batching::Adaptive)?;
        let (pdr, is_doubtful) = trial::carried(lab, chain, Goal::PDR)?;
        let doubt =
            if is_doubtful { " (something else had the core, or cores were moved apart)" } else { "" };
        carried.push(format!("{} {:.3} Mpps{doubt}", mode.name, pdr / 1e6));
        if pdr <= 0.0 {
            return Err(failed("not even 1,000 frames a second are carried with half a percent of loss"));
        }
        cases.push(Case::new(mode.name, move |lab| {
            let chain = trial::open(path, &lab.run_options(mode, None), Batching::Adaptive)?;
            let passed = chain.passed();
            let trial_s = lab.effort.trial_s.max(0.1);
            let offers = SHARES.map(|share| (share * 100.0, Offer::even(share * pdr, trial_s)));
            let lost = |observed: &Observed| [(mode.name.into(), observed.loss_ratio(passed) * 100.0)];
            let mut samples = trial::offered(lab, chain, offers, lost)?;
            samples.iter_mut().for_each(|sample| sample.disturbed |= is_doubtful);
            Ok(samples)
        }));
    }
    let sheet = lab.sheet(
        "loss",
        "Frames lost over the offered load",
        &format!(
            "{}: open loop, at 50 to 200 % of what is carried with half a percent of loss.",
            path.display()
        ),
        (Axis::linear("offered", "% of what is carried"), Axis::linear("lost", "%")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.source = Some("RFC 2544, section 26.3".into());
    figure.settings.push(("carried with half a percent of loss".into(), carried.join(", ")));
    figure.add_note(format!(
        "Trials of {} s, where RFC 2544 asks for 60 s; loads by what is carried, where it goes down from the rate of a line.",
        lab.effort.trial_s.max(0.1)
    ));
    for mode in MODES {
        let values = (figure.at(mode.name, 200.0), figure.at(mode.name, 50.0));
        let told = format!("{}: at twice the load more is lost than at half (%)", mode.name);
        figure.expect(values, &told, |most, least| most > least);
    }
    Ok(vec![figure])
}

/// Measures the longest run of frames back to back at a line rate that the chain forwards without loss, over
/// the frame size.
///
/// # Errors
/// When the chain cannot run.
pub fn back_to_back(lab: &mut Lab, path: &Path, gbps: f64) -> Result<Vec<Figure>, BenchError> {
    trial::check(path)?;
    let cases = lab.effort.sizes.iter().flat_map(|size| MODES.map(|mode| (*size, mode)));
    let cases = cases.map(|(size, mode)| {
        Case::new(format!("{}, {size} bytes", mode.name), move |lab| {
            let mut chain = trial::open(path, &lab.run_options(mode, Some(size)), Batching::Adaptive)?;
            let line = Rate::Bits(gbps * 1e9).frames(f64::from(size));
            let (frames, disturbed) = longest(chain.as_mut(), line)?;
            trial::ended(lab, chain.into_chain())?;
            Ok(vec![Sample { series: mode.name.into(), x: f64::from(size), y: frames, disturbed }])
        })
    });
    let sheet = lab.sheet(
        "back-to-back",
        "Frames back to back without loss",
        &format!(
            "{}: the longest run of frames at the rate of a line of {gbps} Gbit/s that all come through, up to {LONGEST_S} s.",
            path.display()
        ),
        (Axis::log("frame size", "bytes"), Axis::log("frames", "")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.source = Some("RFC 2544, section 26.4; RFC 9004".into());
    let sizes = lab.effort.sizes.iter().map(|size| f64::from(*size));
    let all = sizes.map(|size| (size, LONGEST_S * Rate::Bits(gbps * 1e9).frames(size)));
    figure.add_note(format!(
        "What reaches {LONGEST_S} s is carried for as long as one likes: {}.",
        all.map(|(size, frames)| format!("{frames:.0} of {size} bytes")).collect::<Vec<_>>().join(", ")
    ));
    figure.add_note(format!(
        "RFC 2544 asks for 50 trials, averaged; here are {} rounds, each a search to {} %.",
        lab.effort.rounds,
        NEAR * 100.0
    ));
    Ok(vec![figure])
}

/// The most frames that come through at that rate, and whether most trials were disturbed.
fn longest(under_test: &mut dyn UnderTest, line: f64) -> Result<(f64, bool), BenchError> {
    let passed = under_test.passed();
    let mut trials = Trials::new(under_test);
    let mut comes_through = |frames: f64| -> Result<bool, BenchError> {
        let observed = trials.offer(&Offer::even(line, frames / line))?;
        // Where a chain drops packets by its rules, the share that comes out is not exact for a few frames.
        Ok(observed.missed == 0 && (passed < 1.0 || observed.loss_ratio(passed) == 0.0))
    };
    let most = (line * LONGEST_S).floor();
    let (mut carried, mut lost) = (1.0, most);
    if comes_through(most)? {
        carried = most;
    } else {
        while lost - carried > (carried * NEAR).max(1.0) {
            // The geometric mean halves the ratio of the bounds.
            let middle = (carried * lost).sqrt().floor().clamp(carried + 1.0, lost - 1.0);
            if comes_through(middle)? { carried = middle } else { lost = middle }
        }
    }
    Ok((carried, trials.tally.disturbed * 2 > trials.tally.trials))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries a rate, and buffers a number of frames above it.
    struct Buffer {
        rate: f64,
        places: f64,
    }

    impl UnderTest for Buffer {
        fn offer(&mut self, offer: &Offer) -> Result<Observed, BenchError> {
            let intended = offer.frames();
            let excess = (intended as f64 * (1.0 - self.rate / offer.load)).max(0.0);
            let lost = (excess - self.places).max(0.0) as u64;
            Ok(Observed {
                intended,
                arrived: intended,
                missed: lost,
                sent: intended - lost,
                disturbed: 0.0,
                is_far: false,
                seen: None,
                pacing: None,
            })
        }

        fn passed(&self) -> f64 {
            1.0
        }

        fn end(self: Box<Self>) -> Result<bool, BenchError> {
            Ok(true)
        }
    }

    #[test]
    fn the_longest_run_is_found() {
        // Half of the arriving frames are carried and 1,000 are buffered: 2,000 frames.
        let (found, disturbed) = longest(&mut Buffer { rate: 5e5, places: 1e3 }, 1e6).expect("found");
        assert!((1_900.0..=2_002.0).contains(&found) && !disturbed, "{found}");
        let (all, _) = longest(&mut Buffer { rate: 2e6, places: 0.0 }, 1e6).expect("found");
        assert_eq!(all, 2e6);
        let (one, _) = longest(&mut Buffer { rate: 1.0, places: 0.5 }, 1e6).expect("found");
        assert!(one <= 2.0, "{one}");
    }
}
