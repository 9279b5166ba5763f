//! The comparison class by class.
//!
//! For each class of the elements, it asks whether a packet of it can be in a class of the fused program with
//! a different outcome. Identical bits need no question; the solver decides all others. The solver also
//! checks that the classes cover all packets.

use crate::blast::Blaster;
use crate::gates::{Answer, Bit};
use crate::outcome::{Outcome, differences, outcome};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use synth::classes::Classes;

/// The time limit for one question.
const QUESTION: Duration = Duration::from_secs(10);

/// The results for pairs of classes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pairs {
    /// All pairs of one entry.
    pub all: usize,
    /// Pairs whose outcomes have identical bits.
    pub same: usize,
    /// Pairs with different outcomes, but no packet is in both.
    pub apart: usize,
    /// Pairs that are equal for the packets in both, according to the solver.
    pub equal: usize,
    /// Pairs that were not decided.
    pub open: usize,
}

/// The result of the comparison.
#[derive(Clone, Default, Debug)]
pub struct Comparison {
    /// Pairs of classes.
    pub pairs: Pairs,
    /// Entries whose classes cover all packets, according to the solver: of the elements, and of the program.
    pub covered: [usize; 2],
    /// The time for comparing each class of the elements.
    pub times: BTreeMap<usize, Duration>,
    /// Classes whose outcomes or filters were not compared for lack of time, or not decided; and why.
    pub open: Vec<String>,
}

/// A class's filter and outcome.
pub struct Filtered {
    /// Its number.
    pub class: usize,
    /// Whether a packet passes its filter.
    pub filter: Bit,
    /// Its effects.
    pub outcome: Outcome,
}

/// The classes of an entry as bits; fewer once no more gates are made.
pub fn of_entry(blaster: &mut Blaster<'_>, classes: &Classes, entry: usize) -> Vec<Filtered> {
    let of_entry = classes.classes.iter().enumerate().filter(|(_, class)| class.entry == entry);
    of_entry
        .map_while(|(at, class)| {
            let (filter, outcome) = (blaster.filter(&class.filter), outcome(blaster, class));
            (!blaster.gates.is_over()).then_some(Filtered { class: at, filter, outcome })
        })
        .collect()
}

/// Compares the classes of one entry. `suspect` is called with the classes, of the elements and of the
/// program, of a packet that the solver found; it returns whether to continue.
pub fn compare(
    blaster: &mut Blaster<'_>,
    (elements, program): (&[Filtered], &[Filtered]),
    entry: usize,
    into: &mut Comparison,
    suspect: &mut dyn FnMut(usize, usize) -> bool,
) {
    for (at, side) in [elements, program].into_iter().enumerate() {
        let none: Vec<Bit> = side.iter().map(|class| !class.filter).collect();
        match blaster.gates.ask(&none, QUESTION) {
            Answer::Never => into.covered[at] += 1,
            answer => into.open.push(format!(
                "entry {entry}: whether the {} classes of {} are all packets is {}",
                side.len(),
                ["the elements", "the fused program"][at],
                if answer == Answer::Found { "not so" } else { "not decided" }
            )),
        }
    }
    for (at, mine) in elements.iter().enumerate() {
        let start = Instant::now();
        if blaster.gates.is_over() {
            let left = elements.len() - at;
            into.pairs.all += left * program.len();
            into.pairs.open += left * program.len();
            into.open
                .push(format!("entry {entry}: {left} classes of the elements, for lack of time or memory"));
            return;
        }
        into.pairs.all += program.len();
        let mut open: Vec<&Filtered> =
            program.iter().filter(|theirs| theirs.outcome != mine.outcome).collect();
        into.pairs.same += program.len() - open.len();
        while !open.is_empty() {
            let others: Vec<Bit> = open.iter().map(|theirs| theirs.filter).collect();
            let any = blaster.gates.any_if_asked(&others);
            match blaster.gates.ask(&[mine.filter, any], QUESTION) {
                Answer::Never => {
                    into.pairs.apart += open.len();
                    break;
                }
                Answer::Unknown => {
                    into.pairs.open += open.len();
                    into.open.push(format!(
                        "entry {entry}: which of {} classes of the fused program packets of class {} \
                         of the elements are in",
                        open.len(),
                        mine.class + 1
                    ));
                    break;
                }
                Answer::Found => {}
            }
            let met = open.iter().position(|theirs| blaster.gates.bit(theirs.filter));
            let Some(met) = met else { break };
            let theirs = open.swap_remove(met);
            match decide(blaster, [mine, theirs]) {
                Decided::Equal => into.pairs.equal += 1,
                Decided::Not { is_found, parts } => {
                    into.pairs.open += 1;
                    let go_on = !is_found || suspect(mine.class, theirs.class);
                    into.open.push(format!(
                        "entry {entry}: class {} of the elements and class {} of the fused program: {}",
                        mine.class + 1,
                        theirs.class + 1,
                        parts.join(", ")
                    ));
                    if !go_on {
                        return;
                    }
                }
            }
        }
        into.times.insert(mine.class, start.elapsed());
    }
}

/// What was decided about the outcomes of two classes for packets that are in both.
enum Decided {
    /// They are equal.
    Equal,
    /// The solver found a packet for which these parts differ, or could not decide about these.
    Not { is_found: bool, parts: Vec<String> },
}

/// The time in which all parts of two outcomes are compared at once, before each is compared by itself.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Decides whether two classes do the same for packets that are in both.
fn decide(blaster: &mut Blaster<'_>, [mine, theirs]: [&Filtered; 2]) -> Decided {
    let different = differences(blaster, &mine.outcome, &theirs.outcome);
    let gates = &mut blaster.gates;
    let bits: Vec<Bit> = different.iter().map(|different| different.bit).collect();
    let any = gates.any(&bits);
    match gates.ask(&[mine.filter, theirs.filter, any], AT_ONCE) {
        Answer::Never => return Decided::Equal,
        Answer::Found => {
            let named = different.iter().filter(|different| gates.bit(different.bit));
            let mut parts: Vec<String> = named.map(|different| different.what.clone()).collect();
            parts.dedup();
            return Decided::Not { is_found: true, parts };
        }
        Answer::Unknown => {}
    }
    // Part by part. What is decided about one is a clause that helps with the next.
    let until = Instant::now() + QUESTION;
    let mut parts = vec![];
    for same in different.chunk_by(|a, b| a.what == b.what) {
        let bits: Vec<Bit> = same.iter().map(|different| different.bit).collect();
        let any = gates.any(&bits);
        match gates.ask(&[mine.filter, theirs.filter, any], until.duration_since(Instant::now())) {
            Answer::Never => gates.clause(&[!mine.filter, !theirs.filter, !any]),
            Answer::Found => return Decided::Not { is_found: true, parts: vec![same[0].what.clone()] },
            Answer::Unknown => parts.push(same[0].what.clone()),
        }
    }
    if parts.is_empty() { Decided::Equal } else { Decided::Not { is_found: false, parts } }
}
