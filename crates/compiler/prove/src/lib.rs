//! Proves that the program of a fused region is equivalent to its elements, one after the other.
//!
//! Two methods, which share no code:
//!
//! - *by all packets*: the traffic classes of both ([`synth::classes`]) are compared pair by pair; where
//!   their expressions are not identical, a SAT solver decides bit by bit (`gates`, `blast`, `outcome`,
//!   `symbolic`);
//! - *by packets* of every class and at its boundaries, which run through the elements in the evaluator,
//!   through the fused program in the evaluator, and through its machine code (`model`, `tables`, `run`). The
//!   next packets of their flows run by the flow cache's entry, too (`flow_entry`).
//!
//! The reference is not the linked program but the elements' own programs, composed over the wires
//! (`compose`).

mod blast;
mod class_templates;
mod compose;
mod conditions;
mod flow_entry;
mod gates;
mod memory;
mod model;
mod outcome;
mod record_forms;
mod run;
mod subgraph;
mod symbolic;
mod tables;

pub use class_templates::{ClassTemplate, templates};
pub use run::{ByEntry, Leaves, Left, Observed, Three};
pub use subgraph::FusedSubgraph;
pub use symbolic::{Comparison, Pairs};
pub use synth::link::Part;

use blast::Blaster;
use codegen::CodegenError;
use compose::{Numbering, compose, renumber};
use conditions::conditions;
use gates::{Answer, Bit};
use ir::{Program, Tables};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use run::Runs;
use shm::descriptor::HEADROOM;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use synth::classes::expr::Atom;
use synth::classes::packets::{CreatedPacket, World};
use synth::classes::{Class, Classes, Options};
use synth::deadline::Deadline;
use tables::TestTables;

/// The limits of a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The time for the whole proof, with all of its parts.
    pub time: Duration,
    /// The maximum number of classes of each side, and of paths followed at once.
    pub classes: usize,
    /// The maximum number of packets of each class; 0 for none.
    pub packets: usize,
    /// Whether the classes are compared.
    pub symbolic: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(60), classes: 20_000, packets: 24, symbolic: true }
    }
}

/// The packets that were run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tried {
    /// Number of packets.
    pub packets: usize,
    /// Classes, of both sides, for which a packet was run.
    pub classes: usize,
    /// Packets that were run by their flow's entry, and the templates of these entries.
    pub by_entry: [usize; 2],
    /// Classes for which no packet was found.
    pub missed: usize,
    /// Classes that have no packet of one segment, according to the solver.
    pub empty: usize,
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

/// A packet for which the two differ.
pub struct Counterexample {
    /// The entry.
    pub entry: usize,
    /// The packet.
    pub compiled: CreatedPacket,
    /// Its results.
    pub three: Three,
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

struct Prover<'a> {
    reference: &'a Program,
    cells: &'a [u64],
    /// The cells that programs write; the others are the configuration.
    written: Vec<bool>,
    runs: Runs<'a>,
    rng: Pcg64,
    deadline: Deadline,
    tried: Tried,
    differs: Option<Box<Counterexample>>,
    broken: Option<String>,
}

/// The shares of the time by which the elements' classes are known, then the program's, and by which they are
/// compared; the rest is for packets.
const CLASSES: [f64; 2] = [0.25, 0.5];
const COMPARED: f64 = 0.9;

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
    let (classes_by, compared_by) = (CLASSES.map(by), by(COMPARED));
    let numbers = Numbering::of(region);
    let reference = compose(region, &numbers)
        .map_err(|error| ProveError::Broken(format!("the elements as one: {error}")))?;
    let made = renumber(region, &numbers)
        .ok_or_else(|| ProveError::Broken("the fused program has an exit or table of no element".into()))?
        .map_err(|error| ProveError::Broken(format!("the fused program: {error}")))?;
    let options = classes_by.each_ref().map(|by| Options {
        settled_cells: Some(region.cells),
        max_paths: limits.classes,
        deadline: Some(by),
        ..Options::default()
    });
    let mut elements = Classes::of(&reference, &options[0]);
    let pool = std::mem::take(&mut elements.pool);
    let mut program = Classes::among(pool, &made, &options[1]);
    // The expressions of both are in one pool, which generates packets for either.
    elements.pool = std::mem::take(&mut program.pool);
    let (of_elements, of_program) = (elements.classes.len(), program.classes.len());
    let left = [elements.left.len(), program.left.len()];
    let late = [elements.is_late, program.is_late];
    let entries = region.entries.len();
    let mut prover = Prover {
        reference: &reference,
        cells: region.cells,
        written: reference.written_cells(),
        runs: Runs::new(region, &numbers).map_err(ProveError::Code)?,
        rng: Pcg64::seed_from_u64(1),
        deadline,
        tried: Tried::default(),
        differs: None,
        broken: None,
    };
    let mut comparison = Comparison::default();
    let (mut questions, mut clauses) = (0, 0);
    for entry in 0..entries {
        if !limits.symbolic {
            continue;
        }
        let mut blaster = Blaster::new(&elements.pool, &compared_by);
        let mine = symbolic::of_entry(&mut blaster, &elements, entry);
        let theirs = symbolic::of_entry(&mut blaster, &program, entry);
        if blaster.gates.is_over() {
            let pairs = of_entry(&elements, entry) * of_entry(&program, entry);
            comparison.pairs.all += pairs;
            comparison.pairs.open += pairs;
            comparison.open.push(format!("entry {entry}: all of its classes, for lack of time or memory"));
        } else {
            let both = (mine.as_slice(), theirs.as_slice());
            symbolic::compare(&mut blaster, both, entry, &mut comparison, &mut |mine, theirs| {
                prover.find(&elements, &elements.classes[mine], &program.classes[theirs]);
                prover.differs.is_none()
            });
        }
        questions += blaster.gates.questions;
        clauses += blaster.gates.clauses();
    }
    let mut costs: Vec<ClassCost> = vec![];
    for (number, class) in elements.classes.iter().enumerate() {
        let start = Instant::now();
        prover.class(&elements, class, limits.packets);
        let compared = comparison.times.get(&number).copied().unwrap_or_default();
        let run = start.elapsed();
        costs.push(ClassCost { class: number, entry: class.entry, compared, run });
    }
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.compared + cost.run));
    for class in &program.classes {
        prover.class(&elements, class, limits.packets);
    }
    prover.tried.by_entry = prover.runs.by_entry();
    if let Some(broken) = prover.broken {
        return Err(ProveError::Broken(broken));
    }
    Ok(Proof {
        differs: prover.differs,
        classes: [of_elements, of_program],
        left,
        late,
        entries,
        comparison,
        questions,
        clauses,
        tried: prover.tried,
        time: start.elapsed(),
        costs,
    })
}

/// The number of an entry's classes.
fn of_entry(classes: &Classes, entry: usize) -> usize {
    classes.classes.iter().filter(|class| class.entry == entry).count()
}

/// The time limit for finding a packet.
const SEARCH: Duration = Duration::from_secs(1);

impl Prover<'_> {
    /// Searches for a packet of one segment, preferably one as ports deliver it, for which all bits are 1.
    fn solve(&self, blaster: &mut Blaster<'_>, bits: &[Bit]) -> Answer {
        let (rest, room) = (blaster.free(Atom::Rest, 32), blaster.free(Atom::Room, 12));
        let usual = blaster.gates.number(HEADROOM as u64);
        let (single, usual) = (blaster.gates.is_zero(&rest), blaster.gates.equal(&room, &usual));
        let single: Vec<Bit> = bits.iter().copied().chain([single]).collect();
        let with_room: Vec<Bit> = single.iter().copied().chain([usual]).collect();
        match blaster.gates.ask(&with_room, SEARCH) {
            Answer::Found => Answer::Found,
            _ => blaster.gates.ask(&single, SEARCH),
        }
    }

    /// Converts the solution to a packet, adjusts the values that are free only for the solver, and runs it.
    /// Returns whether the packet is in the class.
    fn try_found(&mut self, blaster: &Blaster<'_>, classes: &Classes, class: &Class) -> bool {
        let made = model::packet(blaster, self.cells, &mut self.rng);
        let tables = model::tables(blaster, &self.reference.tables);
        let keys = |table: u16| tables.0.get(usize::from(table)).map_or(vec![], |table| table.keys());
        let mut fresh = || -> Box<dyn Tables> { Box::new(tables.clone()) };
        let mut world = World { tables: &mut fresh, keys: &keys };
        let mended = class.mended(classes, made.clone(), &mut world, &mut self.rng);
        // A packet that was adjusted, or could not be, is run all the same.
        let as_found = mended.as_ref().is_some_and(|mended| mended.buffer == made.buffer);
        if !as_found {
            self.run(class.entry, made, &tables);
        }
        let Some(mended) = mended else { return false };
        self.run(class.entry, mended, &tables);
        true
    }

    fn run(&mut self, entry: usize, mut made: CreatedPacket, tables: &TestTables) {
        if made.packet.total() != made.packet.len() {
            return;
        }
        // The program was compiled for the configuration's values of these cells.
        for (at, cell) in made.cells.iter_mut().enumerate() {
            if !self.written[at] {
                *cell = self.cells[at];
            }
        }
        match self.runs.run(entry, &made, tables) {
            Ok(three) => {
                self.tried.packets += 1;
                if !three.are_equal() && self.differs.is_none() {
                    self.differs = Some(Box::new(Counterexample { entry, compiled: made, three }));
                }
            }
            Err(broken) => self.broken = self.broken.take().or(Some(broken)),
        }
    }

    /// Searches for a packet that shows the difference between two classes.
    fn find(&mut self, classes: &Classes, mine: &Class, theirs: &Class) {
        let pool = &classes.pool;
        for mut blaster in [Blaster::new(pool, &self.deadline), Blaster::exact(pool, &self.deadline)] {
            let blaster = &mut blaster;
            let both = [blaster.filter(&mine.filter), blaster.filter(&theirs.filter)];
            let (a, b) = (outcome::outcome(blaster, mine), outcome::outcome(blaster, theirs));
            let different = outcome::differences(blaster, &a, &b);
            let bits: Vec<Bit> = different.iter().map(|different| different.bit).collect();
            let any = blaster.gates.any(&bits);
            if self.solve(blaster, &[both[0], both[1], any]) == Answer::Found {
                self.try_found(blaster, classes, mine);
            }
            if self.differs.is_some() {
                return;
            }
        }
    }

    /// Runs packets of a class and at the boundaries of its conditions.
    fn class(&mut self, classes: &Classes, class: &Class, most: usize) {
        if most == 0 || self.differs.is_some() || self.broken.is_some() {
            return;
        }
        if self.deadline.is_over() {
            self.tried.missed += 1;
            return;
        }
        // A solver for this class alone, since the class's effects are no conditions on its packets. Sums
        // over headers are adjusted if that is possible; otherwise the solver computes them.
        let (pool, deadline) = (&classes.pool, self.deadline.clone());
        let ways: [(fn(_, &_) -> _, usize); 2] = [(Blaster::new, most), (Blaster::exact, most.min(EXACT))];
        let mut hit = ways
            .into_iter()
            .map(|(make, most)| self.class_by(&mut make(pool, &deadline), classes, class, most));
        match hit.find(|answer| *answer != Answer::Unknown) {
            Some(Answer::Found) => self.tried.classes += 1,
            Some(Answer::Never) => self.tried.empty += 1,
            _ => self.tried.missed += 1,
        }
    }

    /// Whether a packet of the class was found and run, or there is none.
    fn class_by(
        &mut self,
        blaster: &mut Blaster<'_>,
        classes: &Classes,
        class: &Class,
        most: usize,
    ) -> Answer {
        let filter = blaster.filter(&class.filter);
        match self.solve(blaster, &[filter]) {
            Answer::Found => {}
            answer => return answer,
        }
        let mut hit = self.try_found(blaster, classes, class);
        let mut bounds = vec![];
        conditions(&class.filter.0, &mut bounds);
        let mut left = most.saturating_sub(1);
        for (of, set) in bounds {
            for &(first, last) in set.intervals() {
                for bound in [first, last] {
                    if left == 0 || self.deadline.is_over() {
                        break;
                    }
                    let word = blaster.word(of);
                    let bound = blaster.gates.number(bound);
                    let there = blaster.gates.equal(&word, &bound);
                    if blaster.gates.known(there) == Some(false) {
                        continue;
                    }
                    if self.solve(blaster, &[filter, there]) == Answer::Found {
                        left -= 1;
                        hit |= self.try_found(blaster, classes, class);
                    }
                }
            }
        }
        if hit { Answer::Found } else { Answer::Unknown }
    }
}

/// The maximum number of packets of a class for which all sums are computed: that takes long.
const EXACT: usize = 1;
