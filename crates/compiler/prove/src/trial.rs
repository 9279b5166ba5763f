//! Packets that the solver finds, run in all ways: of every class and at the boundaries of its conditions,
//! and those for which two classes seem to differ.

use crate::blast::Blaster;
use crate::compose::Numbering;
use crate::conditions::{conditions, ends, of_stores};
use crate::flow_entry::TemplateKey;
use crate::gates::{Answer, Bit};
use crate::model::{self, Solution};
use crate::outcome::{self, Bytes};
use crate::run::{Runs, Three};
use crate::subgraph::FusedSubgraph;
use crate::tables::TestTables;
use codegen::{CodegenError, Engine};
use ir::Program;
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use synth::classes::expr::Id;
use synth::classes::packets::CreatedPacket;
use synth::classes::{Class, Classes};
use synth::deadline::Deadline;

/// The packets that were run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tried {
    /// Number of packets.
    pub packets: usize,
    /// Classes for which a packet was run. One that both sides have counts once.
    pub classes: usize,
    /// Packets that were run by their flow's entry, and the templates of these entries.
    pub by_entry: [usize; 2],
    /// Classes for which no packet was found.
    pub missed: usize,
    /// Classes that have no packet of one segment, according to the solver.
    pub empty: usize,
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

/// What all threads run packets through.
pub struct Subject<'a> {
    pub region: &'a FusedSubgraph<'a>,
    pub numbers: &'a Numbering,
    /// The elements' programs as one.
    pub reference: &'a Program,
    /// The fused program as machine code.
    pub engine: Engine,
    pub deadline: &'a Deadline,
    /// The time limit for finding a packet.
    pub search: Duration,
}

impl<'a> Subject<'a> {
    /// The same, with packets that are run until then.
    pub fn within<'s>(&'s self, deadline: &'s Deadline, search: Duration) -> Subject<'s> {
        Subject { engine: self.engine.clone(), deadline, search, ..*self }
    }
}

/// What a job found by running packets.
#[derive(Default)]
pub struct Found {
    pub tried: Tried,
    pub templates: HashSet<TemplateKey>,
    pub differs: Option<Box<Counterexample>>,
    pub broken: Option<String>,
}

impl Found {
    /// Whether later jobs need not be done.
    pub fn is_end(&self) -> bool {
        self.differs.is_some() || self.broken.is_some()
    }

    /// Adds what a later job found.
    pub fn add(&mut self, other: Found) {
        self.tried.packets += other.tried.packets;
        self.tried.classes += other.tried.classes;
        self.tried.missed += other.tried.missed;
        self.tried.empty += other.tried.empty;
        self.tried.by_entry[0] += other.tried.by_entry[0];
        self.templates.extend(other.templates);
        self.tried.by_entry[1] = self.templates.len();
        self.differs = self.differs.take().or(other.differs);
        self.broken = self.broken.take().or(other.broken);
    }
}

/// Runs the packets of a thread's jobs.
pub struct Trial<'a> {
    subject: &'a Subject<'a>,
    /// The cells that programs write; the others are the configuration.
    written: Vec<bool>,
    runs: Runs<'a>,
    rng: Pcg64,
    found: Found,
}

/// The maximum number of packets of a class for which all sums are computed: that takes long.
const EXACT: usize = 1;

impl<'a> Trial<'a> {
    /// For a thread.
    ///
    /// # Errors
    /// When there is no memory for packets.
    pub fn new(subject: &'a Subject<'a>) -> Result<Trial<'a>, CodegenError> {
        Ok(Trial {
            subject,
            written: subject.reference.written_cells(),
            runs: Runs::new(subject.region, subject.numbers, subject.engine.clone())?,
            rng: Pcg64::seed_from_u64(0),
            found: Found::default(),
        })
    }

    /// Begins a job: what it finds depends on its number, and not on the thread or on the jobs before.
    pub fn begin(&mut self, job: usize) {
        self.rng = Pcg64::seed_from_u64(job as u64);
        self.runs.begin();
        self.found = Found::default();
    }

    /// What the job found.
    pub fn end(&mut self) -> Found {
        let mut found = std::mem::take(&mut self.found);
        found.tried.by_entry[0] = self.runs.by_entry();
        found.templates = self.runs.templates();
        found
    }

    /// Whether the job found something after which no more packets need to be run.
    pub fn is_end(&self) -> bool {
        self.found.is_end()
    }

    /// Searches for a packet of one segment, preferably one as ports deliver it, for which all bits are 1.
    fn solve(&self, blaster: &mut Blaster<'_>, bits: &[Bit]) -> Answer {
        let [single, usual] = blaster.as_delivered();
        let single: Vec<Bit> = bits.iter().copied().chain([single]).collect();
        let with_room: Vec<Bit> = single.iter().copied().chain([usual]).collect();
        match blaster.ask_packet(&with_room, self.subject.search) {
            Answer::Found => Answer::Found,
            _ => blaster.ask_packet(&single, self.subject.search),
        }
    }

    /// Converts the solution to a packet, adjusts the values that are free only for the solver, and runs it.
    /// Returns whether the packet is in the class.
    fn try_found(&mut self, blaster: &Blaster<'_>, classes: &Classes, class: &Class) -> bool {
        let subject = self.subject;
        let state = (subject.reference.tables.as_slice(), subject.region.cells);
        let Solution { packet: made, tables, mended } =
            model::solution(blaster, classes, class, state, &mut self.rng);
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
        model::configure(&mut made.cells, self.subject.region.cells, &self.written);
        match self.runs.run(entry, &made, tables) {
            Ok(three) => {
                self.found.tried.packets += 1;
                if !three.are_equal() && self.found.differs.is_none() {
                    self.found.differs = Some(Box::new(Counterexample { entry, compiled: made, three }));
                }
            }
            Err(broken) => self.found.broken = self.found.broken.take().or(Some(broken)),
        }
    }

    /// Searches for a packet that shows the difference between two classes, whose expressions `classes` has.
    pub fn find(&mut self, classes: &Classes, mine: &Class, theirs: &Class) {
        let (pool, deadline) = (&classes.pool, self.subject.deadline);
        for mut blaster in [Blaster::new(pool, deadline), Blaster::exact(pool, deadline)] {
            let blaster = &mut blaster;
            let both = [blaster.filter(&mine.filter), blaster.filter(&theirs.filter)];
            let (a, b) = (outcome::outcome(blaster, mine), outcome::outcome(blaster, theirs));
            let different = outcome::differences(blaster, &a, &b, Bytes::AsRead);
            let bits: Vec<Bit> = different.iter().map(|different| different.bit).collect();
            let any = blaster.gates.any(&bits);
            if self.solve(blaster, &[both[0], both[1], any]) == Answer::Found {
                self.try_found(blaster, classes, mine);
            }
            if self.found.differs.is_some() {
                return;
            }
        }
    }

    /// Runs packets of a class and at the boundaries of its conditions, and returns the time that it took.
    pub fn class(&mut self, classes: &Classes, class: &Class, most: usize) -> Duration {
        let start = Instant::now();
        if self.subject.deadline.is_over() {
            self.found.tried.missed += 1;
            return start.elapsed();
        }
        // A solver for this class alone, since the class's effects are no conditions on its packets. Sums
        // over headers are adjusted if that is possible; otherwise the solver computes them.
        let (pool, deadline) = (&classes.pool, self.subject.deadline);
        let ways: [(fn(_, &_) -> _, usize); 2] = [(Blaster::new, most), (Blaster::exact, most.min(EXACT))];
        let mut hit = ways
            .into_iter()
            .map(|(make, most)| self.class_by(&mut make(pool, deadline), classes, class, most));
        let answer = hit.find(|answer| *answer != Answer::Unknown);
        let tried = &mut self.found.tried;
        match answer {
            Some(Answer::Found) => tried.classes += 1,
            Some(Answer::Never) => tried.empty += 1,
            _ => tried.missed += 1,
        }
        start.elapsed()
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
        let bounds = conditions(&class.filter.0);
        let mut left = most.saturating_sub(1);
        // In turn, so that where few are tried, there are some of both.
        let mut stores = of_stores(&classes.pool, class).into_iter();
        let mut tried: Vec<(Id, u64)> =
            ends(&bounds).into_iter().flat_map(|end| [Some(end), stores.next()]).flatten().collect();
        tried.extend(stores);
        for (of, end) in tried {
            if left == 0 || self.subject.deadline.is_over() {
                break;
            }
            let (word, end) = (blaster.word(of), blaster.gates.number(end));
            let there = blaster.gates.equal(&word, &end);
            if blaster.gates.known(there) == Some(false) {
                continue;
            }
            if self.solve(blaster, &[filter, there]) == Answer::Found {
                left -= 1;
                hit |= self.try_found(blaster, classes, class);
            }
        }
        if hit { Answer::Found } else { Answer::Unknown }
    }
}
