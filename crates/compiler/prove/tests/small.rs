//! Small hand-written fused regions: equal ones, different ones, and faults of the linker.

use ir::expr::{load, offset, record};
use ir::program::{Inst, Program};
use ir::{Builder, Verified};
use packet::field::{self, Base, Field};
use prove::{FusedSubgraph, Leaves, Limits, Part, Proof, prove};
use std::time::Duration;
use synth::link::{Linked, link};
use synth::optimize::optimize;

/// Sorts packets by the first byte: two ports, and a drop.
fn sorter() -> Verified {
    let mut f = Builder::new("Sorter", 2);
    let (short, odd) = (f.drop_block("short"), f.drop_block("odd"));
    f.need(Base::Data, 20, short);
    let first = f.eval(load(Field::bytes(Base::Data, 0, 1)));
    f.leave_if(first & 1, odd);
    let (small, large) = f.branch(first.less_than(100));
    f.at(small);
    f.emit(0);
    f.at(large);
    f.emit(1);
    f.finish().expect("a program")
}

/// Counts, writes one byte, and looks it up.
fn worker(number: u64) -> Verified {
    let mut f = Builder::new("Worker", 1);
    let (short, unknown) = (f.drop_block("short"), f.drop_block("unknown"));
    let (count, table) = (f.cell("count", 0), f.table("known", 1, 16));
    f.need(Base::Data, 4, short);
    f.add_to_cell(count, 1);
    f.store(Field::bytes(Base::Data, 1, 1), load(Field::bytes(Base::Data, 1, 1)) + number);
    let key = f.eval(load(Field::bytes(Base::Data, 1, 2)));
    let known = f.lookup(table, &[key], unknown);
    f.store(Field::bytes(Base::Data, 2, 2), record(known, 4, 2));
    f.store_record(known, 8, 8, key);
    f.emit(0);
    f.finish().expect("a program")
}

fn verified(program: Program) -> Verified {
    Verified::new(program).expect("a valid program")
}

struct Setup {
    programs: Vec<Verified>,
    next: Vec<Vec<Option<(usize, usize)>>>,
}

impl Setup {
    /// A sorter whose two paths join again, in a worker after workers.
    fn new() -> Setup {
        Setup {
            programs: vec![sorter(), worker(3), worker(5), worker(7)],
            next: vec![vec![Some((1, 0)), Some((2, 0))], vec![Some((3, 0))], vec![Some((3, 0))], vec![None]],
        }
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let names = ["sorter", "left", "right", "last"];
        let parts = self.programs.iter().zip(&self.next).zip(names);
        parts
            .map(|((program, next), name)| Part { name, program, shares: None, next: next.clone() })
            .collect()
    }

    fn linked(&self) -> Linked {
        link("region", &self.parts(), &[(0, 0)]).expect("it can be linked")
    }

    fn prove(&self, linked: &Linked, made: &Verified, limits: &Limits) -> Proof {
        let counted = linked.flow.counted.iter().map(|wire| linked.flow.wires[*wire].from).collect();
        let cells = vec![0; made.cells.len()];
        let region = FusedSubgraph {
            parts: self.parts(),
            entries: &[(0, 0)],
            from_ports: &made.from_ports,
            linked,
            fused: made,
            cells: &cells,
            counted,
        };
        prove(&region, limits, &std::sync::Arc::default()).expect("machine code")
    }
}

#[test]
fn linked_and_optimised_programs_are_equal() {
    let setup = Setup::new();
    let linked = setup.linked();
    assert!(!linked.flow.counted.is_empty(), "ways meet again");
    for made in [linked.program.clone(), optimize(&linked.program).expect("a valid program")] {
        let proof = setup.prove(&linked, &made, &Limits::default());
        assert!(proof.is_equal(), "{:?}", proof.comparison);
        assert_eq!(proof.tried.missed, 0);
    }
}

#[test]
fn no_time_and_few_classes_are_no_proof() {
    let setup = Setup::new();
    let linked = setup.linked();
    for limits in [
        Limits { time: Duration::ZERO, ..Limits::default() },
        Limits { classes: 3, ..Limits::default() },
        Limits { symbolic: false, ..Limits::default() },
    ] {
        let proof = setup.prove(&linked, &linked.program, &limits);
        assert!(!proof.is_equal() && proof.differs.is_none());
    }
}

#[test]
fn faults_of_the_linker_are_found() {
    let setup = Setup::new();
    type Fault = (&'static str, fn(&mut Linked));
    let faults: [Fault; 5] = [
        ("two tables", |linked| linked.tables.swap(0, 1)),
        ("two drop reasons of the sorter", |linked| linked.reasons.swap(0, 1)),
        ("reasons of two elements", |linked| linked.reasons.swap(3, 5)),
        ("the exit", |linked| linked.outputs[0] = (2, 0)),
        ("what a cell counts", |linked| {
            let count = linked.program.cells.len() as u16;
            let mut program = linked.program.clone().into_program();
            for (_, inst) in program.blocks.iter_mut().flat_map(|block| &mut block.insts) {
                if let Inst::CellAdd(cell, _) = inst
                    && *cell + 1 == count
                {
                    *cell = 0;
                }
            }
            linked.program = verified(program);
        }),
    ];
    for (what, fault) in faults {
        let mut linked = setup.linked();
        fault(&mut linked);
        for limits in
            [Limits { packets: 0, ..Limits::default() }, Limits { symbolic: false, ..Limits::default() }]
        {
            let proof = setup.prove(&linked, &linked.program, &limits);
            assert!(proof.differs.is_some(), "{what}: {limits:?}");
        }
    }
}

/// One packet in 2^32, which random search does not find.
#[test]
fn a_needle_is_found_by_both() {
    let mut f = Builder::new("Through", 2);
    let short = f.drop_block("short");
    f.need(Base::Data, 12, short);
    f.emit(0);
    let through = f.finish().expect("a program");
    let mut f = Builder::new("Needle", 2);
    let short = f.drop_block("short");
    f.need(Base::Data, 12, short);
    let sum = load(Field::bytes(Base::Data, 0, 4)) + load(Field::bytes(Base::Data, 4, 4));
    let (yes, no) = f.branch(((sum & 0xffff_ffff) * 3).equals(3 * 0xdead_beef));
    f.at(yes);
    f.emit(1);
    f.at(no);
    f.emit(0);
    let needle = f.finish().expect("a program");
    let setup = Setup { programs: vec![through], next: vec![vec![None, None]] };
    let mut linked = setup.linked();
    linked.outputs = vec![(0, 0), (0, 1)];
    let needle = verified(Program { cells: linked.program.cells.clone(), ..needle.into_program() });
    for limits in
        [Limits { packets: 0, ..Limits::default() }, Limits { symbolic: false, ..Limits::default() }]
    {
        let proof = setup.prove(&linked, &needle, &limits);
        let found = proof.differs.expect("the needle");
        assert_eq!(found.three.elements.leaves, Leaves::Port(0, 0));
        assert_eq!(found.three.program.leaves, Leaves::Port(0, 1));
        assert_eq!(found.three.code.leaves, Leaves::Port(0, 1));
        let word = |at: usize| {
            let at = usize::from(found.compiled.packet.data()) + at;
            u32::from_be_bytes(found.compiled.buffer[at..at + 4].try_into().expect("4 bytes"))
        };
        assert_eq!(word(0).wrapping_add(word(4)), 0xdead_beef);
    }
}

/// Updates of a checksum in another order are equivalent, which is hard for the solver: it may prove it or
/// leave it open. A missing update is found.
#[test]
fn checksum_updates_are_compared_with_all_carries() {
    let update = |order: [bool; 2]| {
        let mut f = Builder::new("Update", 1);
        let short = f.drop_block("short");
        f.need(Base::Net, 20, short);
        for first in order {
            let field = if first { field::IP_SRC } else { field::IP_DST };
            f.replace(field, if first { 0x0a00_0001 } else { 0xc633_6401 }, field::IP_SUM);
        }
        f.emit(0);
        f.finish().expect("a program")
    };
    let setup = Setup { programs: vec![update([true, false])], next: vec![vec![None]] };
    let linked = setup.linked();
    let other = verified(Program { name: "region".into(), ..update([false, true]).into_program() });
    let short = Limits { time: Duration::from_secs(2), ..Limits::default() };
    let proof = setup.prove(&linked, &other, &short);
    assert!(proof.differs.is_none());
    assert_eq!(proof.is_equal(), proof.comparison.open.is_empty(), "{:?}", proof.comparison);
    let twice = verified(Program { name: "region".into(), ..update([true, true]).into_program() });
    let proof = setup.prove(&linked, &twice, &Limits { packets: 0, ..Limits::default() });
    assert!(proof.differs.is_some());
}

/// Where packets come from a port, an annotation that nothing sets is 0 for the proof and for the packets that are run;
/// where they do not, another program is found by a packet that has it.
#[test]
fn annotations_are_not_set_where_packets_come_from_ports() {
    let program = |asks: bool| {
        let mut f = Builder::new("region", 2);
        if asks {
            let anno = packet::anno::FIX_IP_SRC;
            let is_set = f.value(Inst::LoadAnno(anno));
            let (set, unset) = f.branch(is_set & 0xff);
            f.at(set);
            f.emit(1);
            f.at(unset);
        }
        f.emit(0);
        f.finish().expect("a program")
    };
    let setup = Setup { programs: vec![program(true)], next: vec![vec![None, None]] };
    let linked = Linked { outputs: vec![(0, 0), (0, 1)], ..setup.linked() };
    let without = |from_ports: &[u16]| {
        verified(Program {
            from_ports: from_ports.iter().copied().collect(),
            ..program(false).into_program()
        })
    };
    let proof = setup.prove(&linked, &without(&[0]), &Limits::default());
    assert!(proof.is_equal(), "{:?}", proof.comparison);
    let proof = setup.prove(&linked, &without(&[]), &Limits::default());
    assert!(proof.differs.is_some());
}

/// A program that leaves out a write of the 0 that is there does the same: the solver's packets have no annotations either.
#[test]
fn an_annotation_that_is_set_to_nothing_may_be_left_out() {
    let mut f = Builder::new("region", 2);
    let short = f.drop_block("short");
    f.need(Base::Data, 34, short);
    let to = f.eval(load(Field::bytes(Base::Data, 30, 4)));
    let (nowhere, somewhere) = f.branch(to.equals(0));
    f.at(nowhere);
    f.store_anno(packet::anno::DST_IP, to);
    f.emit(0);
    f.at(somewhere);
    f.emit(1);
    let setup = Setup { programs: vec![f.finish().expect("a program")], next: vec![vec![None, None]] };
    let linked = setup.linked().with_ports([0].into()).expect("a program");
    let made = optimize(&linked.program).expect("a program");
    assert!(!ir::text::print(&made).contains("store_anno"), "{}", ir::text::print(&made));
    let proof = setup.prove(&linked, &made, &Limits::default());
    assert!(proof.is_equal(), "{:?}", proof.comparison);
    assert!(proof.differs.is_none());
}

/// Two bytes counted from two headers, which may be one byte.
fn two_headers(outputs: usize, program: impl FnOnce(&mut Builder, [Field; 2])) -> Verified {
    let mut f = Builder::new("region", outputs);
    let short = f.drop_block("short");
    f.need(Base::Data, 20, short);
    f.need(Base::Net, 20, short);
    program(&mut f, [Field::bytes(Base::Data, 3, 1), Field::bytes(Base::Net, 1, 1)]);
    f.finish().expect("a program")
}

fn compared(elements: Verified, fused: &Verified) -> Proof {
    let outputs = usize::from(elements.outputs);
    let setup = Setup { programs: vec![elements], next: vec![vec![None; outputs]] };
    let mut linked = setup.linked();
    linked.outputs = (0..outputs).map(|port| (0, port)).collect();
    setup.prove(&linked, fused, &Limits { packets: 0, ..Limits::default() })
}

/// Writes to two headers can be exchanged where they write the same, and only there: else the last one counts
/// for packets whose headers overlap.
#[test]
fn the_order_of_writes_counts_where_headers_overlap() {
    let writes = |order: [usize; 2], values: [u64; 2]| {
        two_headers(1, |f, fields| {
            order.into_iter().for_each(|at| f.store(fields[at], values[at]));
            f.emit(0);
        })
    };
    let proof = compared(writes([0, 1], [7, 9]), &writes([1, 0], [7, 9]));
    let found = proof.differs.expect("a packet whose headers overlap");
    let packet = &found.compiled.packet;
    assert_eq!(packet.header(Base::Net), packet.data() + 2, "{packet:?}");
    let proof = compared(writes([0, 1], [7, 7]), &writes([1, 0], [7, 7]));
    assert!(proof.is_equal(), "{:?}", proof.comparison);
    // What is written first and covered by all of the other is not seen.
    let covered = two_headers(1, |f, [one, other]| {
        f.store(one, 5);
        f.store(other, 6);
        f.store(one, 7);
        f.store(other, 9);
        f.emit(0);
    });
    let proof = compared(writes([0, 1], [7, 9]), &covered);
    assert!(proof.is_equal(), "{:?}", proof.comparison);
}

/// A byte has one value, from whichever header it is counted.
#[test]
fn a_byte_is_the_same_from_each_header() {
    let sorted = |distance: u64| {
        two_headers(2, |f, [one, other]| {
            let (met, apart) = f.branch(offset(Base::Net).equals(distance));
            f.at(met);
            let (unlike, alike) = f.branch(load(one).differs(load(other)));
            f.at(unlike);
            f.emit(1);
            f.at(alike);
            f.emit(0);
            f.at(apart);
            f.emit(0);
        })
    };
    let through = two_headers(2, |f, _| f.emit(0));
    let proof = compared(through.clone(), &sorted(2));
    assert!(proof.is_equal(), "{:?}", proof.comparison);
    let proof = compared(through, &sorted(3));
    assert!(proof.differs.is_some(), "{:?}", proof.comparison);
}
