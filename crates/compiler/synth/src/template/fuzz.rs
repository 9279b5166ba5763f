//! Compares templates of any program with the program.

use super::{KEY_WORDS, Layout, Recorder, Template, program};
use crate::fuzz::{All, Noting, Observed, Runner, Sample};
use ir::eval::{EvalState, Exit, run};
use ir::program::TableDecl;
use ir::{Program, Table, Verified, text};
use shm::descriptor::Packet;

/// The location of the key: as in Ethernet, without options.
const LAYOUT: Layout = Layout { net: 14, trans: 34 };
const NOW_NS: u64 = 1_000_000_000;

/// The result of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tried {
    /// Packets whose path was recorded as a template.
    pub followed: usize,
    /// Packets that ran through the template of another packet.
    pub taken: usize,
    /// Packets for which a guard failed.
    pub guarded: usize,
}

/// Records a packet's path through a program, and runs the program and the template on it and on packets of
/// the same flow, each from the same state.
///
/// # Panics
/// When the results differ, or a packet is changed that may not use the template.
pub fn compare_templates(whole: &Verified, first: &Sample, others: &[Sample]) -> Tried {
    let mut tried = Tried::default();
    for input in 0..whole.entries.len().min(4) {
        let mut runner = Runner::new(whole);
        // Records that the first packet creates exist for the others.
        runner.run(input, first, NOW_NS);
        runner.run(input, first, NOW_NS);
        let (packet, buffer) = first.packet();
        let mut state = EvalState { cells: &mut runner.cells, tables: &mut runner.tables, now_ns: NOW_NS };
        let mut follower = Recorder::new(whole);
        let followed = follower.record(whole, input, LAYOUT, &packet, buffer.as_slice(), &mut state);
        let Ok(followed) = followed else {
            continue;
        };
        tried.followed += 1;
        let layouts = vec![Some(LAYOUT); whole.entries.len()];
        let bytes = followed.template.entry_bytes();
        let templates = [(input, followed.template)];
        let front = program(whole, &layouts, &templates, bytes, 0);
        let front = front.unwrap_or_else(|error| panic!("{error} of\n{}", text::print(whole)));
        let front = crate::optimize::finished(&front, &crate::optimize::Known::default())
            .unwrap_or_else(|error| panic!("{error}: the optimised\n{}", text::print(&front)));
        let Some(key) = LAYOUT.read(&packet, buffer.as_slice(), input) else { continue };
        let mut entries = entries(&front.tables[0], &key);
        let record = entries.lookup(&key).expect("just made");
        for (at, sample) in std::iter::once(first).chain(others).enumerate() {
            let (packet, buffer) = sample.packet();
            if LAYOUT.read(&packet, buffer.as_slice(), input) != Some(key) {
                continue;
            }
            clear(&mut entries, record, bytes);
            for ((at, bytes), number) in templates[0].1.params.iter().zip(&followed.numbers) {
                entries.record_store(record, *at, *bytes, *number);
            }
            let mut copy =
                Runner { program: whole, cells: runner.cells.clone(), tables: runner.tables.copy() };
            let quick = template(&front, input, sample, copy.cells.clone(), &mut entries);
            match quick {
                Ok((exit, packet, cells)) => {
                    let wanted = copy.run(input, sample, NOW_NS);
                    let mut merged = runner.tables.copy();
                    merge(&templates[0].1, &followed.lines, (&entries, record), &mut merged);
                    let records = merged.records();
                    let found = Observed { exit, packet, cells, records, calls: wanted.calls.clone() };
                    assert!(wanted == found, "{}\nof\n{}", mismatch(&wanted, &found, sample), {
                        format!("{}\n{}", text::print(whole), text::print(&front))
                    });
                    tried.taken += usize::from(at > 0);
                }
                Err(is_same) => {
                    assert!(at > 0, "the packet itself does not take it:\n{}", text::print(&front));
                    assert!(is_same, "a packet was changed that takes the whole program");
                    tried.guarded += 1;
                }
            }
        }
    }
    tried
}

/// Sets an entry to zeros.
fn clear(entries: &mut Noting, record: u64, bytes: usize) {
    (0..bytes).for_each(|at| entries.record_store(record, at as u16, 1, 0));
}

/// Merges what an entry counted into the records.
fn merge(template: &Template, lines: &[u64], (entries, entry): (&Noting, u64), tables: &mut All) {
    for merging in &template.merges {
        let at = usize::from(merging.line);
        let table = &mut tables.0[usize::from(template.lines[at])];
        merging.merge(entries.record_load(entry, merging.tally.0, merging.tally.1), table, lines[at]);
    }
}

fn mismatch(wanted: &Observed, found: &Observed, sample: &Sample) -> String {
    let bytes = match (&wanted.packet, &found.packet) {
        (Some(wanted), Some(found)) => {
            let pairs = wanted.0.iter().zip(&found.0).enumerate();
            let other: Vec<_> = pairs.filter(|(_, (a, b))| a != b).take(12).collect();
            let ends = [(wanted.2, wanted.3, wanted.4), (found.2, found.3, found.4)];
            format!("bytes {other:?}, {ends:?}, annotations alike: {}", wanted.1 == found.1)
        }
        _ => String::new(),
    };
    let cells = (&wanted.cells, &found.cells);
    format!(
        "{:?} became {:?}\n{bytes}\ncells {cells:?}, records alike: {}\n{sample:?}",
        wanted.exit,
        found.exit,
        wanted.records == found.records
    )
}

fn entries(decl: &TableDecl, key: &[u64; KEY_WORDS]) -> Noting {
    let mut entries = Noting::new(decl);
    entries.make(key);
    entries
}

type Quick = (Exit, Option<crate::fuzz::Left>, Vec<u64>);

/// The result of the program of templates; or, for a packet that has to run through the whole program,
/// whether it is unchanged.
fn template(
    front: &Program,
    input: usize,
    sample: &Sample,
    mut cells: Vec<u64>,
    entries: &mut Noting,
) -> Result<Quick, bool> {
    let (mut packet, mut buffer) = sample.packet();
    let before: (Packet, Vec<u8>) = (packet, buffer.clone());
    let mut tables = All(vec![std::mem::replace(entries, Noting::new(&front.tables[0]))]);
    let cells_before = cells.clone();
    let mut state = EvalState { cells: &mut cells, tables: &mut tables, now_ns: NOW_NS };
    let exit = run(front, input, &mut packet, buffer.as_mut_slice(), &mut state)
        .unwrap_or_else(|error| panic!("{error}\n{}", text::print(front)));
    *entries = tables.0.remove(0);
    if let Exit::Slow(_) = exit {
        let is_same = Sample::left(&before.0, before.1) == Sample::left(&packet, buffer);
        return Err(is_same && cells == cells_before);
    }
    let left = Sample::left(&packet, buffer);
    Ok((exit, (!matches!(exit, Exit::Drop(_))).then_some(left), cells))
}
