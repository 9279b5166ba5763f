//! The frame sizes of a data centre, as Niu et al. send them: at the rate of 10 GbE, and at what links of a
//! data centre are used.

use super::curves::crowded;
use crate::BenchError;
use crate::experiment::lab::{Case, Lab, Mode, Nf, trial};
use crate::figure::{Axis, Figure};
use crate::load::{Batching, Offer};
use crate::start::RunOptions;
use runtime::traffic::Change;
use traffic::SizeMix;

const PLACE: &str = "Niu et al., section 4.1: Xeon E5-2650 v2, 10 GbE";
/// What SoftNIC and BESS carry of the mix at the rate of 10 GbE, in Mpps.
const WHOLE: f64 = 8.662;
/// Loads, in per cent of 10 GbE: the median use of a data centre's links, and all.
const SHARES: [f64; 3] = [10.0, 20.0, 100.0];
const MODES: [Mode; 3] = [Mode::CACHED, Mode::MODULAR, Mode::PROCESS];

/// The frames a second that a share of 10 GbE is, of this mix.
fn frames(share: f64) -> f64 {
    WHOLE * 1e6 * share / 100.0
}

/// Section 4.1: what is forwarded of the mix.
pub fn mix(lab: &mut Lab) -> Result<Vec<Figure>, BenchError> {
    let shares: &[f64] = if lab.effort.is_miniature() { &[1.0, 10.0] } else { &SHARES };
    let trial_s = lab.effort.trial_s.max(0.1);
    let nfs = [Nf::L3, Nf::FIREWALL];
    let cases = nfs.into_iter().flat_map(|nf| MODES.map(|mode| (nf, mode))).map(|(nf, mode)| {
        let name = format!("{}, {}", nf.name, mode.name);
        Case::new(name.clone(), move |lab| {
            let path = lab.row(&[nf], mode)?;
            let change = Change { size: Some(SizeMix::DataCentre), ..Change::default() };
            let run = RunOptions { change, ..lab.run_options(mode, None) };
            let chain = trial::open(&path, &run, Batching::Adaptive)?;
            let offers = shares.iter().map(|share| (*share, Offer::even(frames(*share), trial_s)));
            trial::offered(lab, chain, offers, |seen| [(name.clone(), seen.sent as f64 / trial_s / 1e6)])
        })
    });
    let sheet = lab.sheet(
        "niu-mix",
        "Frame sizes of a data centre",
        "L3 forwarding and a firewall, open loop, frames of a web server cluster's sizes (median 120 bytes, most below 256, \
         124.3 on average): at a tenth and a fifth of 10 GbE, which links of data centres are used to, and at all of it.",
        (Axis::linear("offered", "% of 10 GbE"), Axis::linear("forwarded", "Mpps")),
    );
    let mut figure = lab.sweep(sheet, cases);
    figure.add_note(trial::open_loop(trial_s));
    for (nf, mode) in nfs.into_iter().flat_map(|nf| MODES.map(|mode| (nf, mode))) {
        let name = format!("{}, {}", nf.name, mode.name);
        for share in shares {
            let values = (figure.at(&name, *share), Some(frames(*share) / 1e6));
            let told = format!("{name}: {share} % of 10 GbE is carried (Mpps)");
            // With the half per cent of loss of a partial drop rate.
            figure.expect(values, &told, |own, due| own >= due * 0.995);
        }
    }
    let stated = shares.iter().map(|share| (*share, frames(*share) / 1e6));
    figure.paper("SoftNIC and BESS", PLACE, stated);
    figure.add_note(
        "The papers state 8.662 Mpps for SoftNIC at the rate of 10 GbE, and that both dataplanes carry a tenth and a fifth of \
         that at the lowest clock. The distribution here is this project's own, made for the three values that they publish \
         of theirs.",
    );
    crowded(lab, &mut figure, 1);
    Ok(vec![figure])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use crate::units::Rate;

    #[test]
    fn a_mix_at_the_rate_of_ten_gigabits_is_what_the_paper_says() {
        // 124.3 bytes on average, FCS counted.
        assert!((Rate::Bits(10e9).frames(124.3) / frames(100.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn the_mix_is_forwarded() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut tell = |_: &str| {};
        let mut lab = Lab::new(Effort::MINIATURE, folder.path(), &mut tell);
        let figures = mix(&mut lab).expect("a figure");
        let [figure] = figures.as_slice() else { panic!("{figures:#?}") };
        // Without the program nothing runs in a process.
        assert_eq!(figure.skipped.len(), 2, "{:#?}", figure.skipped);
        for name in ["L3FWD, modular", "firewall, fused, flow cache"] {
            let sent = [1.0, 10.0].map(|share| figure.at(name, share).expect("measured"));
            // A busy machine carries less, and none carries more than is offered.
            assert!(
                sent.iter()
                    .zip([1.0, 10.0])
                    .all(|(own, share)| *own > 0.0 && *own <= frames(share) / 1e6 * 1.01)
            );
        }
        assert_eq!(figure.expected.len(), 8);
        let counted = lab.take_accounting().expected();
        assert!(!counted.is_empty() && counted.iter().all(|one| one.holds), "{counted:#?}");
    }
}
