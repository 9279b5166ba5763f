//! What the chains of an experiment counted until they ended: their packets, the order of frames, and the
//! execution mode in which they ended. None of it depends on how busy the machine is, so what is expected of
//! it holds wherever the experiment runs, also in miniature.

use crate::figure::Expectation;
use crate::load::Observed;
use crate::shape::Shape;
use crate::trial::closed::PROCESS_NF;
use element::work::NodeCounter;
use runtime::running::Outcome;
use worker::Worker;
use worker::fusion::FusedRegion;

/// How many there were, and how many of them were as they should be.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct AsWanted {
    all: usize,
    wanted: usize,
}

/// The counts of all chains that have ended, added up.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Accounting {
    /// The chains, and those in which every element and every packet is accounted for.
    balanced: AsWanted,
    /// Packets received and made.
    came: u64,
    /// Packets sent.
    sent: u64,
    /// Packets dropped for a reason, merged into others, or held at the end.
    stayed: i128,
    /// Frames with stamps that came out.
    stamped: u64,
    /// Frames that came out twice, or after a later one of their flow.
    misplaced: u64,
    /// Fused chains, and those of them that ended as [`is_fused`] says.
    fused: AsWanted,
    /// Modular chains, and those of them in which no fused region ran at the end.
    modular: AsWanted,
    /// NFs in processes, and those of them that packets were given to.
    nfs: AsWanted,
}

impl AsWanted {
    fn add(&mut self, is_wanted: bool) {
        self.all += 1;
        self.wanted += usize::from(is_wanted);
    }

    /// Expects all of them to be as wanted, where there are any.
    fn expected(self, sentence: impl FnOnce(AsWanted) -> String) -> Option<Expectation> {
        (self.all > 0).then(|| Expectation::of_counts(sentence(self), self.wanted == self.all))
    }
}

impl Accounting {
    /// Adds a chain that ran in this execution mode; `None` for that of its file, which is not checked.
    pub fn add_chain(&mut self, shape: Option<Shape>, outcome: &Outcome) {
        let report = &outcome.report;
        self.balanced.add(outcome.is_balanced());
        for node in &report.nodes {
            self.came += node.received + node.made;
            self.sent += node.sent;
            self.stayed += i128::from(node.dropped_total() + node.merged) + i128::from(node.held);
            if node.class == PROCESS_NF {
                self.nfs.add(node.input > 0);
            }
        }
        match shape {
            Some(Shape::Modular) => {
                let mut regions = outcome.workers.iter().flat_map(|worker| &worker.regions);
                self.modular.add(!regions.any(FusedRegion::is_ready));
            }
            Some(_) => self.fused.add(outcome.workers.iter().all(is_fused)),
            None => {}
        }
    }

    /// Adds the frames of a trial, where they had stamps.
    pub fn add_trial(&mut self, observed: &Observed) {
        if let Some(seen) = &observed.seen {
            self.stamped += seen.frames;
            self.misplaced += seen.duplicates + seen.reordered;
        }
    }

    /// What is expected of these counts.
    pub fn expected(&self) -> Vec<Expectation> {
        let Accounting { came, sent, stayed, stamped, misplaced, .. } = self;
        let missing = i128::from(*came) - i128::from(*sent) - stayed;
        let packets = self.balanced.expected(|AsWanted { all, wanted }| {
            format!(
                "of {came} packets {sent} were sent, {stayed} dropped, merged or held, and {missing} are missing; \
                 {wanted} of {all} chains account for all of theirs"
            )
        });
        let packets = packets.map(|mut packets| {
            packets.holds &= *came > 0 && missing == 0;
            packets
        });
        let frames = (*stamped > 0).then(|| {
            let sentence = format!(
                "of {stamped} stamped frames {misplaced} came out twice or after a later one of their flow"
            );
            Expectation::of_counts(sentence, *misplaced == 0)
        });
        let fused = self.fused.expected(|AsWanted { all, wanted }| {
            format!(
                "{wanted} of {all} fused chains ended as one program in each region, without elements beside"
            )
        });
        let modular = self.modular.expected(|AsWanted { all, wanted }| {
            format!("{wanted} of {all} modular chains ended without a fused region that ran")
        });
        let nfs = self.nfs.expected(|AsWanted { all, wanted }| {
            format!("{wanted} of {all} NFs in processes were given packets")
        });
        [packets, frames, fused, modular, nfs].into_iter().flatten().collect()
    }
}

/// Whether all fused regions of a worker ran as one program each, and packets entered no element outside of
/// them: at most one where there is no region, because a single element is none. Elements that send packets
/// and NFs in processes are no parts of regions.
fn is_fused(worker: &Worker) -> bool {
    let is_part = |at: usize| worker.regions.iter().any(|region| region.parts.contains(&at));
    let beside = worker.nodes.iter().enumerate().filter(|(at, node)| {
        let sent = node.counters.counts[NodeCounter::Sent as usize].get();
        node.counters.input.get() > 0 && sent == 0 && node.class.name != PROCESS_NF && !is_part(*at)
    });
    worker.regions.iter().all(FusedRegion::is_ready)
        && beside.count() <= usize::from(worker.regions.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::testing::chain;
    use crate::start::{RunOptions, RunningChain};
    use crate::trial::closed::ClosedLoop;

    fn ran(nf: &str, shape: Shape) -> (RunningChain, Option<Shape>) {
        let (_folder, path) = chain(nf);
        let run = RunOptions { burst: 32, slots: 8192, shape: Some(shape), ..RunOptions::default() };
        (ClosedLoop::warmed_up(&path, &run).expect("it runs"), Some(shape))
    }

    fn counted(chains: impl IntoIterator<Item = (RunningChain, Option<Shape>)>) -> Vec<Expectation> {
        let mut accounting = Accounting::default();
        for (chain, shape) in chains {
            accounting.add_chain(shape, &chain.end());
        }
        accounting.expected()
    }

    const CHECKED: &str = "FromDevice(0) -> CheckIPHeader(14) -> DecIPTTL -> ToDevice(1);";

    #[test]
    fn packets_and_modes_of_chains_are_counted() {
        let expected = counted([ran(CHECKED, Shape::Modular), ran(CHECKED, Shape::Fused)]);
        let sentences: Vec<&str> = expected.iter().map(|one| one.sentence.as_str()).collect();
        let [packets, fused, modular] = sentences.as_slice() else { panic!("{sentences:#?}") };
        assert!(packets.ends_with("and 0 are missing; 2 of 2 chains account for all of theirs"), "{packets}");
        assert!(fused.starts_with("1 of 1 fused") && modular.starts_with("1 of 1 modular"), "{sentences:?}");
        assert!(expected.iter().all(|one| one.holds && one.counted), "{expected:#?}");
    }

    #[test]
    fn a_chain_that_runs_in_another_mode_is_noticed() {
        let ((fused, _), (modular, _)) = (ran(CHECKED, Shape::Fused), ran(CHECKED, Shape::Modular));
        let expected = counted([(fused, Some(Shape::Modular)), (modular, Some(Shape::Fused))]);
        let holds: Vec<bool> = expected.iter().map(|one| one.holds).collect();
        assert_eq!(holds, [true, false, false], "{expected:#?}");
        let holds = |nf: &str| {
            let expected = counted([ran(nf, Shape::Fused)]);
            expected.iter().find(|one| one.sentence.contains("fused chains")).expect("counted").holds
        };
        assert!(holds("FromDevice(0) -> EtherMirror -> ToDevice(1);"), "a single element is no region");
        let beside = "FromDevice(0) -> CheckIPHeader(14) -> DecIPTTL -> Queue -> RatedUnqueue(1000000) \
                      -> ToDevice(1);";
        assert!(!holds(beside), "a queue in which packets wait is no part of a region");
    }

    #[test]
    fn frames_out_of_order_and_nfs_without_packets_are_noticed() {
        let mut accounting = Accounting { came: 9, sent: 8, stayed: 0, stamped: 5, ..Accounting::default() };
        accounting.balanced.add(true);
        accounting.nfs.add(true);
        let holds = |accounting: &Accounting| -> Vec<bool> {
            accounting.expected().iter().map(|one| one.holds).collect()
        };
        // A packet is missing.
        assert_eq!(holds(&accounting), [false, true, true]);
        accounting.stayed = 1;
        assert_eq!(holds(&accounting), [true, true, true]);
        accounting.misplaced = 1;
        accounting.nfs.add(false);
        assert_eq!(holds(&accounting), [true, false, false]);
        assert!(Accounting::default().expected().is_empty());
    }
}
