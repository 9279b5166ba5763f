use super::*;
use codegen::lookup_row::RecordTest;
use ir::CacheValidity;
use ir::table::PrefixRecord;

/// Routes to outputs. A record has the output; its handle is that plus one.
struct Routes {
    prefixes: Vec<(u32, u8, u64)>,
    changes: u64,
}

// SAFETY: it gives out no addresses.
unsafe impl Table for Routes {
    fn key_words(&self) -> usize {
        1
    }

    fn lookup(&self, _key: &[u64]) -> Option<u64> {
        None
    }

    fn prefixes(&self, most: usize) -> Option<Vec<PrefixRecord>> {
        let all = self.prefixes.iter();
        (self.prefixes.len() <= most).then(|| {
            all.map(|(prefix, len, output)| PrefixRecord { prefix: *prefix, len: *len, record: output + 1 })
                .collect()
        })
    }

    fn create(&mut self, _key: &[u64], _args: &[u64], _now_ns: u64) -> Created {
        Created::Refused
    }

    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64 {
        let word = (record - 1).to_le_bytes();
        let from = usize::from(offset);
        word[from..from + usize::from(bytes)].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }

    fn record_store(&mut self, _record: u64, _offset: u16, _bytes: u8, _value: u64) {}

    fn cache_validity(&self) -> Option<CacheValidity> {
        Some(CacheValidity { misses: true, changes: self.changes, gone: None })
    }
}

fn tables(of: [&[(u32, u8, u64)]; 2]) -> Vec<Box<dyn Table>> {
    of.map(|prefixes| Box::new(Routes { prefixes: prefixes.to_vec(), changes: 1 }) as Box<dyn Table>).into()
}

/// Two tables; of the first, packets go on by output 7 only.
fn row() -> Vec<LookupRow> {
    let tests = vec![RecordTest { offset: 0, bytes: 4, number: 7 }];
    let first = RowPart { table: 0, record_bytes: 8, offset: 0, tests };
    let second = RowPart { table: 1, record_bytes: 8, offset: 8, tests: vec![] };
    vec![LookupRow { parts: vec![first, second] }]
}

/// What the union answers: both outputs, or nothing. `None` where there is no union.
fn answer(unions: &Unions, tables: &mut dyn Tables, address: u32) -> Option<Option<(u64, u64)>> {
    let changes = |table: u16| Some(tables.table(usize::from(table))?.cache_validity()?.changes);
    let union = unions.of(0, changes)?;
    let record = union.lookup(&[address.into()]);
    Some(record.map(|record| (union.record_load(record, 0, 8), union.record_load(record, 8, 8))))
}

const NET: u32 = 0x0a00_0000;

#[test]
fn a_union_is_used_while_its_tables_are_as_they_were() {
    let mut unions = Unions::default();
    let mut before = tables([&[(NET, 8, 7), (NET, 16, 3), (NET, 24, 7)], &[(0, 0, 1), (NET, 24, 2)]]);
    assert_eq!(answer(&unions, &mut before, NET), None);
    unions.update(&row(), &mut before);
    assert_eq!(answer(&unions, &mut before, NET | 0xff_ffff), Some(Some((7, 1))));
    assert_eq!(answer(&unions, &mut before, NET | 0xffff), Some(None), "the longer prefix leads elsewhere");
    assert_eq!(answer(&unions, &mut before, NET | 0xff), Some(Some((7, 2))));
    assert_eq!(answer(&unions, &mut before, 0), Some(None), "the first table has nothing");
    assert_eq!(unions.count(), 1);

    // The second table changes: none, until it has been as it is for a while.
    let mut after = tables([&[(NET, 8, 7)], &[(NET, 9, 5)]]);
    after[1] = Box::new(Routes { prefixes: vec![(NET, 9, 5)], changes: 2 });
    assert_eq!(answer(&unions, &mut after, NET), None);
    unions.update(&row(), &mut after);
    assert_eq!(answer(&unions, &mut after, NET), None);
    assert_eq!(unions.count(), 0);
    unions.update(&row(), &mut after);
    assert_eq!(answer(&unions, &mut after, NET), Some(Some((7, 5))));
    assert_eq!(answer(&unions, &mut after, NET | 0xff_ffff), Some(None), "the second table has nothing");

    // Another table that has changed as often.
    unions.clear();
    assert_eq!(answer(&unions, &mut after, NET), None);
}

#[test]
fn a_large_union_is_made_aside_and_too_large_a_one_not_at_all() {
    let many = |count: u32| (0..count).map(|at| (NET + (at << 8), 24, 7)).collect::<Vec<_>>();
    let mut large = tables([&many(1000), &[(0, 0, 1)]]);
    let mut unions = Unions::default();
    unions.update(&row(), &mut large);
    assert_eq!(answer(&unions, &mut large, NET), None, "it is not there at once");
    while unions.count() == 0 {
        std::thread::yield_now();
        unions.update(&row(), &mut large);
    }
    assert_eq!(answer(&unions, &mut large, NET | 999 << 8 | 1), Some(Some((7, 1))));
    assert_eq!(answer(&unions, &mut large, NET | 1000 << 8), Some(None));

    let mut larger = tables([&many(5000), &[(0, 0, 1)]]);
    let mut unions = Unions::default();
    unions.update(&row(), &mut larger);
    assert_eq!((unions.count(), unions.rows[0].failed.len()), (0, 2));
    assert!(unions.rows[0].next.is_none(), "nor is it made");
}
