//! Chains of programs of real elements, before and after optimising.

use element::testing::configured;
use element::{Class, Shape};
use ir::{BlockId, Inst, Program, Term, Value, Verified};
use packet::field::{IP_DST, IP_SRC, IP_SUM, IP_TTL, L4_PORTS};
use proptest::prelude::*;
use synth::optimize::{Counts, Known, Report};
use synth::{Sample, compare};

struct Elements;

impl element::testing::Library for Elements {
    fn find(name: &str) -> Option<&'static Class> {
        element::find(elements::CLASSES, name)
    }
}

/// The program of an element.
fn program(class: &str, config: &str, outputs: usize) -> Verified {
    let shape = Shape { inputs: 1, outputs };
    configured::<Elements>(class, config, shape).lower(shape).expect("a program").expect("a valid one")
}

/// A chain: output 0 leads to the next one's input 0, other outputs are outputs of the whole.
fn link(parts: &[Verified]) -> Verified {
    let mut all =
        Program { name: "Chain".into(), outputs: 2, entries: parts[0].entries.clone(), ..Program::default() };
    let mut starts = vec![];
    let mut values = 0;
    for part in parts {
        starts.push(all.blocks.len() as u32);
        let (blocks, reasons, slow) =
            (starts[starts.len() - 1], all.reasons.len() as u16, all.slow.len() as u16);
        let (cells, tables) = (all.cells.len() as u16, all.tables.len() as u16);
        // Port 0 continues, all others do not exist.
        let mut part = part.clone().into_program();
        for at in 0..part.blocks.len() {
            if let Term::EmitTo(port, els) = part.blocks[at].term {
                let out = BlockId(part.blocks.len() as u32);
                part.blocks.push(ir::Block { params: vec![], insts: vec![], term: Term::Emit(0) });
                part.blocks[at].term = Term::Switch(port, vec![(0, out)], els);
            }
        }
        for block in &part.blocks {
            let mut block = block.clone();
            shift(&mut block, values, cells);
            block.term.map_successors(|to| BlockId(to.0 + blocks));
            match &mut block.term {
                Term::Drop(reason) => *reason += reasons,
                Term::Slow(path) => *path += slow,
                Term::Lookup { table, .. } => *table += tables,
                _ => {}
            }
            all.blocks.push(block);
        }
        values += part.value_count() as u32;
        all.reasons.extend(part.reasons.iter().cloned());
        all.slow.extend(part.slow.iter().cloned());
        all.cells.extend(part.cells.iter().cloned());
        all.tables.extend(part.tables.iter().cloned());
    }
    for at in 0..parts.len() {
        let Some(next) = starts.get(at + 1) else { break };
        let entry = BlockId(next + parts[at + 1].entries[0].0);
        let blocks = starts[at] as usize..*next as usize;
        for block in &mut all.blocks[blocks] {
            if block.term == Term::Emit(0) {
                block.term = Term::Jump(entry, vec![]);
            }
        }
    }
    let order = all.topological_order();
    let mut number = vec![BlockId(0); all.blocks.len()];
    order.iter().enumerate().for_each(|(at, id)| number[id.index()] = BlockId(at as u32));
    let mut blocks: Vec<_> = order.iter().map(|id| all.block(*id).clone()).collect();
    blocks.iter_mut().for_each(|block| block.term.map_successors(|to| number[to.index()]));
    all.entries.truncate(1);
    all.entries[0] = number[all.entries[0].index()];
    all.blocks = blocks;
    Verified::new(all).expect("a valid chain")
}

/// Renumbers values and cells.
fn shift(block: &mut ir::Block, values: u32, cells: u16) {
    let by = |value: &mut Value| value.0 += values;
    block.params.iter_mut().for_each(by);
    for (value, inst) in &mut block.insts {
        value.iter_mut().for_each(by);
        inst.map_operands(by);
        if let Inst::CellLoad(cell) | Inst::CellStore(cell, _) | Inst::CellAdd(cell, _) = inst {
            *cell += cells;
        }
    }
    block.term.map_operands(by);
    if let Term::Lookup { rec, .. } = &mut block.term {
        by(rec);
    }
}

/// A router as in the benchmarks, with or without its lookup.
fn router(number: usize, lookup: bool) -> Vec<Verified> {
    let mut parts = vec![program("CheckIPHeader", "OFFSET 14", 1)];
    if lookup {
        let routes = format!("198.18.0.0/18 192.0.{number}.1 0, 10.0.0.0/8 192.0.{number}.2 0, 0.0.0.0/0 0");
        parts.push(program("StaticIPLookup", &routes, 1));
    }
    parts.push(program("DecIPTTL", "", 1));
    let addresses = format!("02:00:00:00:{number:02}:01, 02:00:00:00:{number:02}:02");
    parts.push(program("EtherRewrite", &addresses, 1));
    parts
}

/// Ports deliver frames; DecIPTTL is active, and no handler changes an address.
fn known(program: &Program) -> Known {
    let cells = program.cells.iter().enumerate();
    let fixed = cells.filter(|(_, cell)| cell.name != "drops");
    let cells = fixed.map(|(at, cell)| (at as u16, cell.init)).collect();
    Known { mac_at_data: true, cells, ..Known::default() }
}

/// UDP datagrams in Ethernet, most of them fine.
fn samples() -> Vec<Sample> {
    let one = |n: u32| {
        let mut bytes = vec![0u8; 64];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        bytes[14..26].copy_from_slice(&[0x45, 0, 0, 46, 0, n as u8, 0, 0, (n % 24) as u8, 17, 0, 0]);
        bytes[26..34].copy_from_slice(&[10, 0, 0, n as u8, 10, 0, (n / 8) as u8, (2 * n % 16) as u8]);
        bytes[34..42].copy_from_slice(&[0x30, n as u8, 0, 53, 0, 26, 0, 0]);
        let _ = packet::checksum::set_ipv4_header(&mut bytes[14..], 0, 20);
        match n % 16 {
            13 => bytes[24] ^= 1,
            14 => bytes[17] = 70,
            15 => bytes.truncate(30),
            _ => {}
        }
        let mac = if n % 11 == 10 { None } else { Some(0) };
        Sample { bytes, headers: [mac, None, None], headroom: 128, fill: 0 }
    };
    (0..256).map(one).collect()
}

fn stores(program: &Program, field: packet::field::Field) -> usize {
    let insts = program.blocks.iter().flat_map(|block| &block.insts);
    insts.filter(|(_, inst)| matches!(inst, Inst::Store(found, _) if *found == field)).count()
}

fn optimized(parts: &[Verified], samples: &[Sample]) -> (Verified, Report) {
    let chain = link(parts);
    let known = known(&chain);
    compare(&chain, &known, samples)
}

#[test]
fn ten_routers_read_once_and_write_once() {
    let one = optimized(&router(0, false), &samples()).1;
    let parts: Vec<Verified> = (0..10).flat_map(|number| router(number, false)).collect();
    let (program, report) = optimized(&parts, &samples());
    let text = ir::text::print(&program);
    let most = |counts: &Counts| (counts.loads, counts.checks, counts.sums, counts.updates);
    assert_eq!(most(&report.packet_after), most(&one.packet_after), "{text}\n{report:?}");
    assert_eq!(report.packet_after.stores, one.packet_after.stores, "{text}\n{report:?}");
    assert_eq!(report.packet_before.updates, 10);
    assert_eq!((stores(&program, IP_TTL), stores(&program, IP_SUM)), (1, 1), "{text}");
    // Each of the other routers only tests whether the time to live is over.
    assert!(report.packet_after.branches <= one.packet_after.branches + 9, "{text}");
}

#[test]
fn ten_routers_with_lookups_check_once() {
    let parts: Vec<Verified> = (0..10).flat_map(|number| router(number, true)).collect();
    let (program, report) = optimized(&parts, &samples());
    let text = ir::text::print(&program);
    assert_eq!(report.packet_after.lookups, 10);
    assert_eq!((report.packet_before.sums, report.packet_after.sums), (10, 1), "{text}");
    assert_eq!((report.packet_before.updates, report.packet_after.updates), (10, 1), "{text}");
    assert_eq!(report.packet_after.checks, 2, "{text}");
    // Frames without MAC header take a path of their own.
    assert!(stores(&program, IP_SUM) <= 2, "{text}");
    println!("{text}\n{report:?}");
}

#[test]
fn what_a_mapping_changes_is_not_checked_again() {
    let mut parts = router(0, false);
    parts.push(program("IPRewriter", "pattern 192.0.2.1 1024-65535 - - 0 0", 1));
    parts.extend(router(1, false));
    let (program, report) = optimized(&parts, &samples());
    let text = ir::text::print(&program);
    // The record contains the change of the sum, and its table guarantees that it is correct.
    assert_eq!((report.packet_before.sums, report.packet_after.sums), (2, 1), "{text}");
    assert!(stores(&program, L4_PORTS) >= 1, "{text}");
    assert_eq!(stores(&program, IP_SRC) + stores(&program, IP_DST), 0);
}

#[test]
fn ten_translators_check_a_header_once() {
    let one = [
        program("Strip", "14", 1),
        program("CheckIPHeader", "", 1),
        program("IPRewriter", "pattern 192.0.2.1 1024-65535 - - 0 0", 1),
        program("Unstrip", "14", 1),
    ];
    let parts: Vec<Verified> = one.iter().cycle().take(40).cloned().collect();
    let (program, report) = optimized(&parts, &samples());
    let sums = (report.packet_before.sums, report.packet_after.sums);
    assert_eq!(sums, (10, 1), "{}", ir::text::print(&program));
}

#[test]
fn ten_rewriters_ask_once_what_a_packet_is() {
    let mut parts = vec![program("CheckIPHeader", "OFFSET 14", 1)];
    parts.extend((0..10).map(|_| program("IPRewriter", "pattern 192.0.2.1 1024-65535 - - 0 0", 1)));
    let (program, report) = optimized(&parts, &samples());
    let text = ir::text::print(&program);
    let (before, after) = (report.packet_before, report.packet_after);
    assert_eq!((before.checks, before.branches), (31, 45), "{text}");
    // For each rewriter: whether it is TCP with its checksum, and the flags.
    assert!(after.checks <= 12 && after.branches <= 27, "{text}\n{report:?}");
    assert!(2 * after.loads < before.loads + 10, "{text}\n{report:?}");
}

/// The most seconds of a core for optimising; far more than any supported machine needs.
const MOST_SECONDS: f64 = 3.0;

/// For how long this thread had a core, in seconds: what else runs does not add to it.
fn on_core_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

fn is_fast(what: &str, chain: &Verified) {
    let Some(start) = on_core_s() else {
        return eprintln!("SKIP: this kernel does not say how long a thread had a core (CONFIG_SCHED_INFO)");
    };
    let (_, report) = synth::optimize::optimize_with(chain, &known(chain)).expect("a valid program");
    let seconds = on_core_s().expect("as before") - start;
    println!("{what}: {} blocks in {seconds:.3} s, {report:?}", chain.blocks.len());
    assert!(seconds < MOST_SECONDS, "{what}: {seconds} s");
}

#[test]
fn twenty_thousand_blocks_take_no_time() {
    let routers: Vec<Verified> = (0..10).flat_map(|number| router(number, true)).collect();
    let ten = link(&routers).blocks.len();
    let many: Vec<Verified> = routers.iter().cycle().take(routers.len() * (20_000 / ten)).cloned().collect();
    is_fast("routers", &link(&many));
}

#[test]
fn twenty_thousand_rules_take_no_time() {
    // Consecutive tests that share one drop: the facts there are those of all tests.
    let mut f = ir::Builder::new("Rules", 1);
    let bad = f.drop_block("bad");
    f.need(packet::field::Base::Net, 20, bad);
    for rule in 0..20_000u64 {
        let field = [IP_SRC, IP_DST, IP_TTL][rule as usize % 3];
        let hit = f.eval(ir::expr::load(field).equals(rule * 7919 % 60_000));
        if rule % 5 == 0 {
            f.store(packet::field::IP_TOS, hit);
        }
        f.leave_if(hit, bad);
    }
    f.emit(0);
    is_fast("rules", &f.finish().expect("a valid program"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn chains_of_elements_do_what_they_did(which in prop::collection::vec(0..9usize, 1..7)) {
        let parts: Vec<Verified> = which.iter().map(|which| match which {
            0 => program("CheckIPHeader", "OFFSET 14, BADSRC 10.0.0.3 10.0.0.4", 1),
            1 => program("CheckIPHeader", "14", 2),
            2 => program("DecIPTTL", "", 2),
            3 => program("EtherRewrite", "02:00:00:00:00:01, 02:00:00:00:00:02", 1),
            4 => program("StaticIPLookup", "10.0.0.0/8 192.0.2.1 0, 0.0.0.0/0 0", 1),
            5 => program("IPRewriter", "pattern 192.0.2.1 1024-65535 - - 0 0", 1),
            6 => program("IPFilter", "deny udp && src port > 12450, allow all", 1),
            7 => program("Strip", "14", 1),
            _ => program("EtherEncap", "0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02", 1),
        }).collect();
        optimized(&parts, &samples());
        let chain = link(&parts);
        compare(&chain, &Known::default(), &samples());
    }
}
