//! Proves that the program of a fused region is equivalent to its elements, one after the other.
//!
//! Two methods, which share no code:
//!
//! - *by all packets*: the traffic classes of both ([`synth::classes`]) are compared class by class. What is
//!   not decided by identical expressions and disjoint conditions (`entry_classes`, `containment`, `bounds`), a SAT solver (`solver`)
//!   decides bit by bit (`gates`, `blast`, `outcome`, `symbolic`);
//! - *by packets* of every class and at its boundaries, which run through the elements in the evaluator,
//!   through the fused program in the evaluator, and through its machine code (`trial`, `model`, `tables`,
//!   `run`). The next packets of their flows run by the flow cache's entry, too (`flow_entry`).
//!
//! The reference is not the linked program but the elements' own programs, composed over the wires
//! (`compose`). Both methods spread their work over the machine's threads (`parallel`), and the result does
//! not depend on which thread did what, but for what is left for the solver where a common budget is used up.

mod blast;
mod bounds;
mod class_templates;
mod compose;
mod conditions;
mod containment;
mod cover;
mod entry_classes;
mod flow_entry;
mod gates;
mod memory;
mod model;
mod outcome;
mod parallel;
mod record_forms;
mod run;
mod solver;
mod subgraph;
mod symbolic;
mod tables;
#[cfg(test)]
mod test_programs;
mod trial;

pub use class_templates::{ClassTemplate, templates};
pub use entry_classes::Pairs;
pub use run::{ByEntry, Leaves, Left, Observed, Three};
pub use solver::NAME as SOLVER;
pub use subgraph::FusedSubgraph;
pub use symbolic::Comparison;
pub use synth::link::Part;
pub use trial::{Counterexample, Tried};

use codegen::{CodegenError, Engine};
use compose::{Numbering, compose, renumber};
use entry_classes::{Covering, EntryClasses};
use parallel::Lowest;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use symbolic::Answered;
use synth::classes::{Class, Classes, Exit, Options};
use synth::deadline::Deadline;
use trial::{Found, Subject, Trial};

/// The limits of a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The time for the whole proof, with all of its parts.
    pub time: Duration,
    /// The maximum number of classes of each side and entry, and of paths followed at once.
    pub classes: usize,
    /// The maximum number of packets of each class; 0 for none.
    pub packets: usize,
    /// Whether the classes are compared.
    pub symbolic: bool,
    /// The time that the proof takes as a rule where nothing is open: packets only try the machine code then, and are
    /// run for what is left of it, but for half of it at most and for a fifth at least.
    pub usual: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let (time, usual) = (Duration::from_secs(60), Duration::from_millis(7500));
        Limits { time, classes: 20_000, packets: 64, symbolic: true, usual }
    }
}

/// The time that a class of the elements took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassCost {
    /// Its number.
    pub class: usize,
    /// The number of its entry.
    pub entry: usize,
    /// The time for comparing it with the program's classes.
    pub compared: Duration,
    /// The time for finding packets of it, and for running them.
    pub run: Duration,
}

/// The result of a proof.
pub struct Proof {
    /// A packet for which they differ.
    pub differs: Option<Box<Counterexample>>,
    /// Classes of the elements, and of the fused program.
    pub classes: [usize; 2],
    /// Paths of each that were not followed.
    pub left: [usize; 2],
    /// For each, whether that is for lack of time and not because of the limit of classes.
    pub late: [bool; 2],
    /// Entries.
    pub entries: usize,
    /// The result of comparing the classes.
    pub comparison: Comparison,
    /// Questions to the solver.
    pub questions: usize,
    /// Clauses of the questions.
    pub clauses: usize,
    /// Packets.
    pub tried: Tried,
    /// The time that the proof took.
    pub time: Duration,
    /// What each class of the elements took of it, the hardest first.
    pub costs: Vec<ClassCost>,
}

impl Proof {
    /// Whether they are equal: every packet is covered, and no difference was found.
    pub fn is_equal(&self) -> bool {
        self.differs.is_none()
            && self.left == [0, 0]
            && self.comparison.open.is_empty()
            && self.comparison.covered == [self.entries; 2]
    }
}

/// Why a region cannot be checked at all.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// No machine code.
    #[error("{0}")]
    Code(CodegenError),
    /// A program broke an invariant.
    #[error("a bug: {0}")]
    Broken(String),
}

/// The shares of the time by which the classes are known, and by which they are compared; the rest is for
/// packets.
const CLASSES: f64 = 0.5;
const COMPARED: f64 = 0.9;
/// Where nothing is open, a packet is looked for so long.
const SOON_FOUND: Duration = Duration::from_millis(100);
/// With more classes of the elements than this, [`LEAST_PACKETS`] of each are run then, so that more classes have some.
const SOON_MANY: usize = 400;
/// Else a packet is looked for so long.
const FOUND: Duration = Duration::from_secs(1);

/// Checks a fused region's program against its elements. Once `stop` is set, it returns what is known by
/// then.
///
/// # Errors
/// When the program cannot be compiled, or a program breaks an invariant: bugs.
pub fn prove(
    region: &FusedSubgraph<'_>,
    limits: &Limits,
    stop: &Arc<AtomicBool>,
) -> Result<Proof, ProveError> {
    let start = Instant::now();
    let deadline = Deadline::new(start + limits.time, Arc::clone(stop));
    let by = |share: f64| deadline.at_the_latest(start + limits.time.mul_f64(share));
    let (classes_by, compared_by) = (by(CLASSES), by(COMPARED));
    let numbers = Numbering::of(region);
    let reference = compose(region, &numbers)
        .map_err(|error| ProveError::Broken(format!("the elements as one: {error}")))?;
    let made = renumber(region, &numbers)
        .ok_or_else(|| ProveError::Broken("the fused program has an exit or table of no element".into()))?
        .map_err(|error| ProveError::Broken(format!("the fused program: {error}")))?;
    let most_expressions = Options::default().max_expressions;
    let options = Options {
        settled_cells: Some(region.cells),
        max_paths: limits.classes,
        // As few classes as possible: a class with many alternatives costs less than many classes.
        max_paths_apart: 1,
        drops_alike: true,
        stores_by_condition: true,
        // They have room in memory together.
        max_expressions: most_expressions.min(2 * most_expressions / region.entries.len().max(1)),
        deadline: Some(&classes_by),
        ..Options::default()
    };
    let walk = |entry: usize, leave: &mut dyn FnMut(Covering)| {
        let mut none = |_| ();
        let leave = if limits.symbolic { leave } else { &mut none };
        let walked = [&reference, &made];
        let mut classes = EntryClasses::walk(walked, entry, &options, (cover::TOGETHER, leave));
        if limits.symbolic {
            classes.sort(&compared_by, cover::TOGETHER);
        }
        classes
    };
    let cover = |covering: Covering| symbolic::answer_covering(&covering, &compared_by);
    let walked = parallel::each_leaving(parallel::threads(), region.entries.len(), walk, cover);
    let (mut entries, coverings): (Vec<EntryClasses>, Vec<Vec<Answered>>) = walked.into_iter().unzip();
    let mut counts = [0, 0];
    for entry in &mut entries {
        entry.first = counts;
        counts[0] += entry.elements.classes.len();
        counts[1] += entry.program.classes.len();
    }
    let sides: [fn(&EntryClasses) -> &Classes; 2] = [|entry| &entry.elements, |entry| &entry.program];
    let subject = Subject {
        region,
        numbers: &numbers,
        reference: &reference,
        engine: Engine::native(&Arc::new(region.fused.clone())).map_err(ProveError::Code)?,
        deadline: &deadline,
        search: FOUND,
    };
    let mut proof = Proof {
        differs: None,
        classes: counts,
        left: sides.map(|side| entries.iter().map(|entry| side(entry).left.len()).sum()),
        late: sides.map(|side| entries.iter().any(|entry| side(entry).is_late)),
        entries: entries.len(),
        comparison: Comparison::default(),
        questions: 0,
        clauses: 0,
        tried: Tried::default(),
        time: Duration::ZERO,
        costs: vec![],
    };
    let run_soon = |threads: usize| {
        let left = limits.usual.saturating_sub(start.elapsed()).clamp(limits.usual / 5, limits.usual / 2);
        let soon = deadline.at_the_latest(Instant::now() + left);
        let subject = subject.within(&soon, SOON_FOUND);
        let enough = (counts[0] <= SOON_MANY).then_some(ENOUGH_PACKETS);
        run_packets(&subject, &entries, (limits.packets, enough), threads)
    };
    let mut found = Found::default();
    let mut ran = None;
    if limits.symbolic {
        let mut compare = |threads| {
            compare(&subject, (&entries, &coverings), (&compared_by, threads), &mut proof, &mut found);
        };
        let has_parts = entries.iter().any(|entry| !entry.parts.is_empty());
        let mut all = entries.iter().zip(&coverings);
        let is_nearly_shown = all.all(|(entry, coverings)| symbolic::is_nearly_shown(entry, coverings));
        if has_parts && is_nearly_shown && limits.packets > 0 {
            // All that is left is whether classes are all packets, or have none, for one thread.
            ran = Some(parallel::both(|| compare(1), run_soon).1);
        } else {
            compare(parallel::threads());
        }
    }
    if !found.is_end() && limits.packets > 0 {
        let (times, more) = match (proof.is_equal(), ran) {
            (_, Some(ran)) if ran.1.is_end() => ran,
            (true, Some(ran)) => ran,
            (true, None) => run_soon(parallel::threads()),
            (false, _) => {
                run_packets(&subject, &entries, (limits.packets, Some(ENOUGH_PACKETS)), parallel::threads())
            }
        };
        found.add(more);
        let classes = entries.iter().flat_map(|entry| &entry.elements.classes);
        for (number, class) in classes.enumerate() {
            let compared = proof.comparison.times.get(&number).copied().unwrap_or_default();
            let run = times.get(&number).copied().unwrap_or_default();
            proof.costs.push(ClassCost { class: number, entry: class.entry, compared, run });
        }
        proof.costs.sort_by_key(|cost| std::cmp::Reverse(cost.compared + cost.run));
    }
    if let Some(broken) = found.broken {
        return Err(ProveError::Broken(broken));
    }
    Ok(Proof { differs: found.differs, tried: found.tried, time: start.elapsed(), ..proof })
}

/// Compares the classes of all entries. Each part is a job.
fn compare<'s>(
    subject: &'s Subject<'s>,
    (entries, coverings): (&[EntryClasses], &[Vec<Answered>]),
    (deadline, threads): (&Deadline, usize),
    proof: &mut Proof,
    found: &mut Found,
) {
    let parts: Vec<_> =
        entries.iter().flat_map(|entry| entry.parts.iter().map(move |part| (entry, part))).collect();
    let weights: Vec<usize> = parts.iter().map(|(entry, part)| entry.weight(part)).collect();
    let lowest = Lowest::default();
    let job = |trial: &mut Option<Trial<'s>>, job: usize| {
        let mut found = Found::default();
        if lowest.is_before(job) {
            return (Answered::default(), found);
        }
        let (entry, part) = parts[job];
        let answered = symbolic::answer(entry, part, deadline, &mut |mine, theirs| {
            match own(trial, subject) {
                Ok(trial) => {
                    let (elements, program) = (&entry.elements, &entry.program);
                    trial.begin(job);
                    trial.find(elements, &elements.classes[mine], &program.classes[theirs]);
                    found.add(trial.end());
                }
                Err(error) => found.broken = Some(error.to_string()),
            }
            !found.is_end()
        });
        if found.is_end() {
            lowest.found(job);
        }
        (answered, found)
    };
    let mut answers = parallel::each(threads, &weights, || None, job).into_iter();
    for (entry, coverings) in entries.iter().zip(coverings) {
        for answered in coverings {
            proof.questions += answered.questions;
            proof.clauses += answered.clauses;
        }
        let mut of_entry = vec![];
        for (answered, more) in answers.by_ref().take(entry.parts.len()) {
            // What was done beside or behind a difference is not part of the result.
            if !found.is_end() {
                proof.questions += answered.questions;
                proof.clauses += answered.clauses;
                of_entry.push(answered);
                found.add(more);
            }
        }
        proof.comparison.add(entry, coverings, of_entry);
    }
}

/// A thread's own means to run packets, which it has once it needs them.
fn own<'t, 'a>(
    trial: &'t mut Option<Trial<'a>>,
    subject: &'a Subject<'a>,
) -> Result<&'t mut Trial<'a>, CodegenError> {
    Ok(match trial {
        Some(trial) => trial,
        None => trial.insert(Trial::new(subject)?),
    })
}

/// The most classes whose packets are run one after the other: what of a flow's entries is tried depends on those
/// before.
const IN_A_ROW: usize = 256;
/// With more classes than this has room for, fewer packets of each are run: at least these.
const ENOUGH_PACKETS: usize = 20_000;
const LEAST_PACKETS: usize = 3;

/// A class, and for one of the elements its number among those of all entries.
type Numbered<'c> = (Option<usize>, &'c Class);

/// Classes with those first that are the first of their exit, then those that are the second, and so on.
fn in_turn<'c>(classes: impl Iterator<Item = Numbered<'c>>) -> Vec<Numbered<'c>> {
    let mut seen: BTreeMap<Exit, usize> = BTreeMap::new();
    let turns = classes.map(|numbered| {
        let turn = seen.entry(numbered.1.exit).or_default();
        *turn += 1;
        (*turn, numbered)
    });
    let mut turns: Vec<(usize, Numbered<'_>)> = turns.collect();
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, numbered)| numbered).collect()
}

/// Runs packets of the classes of both sides. Those of the program's that the elements have as they are need
/// no packets of their own. Of each class `most` are run, and fewer if there are more classes than `enough` has room for;
/// without it, there is time for some classes only: for the elements' of each exit in turn.
/// Returns the times of the elements' classes, and what was found.
fn run_packets<'s>(
    subject: &'s Subject<'s>,
    entries: &[EntryClasses],
    (most, enough): (usize, Option<usize>),
    threads: usize,
) -> (BTreeMap<usize, Duration>, Found) {
    let mut jobs: Vec<(&EntryClasses, Vec<Numbered<'_>>)> = vec![];
    for entry in entries {
        let elements = (entry.first[0]..).map(Some).zip(&entry.elements.classes);
        let others = entry.program.classes.iter().enumerate().filter(|(at, _)| !entry.twins.contains(at));
        let all: Vec<Numbered<'_>> = match enough {
            None => in_turn(elements),
            Some(_) => elements.chain(others.map(|(_, class)| (None, class))).collect(),
        };
        // Something for each thread, by a number that does not depend on the machine.
        let in_a_row = all.len().div_ceil(parallel::MOST_THREADS).clamp(1, IN_A_ROW);
        jobs.extend(all.chunks(in_a_row).map(|some| (entry, some.to_vec())));
    }
    let count: usize = jobs.iter().map(|(_, classes)| classes.len()).sum();
    let most = most.min((enough.unwrap_or(0) / count.max(1)).max(LEAST_PACKETS));
    let size = |(_, class): &Numbered<'_>| 1 + class.filter.0.len();
    let weights: Vec<usize> = match enough {
        None => (0..jobs.len()).rev().collect(),
        Some(_) => jobs.iter().map(|(_, classes)| classes.iter().map(size).sum()).collect(),
    };
    let lowest = Lowest::default();
    let job = |trial: &mut Option<Trial<'s>>, job: usize| {
        let mut times = vec![];
        let (entry, classes) = &jobs[job];
        let trial = match own(trial, subject) {
            Ok(trial) => trial,
            Err(error) => return (times, Found { broken: Some(error.to_string()), ..Found::default() }),
        };
        trial.begin(job);
        for (number, class) in classes {
            if trial.is_end() || lowest.is_before(job) {
                break;
            }
            let time = trial.class(&entry.elements, class, most);
            times.extend(number.map(|number| (number, time)));
        }
        let found = trial.end();
        if found.is_end() {
            lowest.found(job);
        }
        (times, found)
    };
    let (mut all, mut found) = (BTreeMap::new(), Found::default());
    for (times, more) in parallel::each(threads, &weights, || None, job) {
        if found.is_end() {
            break;
        }
        found.add(more);
        all.extend(times);
    }
    (all, found)
}
