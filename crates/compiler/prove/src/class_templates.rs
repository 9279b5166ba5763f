//! The flow-cache templates that packets of a program's traffic classes have.
//!
//! Templates are derived from packets that arrive. Here they are derived from packets that are made for each
//! class, as the worker would do it: the packet runs through the whole program, so that its flow has its records,
//! and is recorded.

use crate::blast::Blaster;
use crate::conditions::{conditions, ends};
use crate::flow_entry::{Ordered, Templates};
use crate::gates::Answer;
use crate::model;
use crate::record_forms;
use crate::tables::TestTables;
use ir::Verified;
use ir::analysis::lasting::Written;
use ir::eval::{EvalState, Exit};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::time::Duration;
use synth::classes::expr::{Atom, Bits, Node};
use synth::classes::packets::CreatedPacket;
use synth::classes::{self, Class, Classes};
use synth::deadline::Deadline;
use synth::template::Saved;

/// The time limit for finding a packet.
const SEARCH: Duration = Duration::from_millis(200);
/// The most packets of a class that are recorded: at the boundaries of its conditions they may have other
/// templates, or none where an IP header has options.
const MOST_PACKETS: usize = 12;

/// The first byte of an IPv4 header without options.
const SHORT: u64 = 0x45;
/// The classes whose packets are tried, those with the most lookups first: an entry saves lookups.
const MOST_CLASSES: usize = 64;

/// A template that packets of a class have.
pub struct ClassTemplate {
    /// The index of the class.
    pub class: usize,
    /// The program of the template, as it would run: the lookup of the flow's entry, guards, writes.
    pub program: Verified,
    /// The work that an entry saves.
    pub saved: Saved,
}

/// The templates of packets of the classes that leave by a port, where one was found until the deadline. `whole` is the program whose
/// flows have entries; the classes are of a program with the same inputs, tables, cells and exits, and `entries`
/// has the input of each of their entries. `cells` are the values of cells that programs do not write.
///
/// # Errors
/// When a program breaks an invariant: a bug.
pub fn templates(
    whole: &Verified,
    classes: &Classes,
    entries: &[usize],
    cells: &[u64],
    deadline: &Deadline,
) -> Result<Vec<ClassTemplate>, String> {
    let mut search = Search {
        whole,
        classes,
        cells,
        deadline,
        written: record_forms::alternatives(whole),
        templates: Templates::default(),
        rng: Pcg64::seed_from_u64(1),
    };
    let mut all = vec![];
    let leaves = |class: &Class| matches!(class.exit, classes::Exit::Emit(_) | classes::Exit::EmitTo(_));
    let mut tried: Vec<(usize, &Class)> =
        classes.classes.iter().enumerate().filter(|(_, class)| leaves(class)).collect();
    tried.sort_by_key(|(_, class)| std::cmp::Reverse(class.end.finds.len()));
    for (number, class) in tried.into_iter().take(MOST_CLASSES) {
        if !deadline.is_over() {
            search.class(number, class, entries[class.entry], &mut all)?;
        }
    }
    Ok(all)
}

struct Search<'a> {
    whole: &'a Verified,
    classes: &'a Classes,
    cells: &'a [u64],
    deadline: &'a Deadline,
    /// How the program changes the numbers in records, in each alternative for each table.
    written: Vec<Vec<Written>>,
    templates: Templates,
    rng: Pcg64,
}

impl Search<'_> {
    fn class(
        &mut self,
        number: usize,
        class: &Class,
        entry: usize,
        all: &mut Vec<ClassTemplate>,
    ) -> Result<(), String> {
        let mut blaster = Blaster::new(&self.classes.pool, self.deadline);
        let filter = blaster.filter(&class.filter);
        let [single, usual] = blaster.as_delivered();
        let mut wanted = vec![filter, single, usual];
        let bounds = conditions(&class.filter.0);
        // Headers without options: with them, a packet has more to read than its class shows.
        let short = bounds.iter().find_map(|(of, set)| {
            let shortest = set.intervals().first()?.0;
            let is_length = matches!(
                self.classes.pool.node(*of),
                Node::Atom(Atom::Bits(Bits { bit: 4, width: 4, .. })) if shortest == SHORT & 0xf
            );
            (shortest == SHORT || is_length).then_some((*of, shortest))
        });
        if let Some((of, short)) = short {
            let (word, short) = (blaster.word(of), blaster.gates.number(short));
            wanted.push(blaster.gates.equal(&word, &short));
        }
        if blaster.gates.ask(&wanted, SEARCH) != Answer::Found {
            return Ok(());
        }
        self.solution(&blaster, (number, class, entry), all)?;
        let mut left = MOST_PACKETS;
        for (of, end) in ends(&bounds) {
            if left == 0 || self.deadline.is_over() {
                break;
            }
            let (word, end) = (blaster.word(of), blaster.gates.number(end));
            let there = blaster.gates.equal(&word, &end);
            if blaster.gates.known(there).is_some() {
                continue;
            }
            wanted.push(there);
            left -= 1;
            if blaster.gates.ask(&wanted, SEARCH) == Answer::Found {
                self.solution(&blaster, (number, class, entry), all)?;
            }
            wanted.pop();
        }
        Ok(())
    }

    /// Records the packet of a solution.
    fn solution(
        &mut self,
        blaster: &Blaster<'_>,
        (number, class, entry): (usize, &Class, usize),
        all: &mut Vec<ClassTemplate>,
    ) -> Result<(), String> {
        let Some((made, tables)) = self.packet(blaster, class) else { return Ok(()) };
        let Some((program, saved)) = self.template(entry, &made, tables)? else { return Ok(()) };
        let is_known = |known: &ClassTemplate| known.class == number && known.program == program;
        if !all.iter().any(is_known) {
            all.push(ClassTemplate { class: number, program, saved });
        }
        Ok(())
    }

    /// A packet of the class of one segment, from the solver's solution.
    fn packet(&mut self, blaster: &Blaster<'_>, class: &Class) -> Option<(CreatedPacket, TestTables)> {
        let state = (self.whole.tables.as_slice(), self.cells);
        let found = model::solution(blaster, self.classes, class, state, &mut self.rng);
        let (mut made, tables) = (found.mended?, found.tables);
        model::configure(&mut made.cells, self.cells, &self.whole.written_cells());
        (made.packet.total() == made.packet.len()).then_some((made, tables))
    }

    /// The template of a packet's flow, once the packet has made its records.
    fn template(
        &mut self,
        entry: usize,
        made: &CreatedPacket,
        mut tables: TestTables,
    ) -> Result<Option<(Verified, Saved)>, String> {
        let order: Vec<usize> = (0..tables.0.len()).collect();
        let (mut packet, mut buffer, mut cells) = (made.packet, made.buffer.clone(), made.cells.clone());
        let mut own = Ordered { tables: &mut tables, order: &order };
        let mut state = EvalState { cells: &mut cells, tables: &mut own, now_ns: made.now_ns };
        let exit = ir::eval::run(self.whole, entry, &mut packet, buffer.as_mut_slice(), &mut state)
            .map_err(|error| error.to_string())?;
        if let Exit::Slow(_) = exit {
            return Ok(None);
        }
        for written in &self.written {
            let mut tables = tables.clone();
            for (table, written) in tables.0.iter_mut().zip(written) {
                table.written.clone_from(written);
            }
            tables.limit_times(made.now_ns);
            if let Some(flow) = self.templates.entry((self.whole, entry), made, tables, &order)? {
                return Ok(Some((flow.cache_program.clone(), flow.recording.saved)));
            }
        }
        Ok(None)
    }
}
