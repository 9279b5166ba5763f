//! The table compared with a model of std collections, and each of its limits.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn config(record_bytes: usize, capacity: u32) -> FlowConfig {
    FlowConfig { record_bytes, capacity, initial_keys: 4, seed: 7, ..FlowConfig::default() }
}

fn key<const W: usize>(n: u64) -> [u64; W] {
    std::array::from_fn(|i| if i == W - 1 { n } else { 0x0a00_0000 })
}

fn write_stamp(address: *mut u8, stamp: u64) {
    // SAFETY: the address is that of a record in use, at least 64 bytes, aligned to 64.
    unsafe { address.cast::<u64>().write(stamp) };
}

fn read_stamp(address: *mut u8) -> u64 {
    // SAFETY: as in `write_stamp`.
    unsafe { address.cast::<u64>().read() }
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u64),
    Alias(u64, u64),
    RemoveAlias(u64, u64),
    Remove(u64),
    Expire { now_ns: u64, budget: usize },
    Lookup,
}

fn op() -> impl Strategy<Value = Op> {
    // Few distinct keys, so that operations affect the same keys.
    let n = 0..160u64;
    prop_oneof![
        8 => n.clone().prop_map(Op::Insert),
        4 => (n.clone(), n.clone()).prop_map(|(a, b)| Op::Alias(a, b)),
        2 => (n.clone(), n.clone()).prop_map(|(a, b)| Op::RemoveAlias(a, b)),
        3 => n.prop_map(Op::Remove),
        1 => (0..400u64, 0..40usize).prop_map(|(now_ns, budget)| Op::Expire { now_ns, budget }),
        1 => Just(Op::Lookup),
    ]
}

/// The state of the model: for each key the record and the offset, for each record its keys (primary
/// first) and its stamp.
#[derive(Default)]
struct Model {
    keys: HashMap<u64, (RecordId, usize)>,
    records: HashMap<RecordId, (Vec<u64>, u64)>,
}

impl Model {
    fn remove(&mut self, record: RecordId) {
        for key in self.records.remove(&record).expect("in the model").0 {
            self.keys.remove(&key);
        }
    }
}

fn run<const W: usize>(ops: &[Op], capacity: u32) {
    let mut table = FlowTable::<W>::new(&config(128, capacity)).expect("valid config");
    let mut model = Model::default();
    for (step, op) in ops.iter().enumerate() {
        match *op {
            Op::Insert(n) => match table.insert(&key(n)) {
                Ok(record) => {
                    assert_eq!(read_stamp(table.record_ptr(record)), 0, "zeroed");
                    write_stamp(table.record_ptr(record), step as u64 + 1);
                    assert!(model.keys.insert(n, (record, 0)).is_none());
                    model.records.insert(record, (vec![n], step as u64 + 1));
                }
                Err(TableError::KeyExists) => assert!(model.keys.contains_key(&n)),
                Err(TableError::RecordsFull { .. }) => {
                    assert_eq!(model.records.len(), capacity as usize);
                }
                Err(TableError::KeysFull { .. }) => {
                    assert_eq!(model.keys.len(), capacity as usize * 2);
                }
                Err(error) => panic!("{error}"),
            },
            Op::Alias(n, alias) => {
                let Some(&(record, _)) = model.keys.get(&n) else { continue };
                let offset = if alias % 2 == 0 { 64 } else { 0 };
                match table.insert_alias(record, &key(alias), offset) {
                    Ok(()) => {
                        assert!(model.keys.insert(alias, (record, offset)).is_none());
                        model.records.get_mut(&record).expect("live").0.push(alias);
                    }
                    Err(TableError::KeyExists) => assert!(model.keys.contains_key(&alias)),
                    Err(TableError::KeysFull { .. }) => {
                        assert_eq!(model.keys.len(), capacity as usize * 2);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Op::RemoveAlias(n, alias) => {
                let Some(&(record, _)) = model.keys.get(&n) else { continue };
                let keys = &mut model.records.get_mut(&record).expect("live").0;
                let at = keys.iter().skip(1).position(|&k| k == alias);
                assert_eq!(table.remove_alias(record, &key(alias)), at.is_some());
                if let Some(at) = at {
                    keys.remove(at + 1);
                    model.keys.remove(&alias);
                }
            }
            Op::Remove(n) => {
                let Some(&(record, _)) = model.keys.get(&n) else { continue };
                assert!(table.remove(record));
                assert!(!table.remove(record), "twice");
                model.remove(record);
            }
            Op::Expire { now_ns, budget } => {
                let mut gone = Vec::new();
                let count = table.expire(
                    now_ns,
                    budget,
                    |address| Some(read_stamp(address)),
                    |record, _| gone.push(record),
                );
                assert_eq!(count, gone.len());
                for record in gone {
                    assert!(model.records[&record].1 <= now_ns);
                    model.remove(record);
                }
                if budget >= capacity as usize {
                    assert!(model.records.values().all(|r| r.1 > now_ns), "a full round");
                }
            }
            Op::Lookup => compare(&table, &model),
        }
        assert_eq!(table.len(), model.records.len());
        assert_eq!(table.keys(), model.keys.len());
    }
    compare(&table, &model);
    table.clear();
    assert!(table.is_empty() && table.keys() == 0);
    compare(&table, &Model::default());
}

fn compare<const W: usize>(table: &FlowTable<W>, model: &Model) {
    let keys: Vec<[u64; W]> = (0..160).map(key).collect();
    // All indices except every seventh, in reverse order.
    let list: Vec<u16> = (0..160).rev().filter(|i| i % 7 != 0).collect();
    let mut out = vec![1u64; keys.len()];
    table.lookup_batch(&keys, &list, &mut out);
    for (n, key) in keys.iter().enumerate() {
        let expected = model
            .keys
            .get(&(n as u64))
            .map_or(0, |&(record, offset)| table.record_ptr(record) as u64 + offset as u64);
        assert_eq!(table.find_address(key), expected);
        assert_eq!(out[n], if n % 7 == 0 { 1 } else { expected });
        assert_eq!(table.find(key), model.keys.get(&(n as u64)).map(|&(record, _)| record));
        if expected != 0 {
            assert_eq!(table.record_at(expected), table.find(key));
        }
    }
    for (&record, (keys, stamp)) in &model.records {
        assert_eq!(read_stamp(table.record_ptr(record)), *stamp, "content stays");
        let mut listed: Vec<_> = table.keys_of(record).map(|(key, _)| key[W - 1]).collect();
        assert_eq!(listed.pop(), Some(keys[0]), "the primary key is last");
        listed.reverse();
        assert_eq!(listed, keys[1..]);
    }
    assert_eq!(table.iter().count(), model.records.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 96 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_model(
        ops in prop::collection::vec(op(), 1..if cfg!(miri) { 80 } else { 900 }),
        capacity in 1u32..120,
        width in 1usize..=5,
    ) {
        match width {
            1 => run::<1>(&ops, capacity),
            2 => run::<2>(&ops, capacity),
            3 => run::<3>(&ops, capacity),
            4 => run::<4>(&ops, capacity),
            _ => run::<5>(&ops, capacity),
        }
    }
}

/// Grows from 4 keys through many doublings, with repeated lookups of all keys, while every third flow is
/// removed again.
fn grow<const W: usize>(flows: u64) {
    let mut table = FlowTable::<W>::new(&config(64, flows as u32)).expect("valid config");
    let mut addresses = HashMap::new();
    for n in 0..flows {
        let record = table.insert(&key(n)).expect("has room");
        write_stamp(table.record_ptr(record), n);
        addresses.insert(n, table.record_ptr(record) as u64);
        if n % 3 == 0 {
            let gone = table.find(&key(n / 2));
            assert_eq!(gone.is_some(), addresses.remove(&(n / 2)).is_some());
            if let Some(record) = gone {
                table.remove(record);
            }
        }
        if n.is_power_of_two() || n % 997 == 0 || n + 1 == flows {
            for m in 0..=n {
                let expected = addresses.get(&m).copied().unwrap_or(0);
                assert_eq!(table.find_address(&key(m)), expected, "{m} of {n}");
            }
        }
    }
    assert!(addresses.iter().all(|(&n, &at)| read_stamp(at as *mut u8) == n));
    for _ in 0..flows {
        table.maintain();
    }
    assert!(matches!(table.growth, Growth::None));
}

#[test]
fn grows_without_losing_a_flow() {
    let flows = if cfg!(miri) { 60 } else { 6_000 };
    grow::<1>(flows);
    grow::<2>(flows);
    grow::<5>(flows);
}

#[test]
fn full_table_says_so_and_survives() {
    let mut table = FlowTable::<2>::new(&config(64, 3)).expect("valid config");
    let records: Vec<_> = (0..3).map(|n| table.insert(&key(n)).expect("has room")).collect();
    assert_eq!(table.insert(&key(9)), Err(TableError::RecordsFull { capacity: 3 }));
    assert!(table.remove(records[1]));
    assert!(table.insert(&key(9)).is_ok());
    assert_eq!(table.insert(&key(0)), Err(TableError::KeyExists));

    // 6 keys in all: three aliases fit, the fourth does not and leaves no trace.
    for n in 10..13 {
        table.insert_alias(records[0], &key(n), 0).expect("has room");
    }
    let full = Err(TableError::KeysFull { max_keys: 6 });
    assert_eq!(table.insert_alias(records[0], &key(13), 0), full);
    assert_eq!(table.find(&key(13)), None);
}

#[test]
fn failed_insert_returns_its_record() {
    let mut table = FlowTable::<1>::new(&config(64, 2)).expect("valid config");
    let record = table.insert(&key(0)).expect("has room");
    for n in 1..4 {
        table.insert_alias(record, &key(n), 0).expect("has room");
    }
    assert_eq!(table.insert(&key(4)), Err(TableError::KeysFull { max_keys: 4 }));
    assert_eq!(table.len(), 1);
    assert!(table.remove_alias(record, &key(1)));
    assert!(table.insert(&key(4)).is_ok());
}

#[test]
fn aliases_lead_into_the_record() {
    let mut table = FlowTable::<2>::new(&config(100, 8)).expect("valid config");
    assert_eq!(table.record_bytes(), 128);
    let record = table.insert(&key(1)).expect("has room");
    table.insert_alias(record, &key(2), 64).expect("has room");
    let base = table.record_ptr(record) as u64;
    assert!(base.is_multiple_of(64));
    assert_eq!(table.find_address(&key(1)), base);
    assert_eq!(table.find_address(&key(2)), base + 64);
    assert_eq!(table.record_at(base + 64), Some(record));
    assert_eq!(table.record_at(base - 128), None);
    assert_eq!(table.record_at(base + 128), None);
    assert_eq!(table.record_at(0), None);
    for offset in [1, 63, 128] {
        assert!(matches!(table.insert_alias(record, &key(3), offset), Err(TableError::BadParameter { .. })));
    }
    assert!(!table.remove_alias(record, &key(1)), "the primary key is no alias");
    assert!(table.remove(record));
    assert_eq!((table.find(&key(1)), table.find(&key(2))), (None, None));
    assert_eq!(table.insert_alias(record, &key(2), 0), Err(TableError::NoSuchRecord(record.number())));
}

#[test]
fn hand_walks_its_budget_and_all_the_way_round() {
    let mut table = FlowTable::<1>::new(&config(64, 100)).expect("valid config");
    for n in 0..100 {
        let record = table.insert(&key(n)).expect("has room");
        write_stamp(table.record_ptr(record), n);
    }
    let mut looked_at = 0;
    let gone = table.expire(
        49,
        30,
        |address| {
            looked_at += 1;
            Some(read_stamp(address))
        },
        |_, _| {},
    );
    assert_eq!((looked_at, gone), (30, 30));
    assert_eq!(table.expire(49, 70, |address| Some(read_stamp(address)), |_, _| {}), 20);
    assert_eq!(table.expire(u64::MAX, 100, |_| None, |_, _| {}), 0);
    assert_eq!(table.len(), 50);
    let mut budget = 100;
    let records: Vec<_> = std::iter::from_fn(|| table.step(&mut budget)).collect();
    assert_eq!(records.iter().map(|record| read_stamp(table.record_ptr(*record))).min(), Some(50));
    assert_eq!(table.step(&mut 0), None);
}

#[test]
fn strided_unaligned_keys() {
    let mut table = FlowTable::<2>::new(&config(64, 8)).expect("valid config");
    let record = table.insert(&[1, 2]).expect("has room");
    let mut bytes = [0u8; 3 + 2 * 24];
    for (i, word) in [1u64, 2].iter().enumerate() {
        bytes[3 + 24 + i * 8..][..8].copy_from_slice(&word.to_ne_bytes());
    }
    let mut out = [7u64; 2];
    // SAFETY: two keys of 16 bytes lie 24 bytes apart behind the first 3 bytes.
    unsafe { table.lookup_batch_raw(bytes.as_ptr().add(3), 24, &[0, 1], out.as_mut_ptr()) };
    assert_eq!(out, [0, table.record_ptr(record) as u64]);
}

#[test]
#[should_panic(expected = "outside")]
fn list_outside_keys_is_refused() {
    let table = FlowTable::<1>::new(&config(64, 8)).expect("valid config");
    table.lookup_batch(&[[1]], &[1], &mut [0, 0]);
}

#[test]
fn bad_sizes_are_refused() {
    for bad in [
        FlowConfig { capacity: 0, ..FlowConfig::default() },
        FlowConfig { capacity: (1 << 30) + 1, ..FlowConfig::default() },
        FlowConfig { record_bytes: 0, ..FlowConfig::default() },
        FlowConfig { max_keys: 5, ..FlowConfig::default() },
        FlowConfig { max_keys: 1 << 31, ..FlowConfig::default() },
    ] {
        assert!(matches!(FlowTable::<1>::new(&bad), Err(TableError::BadParameter { .. })));
    }
}

#[test]
fn fields_are_read_and_written_inside_the_records_only() {
    let mut table = FlowTable::<2>::new(&config(128, 4)).expect("valid config");
    let record = table.insert(&[1, 2]).expect("has room");
    table.insert_alias(record, &[3, 4], 64).expect("has room");
    let (first, second) = (table.find_address(&[1, 2]), table.find_address(&[3, 4]));
    table.store(second, 2, 4, 0x1_2233_4455);
    assert_eq!((table.load(first, 66, 8), table.load(second, 3, 2)), (0x2233_4455, 0x3344));
    for (address, offset, bytes) in [(0, 0, 8), (u64::MAX, 0, 1), (first - 4096, 0, 1), (first, 1 << 30, 1)] {
        table.store(address, offset, bytes, 1);
        assert_eq!(table.load(address, offset, bytes), 0);
    }
    assert_eq!(table.load(first, 0, 9), 0, "more than a number holds");
}

#[test]
fn strided_keys_are_found_among_other_words() {
    let mut table = FlowTable::<2>::new(&config(64, 8)).expect("valid config");
    let record = table.insert(&[1, 2]).expect("has room");
    let (keys, mut out) = ([9, 9, 9, 1, 2], [7; 4]);
    table.lookup_batch_strided(&keys, 3, &[1, 0], &mut out);
    assert_eq!(out, [0, table.record_ptr(record) as u64, 7, 7]);
}

#[test]
#[should_panic(expected = "outside")]
fn strided_list_outside_keys_is_refused() {
    let table = FlowTable::<2>::new(&config(64, 8)).expect("valid config");
    table.lookup_batch_strided(&[1, 2, 9, 1], 3, &[1], &mut [0, 0]);
}

#[test]
fn hand_steps_over_records_in_use_as_long_as_the_budget_lasts() {
    let mut table = FlowTable::<1>::new(&config(64, 8)).expect("valid config");
    assert_eq!(table.step(&mut 9), None);
    let records: Vec<_> = (1..=4).map(|n| table.insert(&[n]).expect("has room")).collect();
    table.remove(records[1]);
    let mut budget = 6;
    let seen: Vec<_> = std::iter::from_fn(|| table.step(&mut budget)).collect();
    assert_eq!(seen, [records[0], records[2], records[3], records[0]]);
    assert_eq!(budget, 0);
}
