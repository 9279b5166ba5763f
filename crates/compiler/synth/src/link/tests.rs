use super::*;
use ir::Builder;
use ir::expr::{cell, load};
use packet::field;
use proptest::prelude::*;

/// Packets with a time to live above 1 leave by port 0, with it decremented; others by port 1.
fn ttl() -> Verified {
    let mut f = Builder::new("Ttl", 2);
    let short = f.drop_block("short");
    f.need(field::IP_TTL.base, 20, short);
    let ttl = f.eval(load(field::IP_TTL));
    let (expired, alive) = f.branch(ttl.less_than(2));
    f.at(expired);
    f.emit(1);
    f.at(alive);
    f.store(field::IP_TTL, ttl - 1);
    f.emit(0);
    f.finish().expect("valid")
}

/// Counts packets, and emits them to the port in a cell.
fn switch(outputs: usize) -> Verified {
    let mut f = Builder::new("Switch", outputs);
    let off = f.drop_block("off");
    let (count, port) = (f.cell("count", 0), f.cell("port", 0));
    f.add_to_cell(count, 1);
    f.emit_to(cell(port), off);
    f.finish().expect("valid")
}

fn part<'a>(name: &'a str, program: &'a Verified, next: &[Option<(usize, usize)>]) -> Part<'a> {
    Part { name, program, shares: None, next: next.to_vec() }
}

#[test]
fn a_port_that_is_wired_inside_goes_on_at_the_next_entry() {
    let (ttl, switch) = (ttl(), switch(1));
    let parts = [
        part("a", &ttl, &[Some((1, 0)), None]),
        part("b", &ttl, &[None, Some((2, 0))]),
        part("c", &switch, &[None]),
    ];
    let linked = link("three", &parts, &[(0, 0)]).expect("links");
    assert_eq!(linked.outputs, [(0, 1), (1, 0), (2, 0)]);
    assert_eq!(linked.reasons, [(0, 0), (1, 0), (2, 0)]);
    assert_eq!((linked.cells.as_slice(), linked.flow.counted.len()), (&[0, 0, 0][..], 0));
    assert_eq!(ir::text::print(&linked.program), include_str!("three.ir"));
}

#[test]
fn ways_that_part_and_meet_again_are_counted() {
    let (ttl, switch) = (ttl(), switch(2));
    let parts = [part("a", &ttl, &[Some((1, 0)), Some((1, 0))]), part("b", &switch, &[None, None])];
    let linked = link("diamond", &parts, &[(0, 0)]).expect("links");
    assert_eq!(linked.flow.counted.len(), 1);
    let cells: Vec<&str> = linked.program.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!((cells, linked.cells), (vec!["count", "port", "wire0"], vec![0, 0]));
}

#[test]
fn inputs_that_nothing_leads_to_leave_no_code() {
    let mut f = Builder::new("Two", 1);
    f.emit(0);
    f.next_entry();
    f.drop("second");
    let two = f.finish().expect("valid");
    let linked = link("two", &[part("two", &two, &[None])], &[(0, 0)]).expect("links");
    assert_eq!((linked.program.blocks.len(), linked.origins.len()), (2, 2));
    assert_eq!(linked.reasons, [(0, 0)], "its number stays");
}

#[test]
fn two_inputs_of_an_element_share_its_state_and_not_their_code() {
    let mut f = Builder::new("Two", 2);
    let seen = f.cell("seen", 0);
    f.add_to_cell(seen, 1);
    f.emit(0);
    f.next_entry();
    f.add_to_cell(seen, 2);
    f.emit(1);
    let (two, ttl) = (f.finish().expect("valid"), ttl());
    let there = part("two", &two, &[Some((2, 0)), None]);
    let back = Part { shares: Some(0), ..part("two", &two, &[None, Some((3, 0))]) };
    // Out by `a` and back by `b`: as a graph of elements this would be a loop.
    let parts = [there, back, part("a", &ttl, &[Some((1, 1)), None]), part("b", &ttl, &[None, None])];
    let linked = link("both", &parts, &[(0, 0)]).expect("links");
    assert_eq!((linked.program.cells.len(), linked.cells), (1, vec![0, 0, 1, 1]));
    assert_eq!(linked.outputs, [(2, 1), (3, 1), (3, 0)]);
    assert!(linked.flow.counted.is_empty(), "each part has one way in");
    let added = linked.program.blocks.iter().flat_map(|block| &block.insts);
    assert_eq!(added.filter(|(_, inst)| matches!(inst, Inst::CellAdd(0, _))).count(), 2);
}

#[test]
fn a_loop_is_refused() {
    let switch = switch(1);
    let parts = [part("a", &switch, &[Some((1, 0))]), part("b", &switch, &[Some((0, 0))])];
    assert!(matches!(
        link("loop", &parts, &[(0, 0)]),
        Err(LinkError::Wrong(ir::verify::VerifyError::Cycle(_)))
    ));
}

/// A graph without loops, and packets that walk through it.
fn graph() -> impl Strategy<Value = (usize, Vec<(usize, usize)>, Vec<Vec<u8>>)> {
    (2usize..9).prop_flat_map(|parts| {
        let wire = (0..parts - 1).prop_flat_map(move |from| (Just(from), from + 1..parts));
        let walks = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..12), 1..40);
        (Just(parts), prop::collection::vec(wire, 1..20), walks)
    })
}

proptest! {
    #[test]
    fn what_passed_each_wire_follows_from_what_came_in_and_left((parts, ends, walks) in graph()) {
        let mut ports = vec![0; parts];
        let wires: Vec<Wire> = ends
            .iter()
            .map(|&(from, to)| {
                ports[from] += 1;
                Wire { from: (from, ports[from] - 1), to: (to, 0) }
            })
            .collect();
        let flow = flow::plan(parts, &wires);
        let (mut balance, mut truth) = (vec![0u64; parts], vec![0u64; wires.len()]);
        for walk in &walks {
            let mut at = usize::from(walk[0]) % parts;
            balance[at] = balance[at].wrapping_add(1);
            for choice in walk {
                let out: Vec<usize> = (0..wires.len()).filter(|wire| wires[*wire].from.0 == at).collect();
                // One choice more than there are wires: some packets leave.
                let Some(&wire) = out.get(usize::from(*choice) % (out.len() + 1)) else { break };
                truth[wire] += 1;
                at = wires[wire].to.0;
            }
            balance[at] = balance[at].wrapping_sub(1);
        }
        let counted: Vec<u64> = flow.counted.iter().map(|wire| truth[*wire]).collect();
        let mut passed = vec![];
        flow.solve(&mut balance, &counted, &mut passed);
        prop_assert_eq!(passed, truth);
        prop_assert!(balance.iter().all(|left| *left == 0));
    }
}
