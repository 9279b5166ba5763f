use super::*;
use crate::eval::checksum_update;
use proptest::prelude::*;

fn some(shape: u8, a: u64, b: u64) -> (Interval, u64) {
    let (a, b) = match shape % 4 {
        0 => (a % 32, b % 32),
        1 => (a, b),
        2 => (a % 8, b),
        _ => (u64::MAX - a % 32, u64::MAX - b % 32),
    };
    (Interval { lo: a.min(b), hi: a.max(b) }, b)
}

fn inside(range: Interval, pick: u64) -> u64 {
    match (range.hi - range.lo).checked_add(1) {
        Some(count) => range.lo + pick % count,
        None => pick,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn an_interval_holds_every_result(
        op in 0..BinOp::ALL.len(),
        a in any::<(u8, u64, u64, u64)>(),
        b in any::<(u8, u64, u64, u64)>(),
        same: bool,
    ) {
        let op = BinOp::ALL[op].0;
        let ((left, _), (mut right, single)) = (some(a.0, a.1, a.2), some(b.0, b.1, b.2));
        if same {
            right = Interval::only(if b.0 > 100 { fill(single) } else { single });
        }
        let (x, y) = (inside(left, a.3), inside(right, b.3));
        let range = Interval::of(op, left, right);
        let result = op.apply(x, y);
        prop_assert!(range.lo <= result && result <= range.hi, "{op:?} {left:?} {right:?} {x} {y}");
    }
}

#[test]
fn intervals_of_small_numbers_are_right() {
    for (op, name, _) in BinOp::ALL {
        for (alo, ahi, blo, bhi) in (0..6u64).flat_map(|a| {
            (a..6).flat_map(move |b| (0..6u64).flat_map(move |c| (c..6).map(move |d| (a, b, c, d))))
        }) {
            let range = Interval::of(op, Interval { lo: alo, hi: ahi }, Interval { lo: blo, hi: bhi });
            for (x, y) in (alo..=ahi).flat_map(|x| (blo..=bhi).map(move |y| (x, y))) {
                let result = op.apply(x, y);
                assert!(range.lo <= result && result <= range.hi, "{name} {x} {y}: {range:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_hull_holds_both_and_what_is_in_both_is_in_each(
        a in any::<(u8, u64, u64, u64)>(),
        b in any::<(u8, u64, u64, u64)>(),
    ) {
        let (left, right) = (some(a.0, a.1, a.2).0, some(b.0, b.1, b.2).0);
        let holds = |range: Interval, number: u64| range.lo <= number && number <= range.hi;
        for number in [inside(left, a.3), inside(right, b.3)] {
            prop_assert!(holds(left.hull(right), number));
            let both = holds(left, number) && holds(right, number);
            prop_assert_eq!(left.and(right).is_some_and(|and| holds(and, number)), both);
        }
    }

    #[test]
    fn what_an_instruction_yields_is_in_its_interval(
        a in any::<(u8, u64, u64, u64)>(),
        b in any::<(u8, u64, u64, u64)>(),
        c in any::<(u8, u64, u64, u64)>(),
        op in 0..BinOp::ALL.len(),
        bits in prop::sample::select(vec![16, 32]),
    ) {
        let ranges = [a, b, c].map(|one| some(one.0, one.1, one.2).0);
        let [x, y, z] = [0, 1, 2].map(|at| inside(ranges[at], [a, b, c][at].3));
        let [va, vb, vc] = [Value(0), Value(1), Value(2)];
        let yields = |inst| yields(inst, |value| ranges[value.0 as usize]);
        let cases = [
            (Inst::Const(x), x),
            (Inst::Bin(BinOp::ALL[op].0, va, vb), BinOp::ALL[op].0.apply(x, y)),
            (Inst::Select(va, vb, vc), if x != 0 { y } else { z }),
            (Inst::CsumUpdate(va, vb, vc, bits), checksum_update(x, y, z, bits)),
        ];
        for (inst, number) in cases {
            let range = yields(inst);
            prop_assert!(range.lo <= number && number <= range.hi, "{inst:?} {range:?} {number}");
        }
    }
}
