//! Faults are planted into the fused programs of the examples. Both the comparison of classes and the packets
//! must find each of them, without the other.

use super::{cells, held};
use crate::check;
use chain::FusedElements;
use ir::Verified;
use ir::program::{BinOp, Block, Inst, Program, Term, Value};
use packet::field::{self, Field};
use prove::{Limits, Proof};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use runtime::Assembly;
use runtime::machine::Machine;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use worker::fusion::CompiledRegion;

const BALANCER: &str = "nat-firewall-balancer/chain.toml";
const ROUTER: &str = "router/chain.toml";
const NAPT: &str = "bench/napt.click";
const FIREWALL: &str = "bench/firewall-10.click";
/// Hosts that answer pings.
const HOSTS: &str = "field/hosts.click";
/// Two of them in a row.
const ROUTERS: &str = "bench/router.click";
/// Two of them in a row, which write a MAC header wherever it is.
const LEAN_ROUTERS: &str = "bench/lean-router.click";

/// The assembly of an example chain.
struct Chain(Assembly);

impl Chain {
    fn of(example: &str) -> Chain {
        let examples = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
        let mut path = examples.join(example);
        // The examples of the benchmark declare no ports, and some are only an element class.
        let folder = tempfile::tempdir().expect("a folder");
        if example.starts_with("bench/") {
            let mut text = std::fs::read_to_string(&path).expect("an example");
            if text.contains("Stage") {
                let is_row = [ROUTERS, LEAN_ROUTERS].contains(&example);
                let stages = if is_row { "Stage(1) -> Stage(2)" } else { "Stage(1)" };
                text += &format!("FromDevice(in) -> {stages} -> ToDevice(out);");
            }
            let capture = examples.join("captures/office.pcap");
            // Where the device sets header annotations, nothing is known of them.
            let device = if example == LEAN_ROUTERS { ", FORCE_IP true" } else { "" };
            let text = text.replace("FromDevice(in)", &format!("FromDevice({}{device})", capture.display()));
            path = folder.path().join("chain.click");
            std::fs::write(&path, text.replace("ToDevice(out)", "ToDevice(out.pcap)")).expect("written");
        }
        let mut loaded = check::load(&path, &[], Machine::Any).expect("an example");
        let chain = loaded.chain.as_ref().expect("without mistakes");
        let assembly = check::assemble_dry(chain, true, FusedElements::All, Machine::Any, &mut loaded.diags)
            .expect("assembled");
        Chain(assembly.expect("without mistakes"))
    }

    /// The fused program of a fused region as it is run.
    fn compiled(&self, region: usize) -> Verified {
        let of = &self.0.regions[0][region];
        Verified::clone(&CompiledRegion::of(&of.linked, &cells(of, &self.0.graphs[0])).program)
    }

    /// The same with its fast path, if it has one.
    fn fast(&self, region: usize) -> Option<Verified> {
        let of = &self.0.regions[0][region];
        let made = CompiledRegion::of(&of.linked, &cells(of, &self.0.graphs[0]));
        made.fast.map(|fast| Verified::clone(&fast))
    }

    fn prove(&self, region: usize, program: &Verified, limits: &Limits) -> Proof {
        let of = &self.0.regions[0][region];
        let proof = held(of, &self.0.graphs[0], program, |of| Ok(prove::prove(of, limits, &Arc::default())?));
        proof.expect("machine code")
    }
}

fn limits() -> Limits {
    Limits { time: Duration::from_secs(240), ..Limits::default() }
}

fn by_classes() -> Limits {
    Limits { packets: 0, ..limits() }
}

fn by_packets() -> Limits {
    Limits { symbolic: false, ..limits() }
}

/// Checks that both ways find the planted fault.
fn is_found(example: &str, what: &str, plant: impl Fn(&mut Program) -> bool) {
    let chain = Chain::of(example);
    let mut planted = false;
    for region in 0..chain.0.regions[0].len() {
        let mut program = chain.compiled(region).into_program();
        if !plant(&mut program) {
            continue;
        }
        planted = true;
        let program = Verified::new(program).expect("a fault that nobody sees before it runs");
        let proof = chain.prove(region, &program, &by_classes());
        assert!(proof.differs.is_some(), "{what}: the classes do not show it: {:?}", proof.comparison);
        let proof = chain.prove(region, &program, &by_packets());
        assert!(proof.differs.is_some(), "{what}: no packet of {:?} shows it", proof.tried);
        break;
    }
    assert!(planted, "{what}: {example} has no place for it");
}

fn insts(program: &mut Program) -> impl Iterator<Item = (usize, usize, &mut Inst)> {
    program.blocks.iter_mut().enumerate().flat_map(|(at, block)| {
        block.insts.iter_mut().enumerate().map(move |(place, (_, inst))| (at, place, inst))
    })
}

fn is_equal(example: &str) {
    let chain = Chain::of(example);
    for region in 0..chain.0.regions[0].len() {
        let proof = chain.prove(region, &chain.compiled(region), &limits());
        let shown = proof.differs.as_ref().map(|found| &found.compiled.packet);
        assert!(proof.is_equal(), "{example}: {:?} {:?} {shown:?}", proof.comparison, proof.left);
        assert!(proof.tried.packets > 20, "{:?}", proof.tried);
    }
}

#[test]
fn examples_are_equal() {
    [BALANCER, ROUTER, NAPT, FIREWALL].into_iter().for_each(is_equal);
}

#[test]
fn a_fast_path_is_equal() {
    let chain = Chain::of(ROUTERS);
    let fast = chain.fast(0).expect("two routers in a row");
    let proof = chain.prove(0, &fast, &limits());
    let shown = proof.differs.as_ref().map(|found| &found.compiled.packet);
    assert!(proof.is_equal(), "{:?} {:?} {shown:?}", proof.comparison, proof.left);
    // What its tests require is what it needs: a weaker one is found.
    let weaken = |program: &mut Program, from: u64, to: u64| {
        let head = program.blocks.iter().position(|block| matches!(block.term, Term::Lookup { .. }));
        let until = head.expect("a lookup");
        let constants = program.blocks[..until].iter_mut().flat_map(|block| &mut block.insts);
        let last = constants.filter(|(_, inst)| *inst == Inst::Const(from)).last();
        last.expect("a test by that number").1 = Inst::Const(to);
    };
    for (what, from, to) in [("TTL", 3, 2), ("header length", 6, 7)] {
        let mut program = fast.clone().into_program();
        weaken(&mut program, from, to);
        let program = Verified::new(program).expect("a fault that nobody sees before it runs");
        let proof = chain.prove(0, &program, &by_classes());
        assert!(proof.differs.is_some(), "{what}: the classes do not show it: {:?}", proof.comparison);
    }
}

#[test]
fn a_fast_path_for_frames_is_equal() {
    let chain = Chain::of(LEAN_ROUTERS);
    let fast = chain.fast(0).expect("two routers in a row");
    let asks = |(_, inst): &(_, Inst)| *inst == Inst::Offset(packet::field::Base::Mac);
    let asked = fast.blocks.iter().flat_map(|block| &block.insts).filter(|inst| asks(inst)).count();
    assert_eq!(asked, 1, "where the MAC header is: one test for each packet");
    let proof = chain.prove(0, &fast, &limits());
    let shown = proof.differs.as_ref().map(|found| &found.compiled.packet);
    assert!(proof.is_equal(), "{:?} {:?} {shown:?}", proof.comparison, proof.left);
}

#[test]
fn a_lost_write_is_found() {
    is_found(BALANCER, "a lost write", |program| {
        let lost = |inst: &Inst| matches!(inst, Inst::Store(field, _) if field.width >= 32);
        let block = program.blocks.iter_mut().find(|block| block.insts.iter().any(|(_, inst)| lost(inst)));
        block.is_some_and(|block| {
            let at = block.insts.iter().position(|(_, inst)| lost(inst)).unwrap_or(0);
            block.insts.remove(at);
            true
        })
    });
}

/// Exchanges the first two adjacent writes of a linked program whose order changes the result for a packet;
/// the comparison of classes must find that, too. Optimised programs have fewer writes.
#[test]
fn a_wrong_order_is_found() {
    let is_write = |inst: &Inst| !inst.has_result() || matches!(inst, Inst::Load(_));
    for example in [ROUTER, BALANCER, NAPT, HOSTS] {
        let chain = Chain::of(example);
        for (region, of) in chain.0.regions[0].iter().enumerate() {
            let linked = &of.linked.program;
            let places = linked
                .blocks
                .iter()
                .enumerate()
                .flat_map(|(block, insts)| (1..insts.insts.len()).map(move |place| (block, place)));
            for (block, place) in places {
                let pair = &linked.blocks[block].insts[place - 1..=place];
                if !pair.iter().all(|(_, inst)| is_write(inst)) || pair.iter().all(|(_, i)| i.has_result()) {
                    continue;
                }
                let mut program = linked.clone().into_program();
                program.blocks[block].insts.swap(place - 1, place);
                let few = Limits { packets: 3, ..by_packets() };
                let Ok(program) = Verified::new(program) else { continue };
                if chain.prove(region, &program, &few).differs.is_none() {
                    continue;
                }
                let proof = chain.prove(region, &program, &by_classes());
                assert!(proof.differs.is_some(), "{example}: {pair:?}: {:?}", proof.comparison);
                return;
            }
        }
    }
    panic!("the order of no two writes tells");
}

#[test]
fn a_missing_checksum_is_found() {
    for example in [BALANCER, ROUTER] {
        is_found(example, "a missing checksum", |program| {
            let found = insts(program).find(|(_, _, inst)| matches!(inst, Inst::CsumUpdate(..)));
            found.is_some_and(|(_, _, inst)| {
                if let Inst::CsumUpdate(sum, ..) = *inst {
                    *inst = Inst::Bin(BinOp::Or, sum, sum);
                }
                true
            })
        });
    }
}

/// Increments the constant that defines `value`.
fn one_more(block: &mut Block, value: Value) -> bool {
    block.insts.iter_mut().any(|(result, inst)| match inst {
        Inst::Const(number) if *result == Some(value) => {
            *number += 1;
            true
        }
        _ => false,
    })
}

#[test]
fn an_interval_off_by_one_is_found() {
    for example in [ROUTER, FIREWALL] {
        is_found(example, "an interval off by one", |program| {
            program.blocks.iter_mut().any(|block| {
                let compared = block.insts.iter().find_map(|(_, inst)| match inst {
                    Inst::Bin(BinOp::Lt | BinOp::Le, a, b) => Some((*a, *b)),
                    _ => None,
                });
                compared.is_some_and(|(a, b)| one_more(block, b) || one_more(block, a))
            })
        });
    }
}

#[test]
fn swapped_tables_are_found() {
    is_found(BALANCER, "swapped tables", |program| {
        let tables = &program.tables;
        let alike = |a: usize, b: usize| {
            tables[a].key_words == tables[b].key_words && tables[a].record_bytes == tables[b].record_bytes
        };
        let pair = (0..tables.len()).flat_map(|a| (a + 1..tables.len()).map(move |b| (a, b)));
        let Some((a, b)) = pair.clone().find(|(a, b)| alike(*a, *b)) else { return false };
        let (a, b) = (a as u16, b as u16);
        for block in &mut program.blocks {
            if let Term::Lookup { table, .. } = &mut block.term {
                *table = match *table {
                    table if table == a => b,
                    table if table == b => a,
                    table => table,
                };
            }
        }
        true
    });
}

/// The fields that values are, read by themselves or taken out of what one read has of several.
fn fields_read(program: &Program) -> Vec<(Value, Field)> {
    let mut fields: BTreeMap<Value, Field> = BTreeMap::new();
    let mut numbers: BTreeMap<Value, u64> = BTreeMap::new();
    for (result, inst) in program.blocks.iter().flat_map(|block| &block.insts) {
        let Some(result) = *result else { continue };
        let taken = match inst {
            Inst::Const(number) => {
                numbers.insert(result, *number);
                None
            }
            Inst::Load(field) => Some(*field),
            Inst::Bin(BinOp::Shr, whole, by) => {
                fields.get(whole).zip(numbers.get(by)).and_then(|(whole, by)| {
                    let width = whole.width.checked_sub(u8::try_from(*by).ok()?)?;
                    Some(Field { width, ..*whole })
                })
            }
            Inst::Bin(BinOp::And, whole, mask) => {
                fields.get(whole).zip(numbers.get(mask)).and_then(|(whole, mask)| {
                    let (width, is_low) = (mask.count_ones() as u8, mask & mask.wrapping_add(1) == 0);
                    let bit = whole.bit + u16::from(whole.width.checked_sub(width)?);
                    is_low.then_some(Field { bit, width, ..*whole })
                })
            }
            _ => None,
        };
        fields.extend(taken.map(|field| (result, field)));
    }
    fields.into_iter().collect()
}

#[test]
fn a_skipped_check_of_the_ttl_is_found() {
    for example in [ROUTER, BALANCER] {
        is_found(example, "a skipped check of the TTL", |program| {
            let read = fields_read(program);
            let ttl: Vec<Value> =
                read.into_iter().filter(|read| read.1 == field::IP_TTL).map(|read| read.0).collect();
            let compared: Vec<Value> = program
                .blocks
                .iter()
                .flat_map(|block| &block.insts)
                .filter_map(|(result, inst)| match inst {
                    Inst::Bin(BinOp::Lt | BinOp::Le | BinOp::Eq | BinOp::Ne, a, b) => {
                        (*result).filter(|_| ttl.contains(a) || ttl.contains(b))
                    }
                    _ => None,
                })
                .collect();
            let last = |program: &Program, to: ir::BlockId| {
                matches!(program.block(to).term, Term::Drop(_) | Term::Slow(_) | Term::Emit(_))
            };
            let found = program.blocks.iter().enumerate().find_map(|(at, block)| match block.term {
                Term::Branch(value, yes, no) if compared.contains(&value) => Some((
                    at,
                    if last(program, yes) { no } else { yes },
                    if last(program, yes) { yes } else { no },
                )),
                _ => None,
            });
            found.is_some_and(|(at, on, off)| {
                // Both branches continue: the check is made and has no effect.
                let Term::Branch(value, ..) = program.blocks[at].term else { return false };
                let used =
                    program.blocks.iter().filter(|block| block.term.successors().contains(&off)).count();
                if used > 1 {
                    program.blocks[at].term = Term::Jump(on, vec![]);
                } else {
                    // The block would become unreachable, which the verifier refuses.
                    let zero = Value(program.value_count() as u32);
                    program.blocks[at].insts.push((Some(zero), Inst::Bin(BinOp::Xor, value, value)));
                    program.blocks[at].term = Term::Branch(zero, off, on);
                }
                true
            })
        });
    }
}

#[test]
fn a_stale_constant_of_a_cell_is_found() {
    let mut tried = 0;
    for example in [ROUTER, BALANCER] {
        let chain = Chain::of(example);
        for (at, region) in chain.0.regions[0].iter().enumerate() {
            let right = cells(region, &chain.0.graphs[0]);
            let program = chain.compiled(at);
            for cell in 0..right.len() {
                let mut stale = right.clone();
                stale[cell] ^= 1;
                let made = CompiledRegion::of(&region.linked, &stale);
                // Cells that programs write are not part of the configuration.
                if **made.program == *program {
                    continue;
                }
                tried += 1;
                for limits in [by_classes(), by_packets()] {
                    let proof = chain.prove(at, &made.program, &limits);
                    assert!(proof.differs.is_some(), "{example}: cell {cell} of {}", right[cell]);
                }
                break;
            }
        }
    }
    assert!(tried > 0, "no example has a cell in its configuration");
}

#[test]
fn a_wrong_egress_is_found() {
    for example in [BALANCER, ROUTER] {
        is_found(example, "a wrong egress", |program| {
            let outputs = program.outputs;
            let mut planted = false;
            for block in &mut program.blocks {
                if let Term::Emit(port) = &mut block.term {
                    (*port, planted) = ((*port + 1) % outputs, outputs > 1);
                }
            }
            planted
        });
    }
}

/// The text of a counterexample.
#[test]
fn a_counterexample_can_be_read() {
    let chain = Chain::of(BALANCER);
    let mut program = chain.compiled(0).into_program();
    let outputs = program.outputs;
    for block in &mut program.blocks {
        if let Term::Emit(port) = &mut block.term {
            *port = (*port + 1) % outputs;
        }
    }
    let program = Verified::new(program).expect("a valid program");
    let (of, nodes) = (&chain.0.regions[0][0], &chain.0.graphs[0]);
    let shown = held(of, nodes, &program, |of| {
        Ok(super::shown(of, &prove::prove(of, &limits(), &Arc::default())?, &limits()))
    });
    let shown = shown.expect("machine code");
    assert_eq!(shown.result, super::RegionResult::Differs);
    let text = super::listed("chain.toml", &[shown]);
    for part in [
        "\nfused region 1: differs\n",
        "  packet    ",
        " bytes into [0]nat/arp, headers at mac ",
        "  fields    eth.dst ",
        ", ip.src ",
        "  elements  leaves by ",
        "  program   leaves by ",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    // Machine code with the same result as its program is not shown.
    assert!(!text.contains("  code "), "{text}");
}

/// A random change of one instruction or terminator, with or without an effect.
fn mutate(program: &mut Program, rng: &mut Pcg64) {
    let at = rng.random_range(0..program.blocks.len());
    let (outputs, reasons) = (program.outputs, program.reasons.len() as u16);
    let block = &mut program.blocks[at];
    let place = rng.random_range(0..=block.insts.len());
    let ops = BinOp::ALL;
    match block.insts.get_mut(place) {
        Some((_, Inst::Const(number))) => *number = number.wrapping_add(rng.random_range(1..4)) ^ 1,
        Some((_, Inst::Bin(op, a, b))) => match rng.random_range(0..3) {
            0 => *op = ops[rng.random_range(0..ops.len())].0,
            1 => std::mem::swap(a, b),
            _ => *b = *a,
        },
        Some((_, Inst::Select(_, a, b))) => std::mem::swap(a, b),
        Some((_, Inst::CsumUpdate(_, a, b, _))) => std::mem::swap(a, b),
        Some((None, _)) => drop(block.insts.remove(place)),
        Some((_, Inst::Load(field))) => field.bit ^= 8,
        Some(_) => {}
        None => match &mut block.term {
            Term::Branch(_, a, b) | Term::Need { then: a, els: b, .. } => std::mem::swap(a, b),
            Term::Switch(_, cases, _) if !cases.is_empty() => cases[0].0 ^= 1,
            Term::Emit(port) => *port = (*port + 1) % outputs,
            Term::Drop(reason) => *reason = (*reason + 1) % reasons,
            _ => {}
        },
    }
}

/// Random changes: the comparison of classes finds a packet that differs, or proves that the change has no
/// effect, and then no packet may differ.
#[test]
fn random_faults_are_told_from_changes_that_do_nothing() {
    let (mut differ, mut equal, mut open) = (0, 0, 0);
    for (example, seed) in [(BALANCER, 1), (ROUTER, 2), (NAPT, 3), (FIREWALL, 4)] {
        let chain = Chain::of(example);
        let original = chain.compiled(0);
        let mut rng = Pcg64::seed_from_u64(seed);
        let mut left = 4;
        for _ in 0..200 {
            let mut program = original.clone().into_program();
            mutate(&mut program, &mut rng);
            let Ok(program) = Verified::new(program) else { continue };
            if program == original {
                continue;
            }
            let proof = chain.prove(0, &program, &by_classes());
            if proof.differs.is_some() {
                differ += 1;
            } else if !proof.is_equal() {
                // Undecided: not reported as equal, and the undecided pairs are named.
                assert!(!proof.comparison.open.is_empty());
                open += 1;
            } else {
                equal += 1;
                let packets = chain.prove(0, &program, &by_packets());
                assert!(packets.differs.is_none(), "{example}: equal, but for a packet");
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    assert!(differ >= 8 && open <= 2, "{differ} were found, {equal} are none, {open} are open");
}
