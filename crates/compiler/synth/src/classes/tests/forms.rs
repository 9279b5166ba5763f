//! Expressions that programs make in several ways, and that have one form.

use crate::classes::expr::{Atom, Bits, Id, Node, Pool, Root, Write};
use crate::classes::facts::Facts;
use crate::classes::filter::{Factor, Filter};
use crate::classes::path_state::{PathState, StateLocation};
use crate::classes::settle::settled_for_both;
use crate::classes::simplify::Maker;
use crate::classes::writes::by_word;
use ir::BinOp;
use ir::analysis::interval::IntervalSet;

fn bits(pool: &mut Pool, bit: i32, width: u8) -> Id {
    pool.atom(Atom::Bits(Bits { root: Root::Anno, bit, width }))
}

/// A TTL that was not 0 and was decremented, and the protocol behind it: written as two bytes and read as one word, or made
/// as one word.
#[test]
fn decremented_byte_stays_one_of_two() {
    let mut pool = Pool::default();
    let [ttl, protocol] = [0, 8].map(|bit| bits(&mut pool, bit, 8));
    let word = bits(&mut pool, 0, 16);
    let facts = Facts::of(&pool, [(ttl, IntervalSet::range(1, 255))]).expect("packets pass");
    let mut make = Maker { pool: &mut pool, facts: &facts };
    let [one, byte, ones] = [1, 8, 256].map(|number| make.number(number));
    let less = make.bin(BinOp::Sub, ttl, one);
    let high = make.bin(BinOp::Shl, less, byte);
    let as_word = make.bin(BinOp::Or, high, protocol);
    assert_eq!(make.cat(&[(0, protocol), (8, less)]), as_word);
    assert_eq!(make.bin(BinOp::Sub, word, ones), as_word);
    assert_eq!(make.slice(as_word, 8, 8), less);
    assert_eq!(make.slice(as_word, 0, 8), protocol);
    // Where it may have been 0, the protocol is not what stays.
    let none = Facts::default();
    let mut make = Maker { pool: &mut pool, facts: &none };
    assert_ne!(make.slice(as_word, 8, 8), less);
}

/// A sum is made of words: whether a byte of one was written, or the word, or it with those beside it.
#[test]
fn writes_behind_a_sum_are_of_words() {
    let mut pool = Pool::default();
    let at = Root::At(pool.atom(Atom::Room));
    let of = |bit: i32, width: u8| Bits { root: at, bit, width };
    let [protocol, unchanged] = [of(72, 8), of(96, 16)].map(|bits| pool.atom(Atom::Bits(bits)));
    let facts = Facts::default();
    let mut make = Maker { pool: &mut pool, facts: &facts };
    let [ttl, sum] = [7, 0x1234].map(|number| make.number(number));
    let alone = [Write { bits: of(64, 8), value: ttl }, Write { bits: of(80, 16), value: sum }];
    let value = make.cat(&[(0, unchanged), (16, sum), (32, protocol), (40, ttl)]);
    let joined = [Write { bits: of(64, 48), value }];
    assert_eq!(by_word(&mut make, &alone), by_word(&mut make, &joined));
    // Where another write may be of the same bytes, what is there is not what came.
    let other = Root::At(make.pool.atom(Atom::Head));
    let before = Write { bits: Bits { root: other, bit: 0, width: 16 }, value: sum };
    let kept = Write { bits: of(96, 16), value: unchanged };
    assert_ne!(by_word(&mut make, &[before, kept]), by_word(&mut make, &[before]));
}

/// What no packet passes needs no solver: alternatives are ruled out one after the other.
#[test]
fn alternatives_rule_out_others() {
    let mut pool = Pool::default();
    let [a, b, c] = [0, 8, 16].map(|bit| bits(&mut pool, bit, 8));
    let is = |id: Id, number: u64| Factor::Is(id, IntervalSet::one(number));
    let either = Factor::Any([vec![is(a, 1), is(b, 1)], vec![is(a, 2), is(b, 2)]].into());
    let filter = Filter(vec![either]);
    let behind = Factor::Any([vec![is(b, 1), is(c, 1)], vec![is(b, 2), is(c, 2)]].into());
    let both = |number: u64, last: u64| Filter(vec![is(a, number), behind.clone(), is(c, last)]);
    for (other, is_out) in [(both(1, 1), false), (both(1, 2), true), (both(2, 1), true), (both(3, 1), true)] {
        assert_eq!(filter.rules_out(&other), is_out, "{other:?}");
        let all = Filter([filter.0.clone(), other.0.clone()].concat());
        assert_eq!(all.propagated().is_none(), is_out, "{other:?}");
    }
    let left = Filter([filter.0.clone(), vec![is(a, 2)]].concat()).propagated();
    assert_eq!(left, Some(Filter(vec![is(a, 2), is(b, 2), is(a, 2)])));
}

/// A number of which some bits are one number, and both halves of a number that the other program reads at once.
#[test]
fn halves_of_a_number_are_that_number() {
    let mut pool = Pool::default();
    let record = bits(&mut pool, 0, 32);
    let log = pool.rec_log(&[]);
    let number = pool.add(Node::RecLoad(log, record, 0, 8));
    let [low, high] = [0, 32].map(|low| pool.add(Node::Slice(number, low, 32)));
    let swapped = pool.add(Node::Cat([(0, low), (32, high)].into()));
    let zero = pool.number(0);
    let end = |value: Id| PathState {
        data: zero,
        end: zero,
        rest: zero,
        places: [StateLocation::Unset; 3],
        bytes: vec![],
        annos: vec![],
        records: vec![],
        cells: [(0, value)].into(),
        packet_type: zero,
        finds: vec![],
    };
    let ends = [end(number), end(swapped)];
    let none = Filter::default();
    let settled = settled_for_both(&mut pool, [&none, &none], &ends, false).expect("packets pass");
    assert_eq!(settled[0], settled[1]);
    // The form has the number that a filter says.
    let first = pool.add(Node::Slice(number, 0, 8));
    let said = Filter(vec![Factor::Is(first, IntervalSet::one(7))]);
    let settled = settled_for_both(&mut pool, [&said, &none], &ends[..1], false).expect("packets pass");
    let seven = pool.number(7);
    let rest = pool.add(Node::Slice(number, 8, 56));
    assert_eq!(settled[0].cells[&0], pool.add(Node::Cat([(0, seven), (8, rest)].into())));
}
