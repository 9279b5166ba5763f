//! Lookups that share a stage: packets keep their order, and each goes on behind its own lookup.

use crate::rig::{self, BoxTable};
use ir::Verified;

/// Packets whose first byte is odd, and others, each with a copy of two lookups. Values are carried from before the test,
/// from each copy, and over both lookups.
const COPIES: &str = "program Copies outputs 1
reason short
reason refused
table first key 1 record 8
table second key 1 record 8
entries b0
b0:
  need data 1 b1 b2
b1:
  v0 = load data[0:8]
  v1 = const 1
  v2 = and v0 v1
  v3 = add v0 v1
  branch v2 b3 b4
b2:
  drop 0
b3:
  v4 = const 1000
  v5 = add v3 v4
  v6 = create 0 v0 with v5 -> b5 b7 stage 7
b4:
  v7 = const 2000
  v8 = mul v3 v7
  v9 = create 0 v0 with v8 -> b6 b7 stage 7
b5:
  v10 = rec_load v6 0 8
  v11 = create 1 v10 with v5 -> b8 b7 stage 8
b6:
  v12 = rec_load v9 0 8
  v13 = add v12 v8
  v14 = create 1 v13 with v3 -> b9 b7 stage 8
b7:
  drop 1
b8:
  v15 = rec_load v11 0 8
  v16 = add v15 v10
  v17 = add v16 v3
  store_anno AGGREGATE v17
  emit 0
b9:
  v18 = rec_load v14 0 8
  v19 = add v18 v13
  store_anno AGGREGATE v19
  emit 0
";

fn program(text: &str) -> Verified {
    Verified::new(ir::text::parse(text).expect("parses")).expect("a valid program")
}

fn frames() -> Vec<Vec<u8>> {
    // Odd and even ones in no regular order, some of them again.
    (0..50u32).map(|at| vec![(at * at / 3 % 41) as u8, 0]).chain([vec![]]).collect()
}

#[test]
fn packets_go_on_behind_their_own_lookup() {
    for refuse_odd in [false, true] {
        let program = program(COPIES);
        let tables = || {
            let mut tables = vec![BoxTable::new(1, 1), BoxTable::new(1, 1)];
            tables.iter_mut().for_each(|table| table.refuse_odd = refuse_odd);
            tables
        };
        let [evaluator, native] = rig::engines(&program);
        let [expected, seen] = [evaluator, native]
            .map(|engine| rig::run_in_order(&program, &engine, &frames(), tables(), &[5, 6]));
        assert_eq!(seen.0, expected.0);
        // Of those that are refused, those at the first lookup come first.
        assert_eq!(seen.1[0], expected.1[0]);
    }
}

/// Without a common stage, too, though then the packets of one copy are looked up before those of the other.
#[test]
fn packets_keep_their_order() {
    let order = |text: &str| {
        let program = program(text);
        let [_, native] = rig::engines(&program);
        let tables = vec![BoxTable::new(1, 1), BoxTable::new(1, 1)];
        rig::run_in_order(&program, &native, &frames(), tables, &[5]).1
    };
    let all: Vec<u16> = (0..50).collect();
    assert_eq!(order(COPIES)[0], all);
    let apart = COPIES.replace(" stage 7", "").replace(" stage 8", "");
    assert_eq!(order(&apart)[0], all);
}
