//! Rows of checksum updates against the update of the evaluator, and their normal form.

use crate::classes::expr::{Atom, Bits, Id, Node, Pool, Root};
use crate::classes::facts::Facts;
use crate::classes::simplify::Maker;
use ir::BinOp;
use ir::analysis::interval::{IntervalSet, ones};
use ir::eval::checksum_update;
use proptest::prelude::*;

/// The words that change: their widths.
const WORDS: [u8; 7] = [16, 16, 16, 32, 8, 16, 8];
/// The word that is known to be at least a number, as a TTL that was not 0.
const TTL: (usize, u64) = (4, 9);
/// The word in the byte behind.
const PROTOCOL: usize = 6;

/// The operand of an update.
#[derive(Clone, Copy, Debug)]
enum Word {
    Number(u64),
    Known(usize),
    /// The sum of two words.
    Sum(usize, usize),
    /// The TTL less a number, and the protocol, as one word.
    Lifetime(u64),
}

fn word() -> impl Strategy<Value = Word> {
    let number = prop_oneof![Just(0), Just(0xffff), Just(256), Just(0xffff_ffff), 0..0x1_0000_u64];
    prop_oneof![
        number.prop_map(Word::Number),
        (0..WORDS.len()).prop_map(Word::Known),
        (0..WORDS.len(), 0..WORDS.len()).prop_map(|(a, b)| Word::Sum(a, b)),
        (0..=TTL.1).prop_map(Word::Lifetime),
    ]
}

/// From one word to another one, of 32 bits or of 16.
type Step = (Word, Word, bool);

fn updates() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((word(), word(), any::<bool>()), 0..6)
}

/// Values of the words, many of them at a limit.
fn values() -> impl Strategy<Value = Vec<u64>> {
    let value = prop_oneof![Just(0), Just(u64::MAX), Just(1), any::<u64>()];
    prop::collection::vec(value, WORDS.len()).prop_map(|all| {
        let mut words: Vec<u64> =
            all.into_iter().zip(WORDS).map(|(value, width)| value & ones(width)).collect();
        words[TTL.0] = words[TTL.0].max(TTL.1);
        words
    })
}

/// The bits of a word, apart from those of all others.
fn bits(word: usize) -> Bits {
    Bits { root: Root::Anno, bit: word as i32 * 100, width: WORDS[word] }
}

/// What is known of the words.
fn known(pool: &mut Pool) -> Facts {
    let mut facts = Facts::default();
    let ttl = pool.atom(Atom::Bits(bits(TTL.0)));
    assert!(facts.take(pool, ttl, &IntervalSet::range(TTL.1, 0xff)));
    facts
}

fn value(pool: &Pool, id: Id, words: &[u64]) -> u64 {
    let of = |id: &Id| value(pool, *id, words);
    match pool.node(id) {
        Node::Const(number) => *number,
        Node::Atom(Atom::Bits(part)) => {
            let at = part.bit as usize / 100;
            words[at] >> bits(at).low_of(*part) & ones(part.width)
        }
        Node::Cat(parts) => parts.iter().fold(0, |all, (low, part)| all | of(part) << low),
        Node::Slice(whole, low, width) => of(whole) >> low & ones(*width),
        Node::Sum(constant, terms) => {
            terms.iter().fold(*constant, |sum, (term, by)| sum.wrapping_add(of(term).wrapping_mul(*by)))
        }
        Node::Fold(sum) => (of(sum) & 0xffff) + (of(sum) >> 16),
        Node::Csum(sum, old, new, bits) => checksum_update(of(sum), of(old), of(new), *bits),
        other => panic!("a row of updates has no {other:?}"),
    }
}

/// An expression as text.
fn shown(pool: &Pool, id: Id) -> String {
    let operands: Vec<String> = pool.children(id).iter().map(|of| shown(pool, *of)).collect();
    format!("{:?}[{}]", pool.node(id), operands.join(", "))
}

/// A row of updates of the first word, as an expression and as a number.
fn row(make: &mut Maker<'_>, updates: &[Step], words: &[u64]) -> (Id, u64) {
    let atoms: Vec<Id> = (0..WORDS.len()).map(|at| make.pool.atom(Atom::Bits(bits(at)))).collect();
    let (mut id, mut number) = (atoms[0], words[0]);
    for (old, new, is_wide) in updates {
        let mut operand = |word: &Word| match *word {
            Word::Number(number) => (make.number(number), number),
            Word::Known(at) => (atoms[at], words[at]),
            Word::Sum(a, b) => (make.bin(BinOp::Add, atoms[a], atoms[b]), words[a] + words[b]),
            Word::Lifetime(less) => {
                let number = make.number(less);
                let left = make.bin(BinOp::Sub, atoms[TTL.0], number);
                let id = make.cat(&[(8, left), (0, atoms[PROTOCOL])]);
                (id, (words[TTL.0] - less) << 8 | words[PROTOCOL])
            }
        };
        let (old, new, bits) = (operand(old), operand(new), if *is_wide { 32 } else { 16 });
        id = make.checksum_update(id, old.0, new.0, bits);
        number = checksum_update(number, old.1, new.1, bits);
    }
    (id, number)
}

proptest! {
    #[test]
    fn rows_of_updates_are_what_they_were(updates in updates(), words in values()) {
        let mut pool = Pool::default();
        let facts = known(&mut pool);
        let mut make = Maker { pool: &mut pool, facts: &facts };
        let (id, number) = row(&mut make, &updates, &words);
        prop_assert_eq!(value(&pool, id, &words), number, "{:?}", pool.node(id));
    }

    #[test]
    fn the_order_of_updates_does_not_matter(updates in updates().prop_shuffle(), words in values()) {
        let mut pool = Pool::default();
        let facts = known(&mut pool);
        let mut make = Maker { pool: &mut pool, facts: &facts };
        let there = row(&mut make, &updates, &words).0;
        let back: Vec<_> = updates.into_iter().rev().collect();
        let back = row(&mut make, &back, &words).0;
        let text = |id: Id| shown(&pool, id);
        prop_assert_eq!(back, there, "{} {}", text(back), text(there));
    }
}

#[test]
fn rows_that_are_the_same_are_one_expression() {
    use Word::{Known, Lifetime, Number, Sum};
    let rows: [[&[Step]; 2]; 6] = [
        [
            &[(Number(256), Number(0), false), (Number(256), Number(0), false)],
            &[(Number(512), Number(0), false)],
        ],
        [
            &[(Number(256), Number(0), false), (Known(1), Known(2), false), (Known(2), Known(1), false)],
            &[(Number(256), Number(0), false)],
        ],
        [&[(Known(4), Known(1), false), (Known(1), Known(2), false)], &[(Known(4), Known(2), false)]],
        [
            &[(Known(4), Known(2), false), (Number(9), Number(4), false), (Known(5), Known(1), false)],
            &[(Sum(4, 5), Sum(1, 2), true), (Number(5), Number(0), true)],
        ],
        [
            &[(Number(7), Known(1), false)],
            &[(Number(0xffff), Known(1), false), (Number(7), Number(0), false)],
        ],
        // The protocol stands in a word before and behind, and does not change.
        [
            &[
                (Lifetime(4), Lifetime(6), false),
                (Known(2), Number(3), false),
                (Lifetime(6), Lifetime(9), false),
            ],
            &[(Number(5 << 8), Number(0), false), (Known(2), Number(3), false)],
        ],
    ];
    for [a, b] in rows {
        let mut pool = Pool::default();
        let facts = known(&mut pool);
        let mut make = Maker { pool: &mut pool, facts: &facts };
        let ids = [a, b].map(|updates| row(&mut make, updates, &[TTL.1; WORDS.len()]).0);
        assert_eq!(ids[0], ids[1], "{a:?} {b:?}: {:?} {:?}", pool.node(ids[0]), pool.node(ids[1]));
    }
    // What a translator adds to a sum (RFC 3022) is an update, too.
    let (mut pool, facts) = (Pool::default(), Facts::default());
    let mut make = Maker { pool: &mut pool, facts: &facts };
    let [sum, delta] = [0, 1].map(|at| make.pool.atom(Atom::Bits(bits(at))));
    let all_ones = make.number(0xffff);
    let complement = make.bin(BinOp::Sub, all_ones, sum);
    let total = make.bin(BinOp::Add, complement, delta);
    let (low, high) = (make.slice(total, 0, 16), make.slice(total, 16, 48));
    let folded = make.bin(BinOp::Add, low, high);
    let written = make.bin(BinOp::Sub, all_ones, folded);
    assert_eq!(written, make.checksum_update(sum, all_ones, delta, 16));
}
