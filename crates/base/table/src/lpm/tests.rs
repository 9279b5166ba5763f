//! Both tables compared with a linear scan, and every prefix length.

use super::*;
use crate::TableError;
use proptest::prelude::*;
use std::collections::HashMap;

fn mask4(len: u8) -> u32 {
    if len == 0 { 0 } else { u32::MAX << (32 - len) }
}

fn mask6(len: u8) -> u128 {
    if len == 0 { 0 } else { u128::MAX << (128 - len) }
}

/// Few leading patterns, so that prefixes nest and cover addresses.
fn address6() -> impl Strategy<Value = u128> {
    let bytes = prop_oneof![4 => Just(0u8), 2 => Just(0xff), 1 => any::<u8>()];
    prop::array::uniform16(bytes).prop_map(u128::from_be_bytes)
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u128, u8, u32),
    Remove(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (address6(), 0..=128u8, 0..1000u32).prop_map(|(p, l, v)| Op::Insert(p, l, v)),
        1 => any::<prop::sample::Index>().prop_map(|i| Op::Remove(i.index(1 << 16))),
    ]
}

macro_rules! agrees {
    ($ops:expr, $probes:expr, $table:ty, $mask:ident, $address:ty, $narrow:expr) => {{
        let narrow: fn(u128, u8) -> ($address, u8) = $narrow;
        let mut table = <$table>::new().expect("address space");
        let mut model: HashMap<($address, u8), u32> = HashMap::new();
        let check = |table: &$table, model: &HashMap<($address, u8), u32>| {
            let mut probes: Vec<$address> = $probes.iter().map(|&probe| narrow(probe, 0).0).collect();
            // The ends of every prefix and the addresses next to them.
            for &(prefix, len) in model.keys() {
                let last = prefix | !$mask(len);
                probes.extend([prefix, last, prefix.wrapping_sub(1), last.wrapping_add(1)]);
            }
            let mut values = vec![0; probes.len()];
            table.lookup_batch(&probes, &mut values);
            for (&probe, &value) in probes.iter().zip(&values) {
                let expected = model
                    .iter()
                    .filter(|&(&(prefix, len), _)| probe & $mask(len) == prefix)
                    .max_by_key(|&(&(_, len), _)| len)
                    .map(|(_, &value)| value);
                assert_eq!(table.lookup(probe), expected, "{probe:x}");
                assert_eq!(value, expected.unwrap_or(MISS), "{probe:x} in a batch");
            }
            assert_eq!(table.len(), model.len());
            assert!(table.iter().all(|(prefix, len, value)| model[&(prefix, len)] == value));
            assert_eq!(table.iter().count(), model.len());
        };
        for op in $ops {
            match *op {
                Op::Insert(prefix, len, value) => {
                    let (prefix, len) = narrow(prefix, len);
                    let replaced = model.insert((prefix & $mask(len), len), value);
                    assert_eq!(table.insert(prefix, len, value), Ok(replaced));
                }
                Op::Remove(index) => {
                    let keys: Vec<_> = table.iter().map(|(prefix, len, _)| (prefix, len)).collect();
                    if keys.is_empty() {
                        continue;
                    }
                    let (prefix, len) = keys[index % keys.len()];
                    let value = model.remove(&(prefix, len));
                    assert_eq!(table.get_exact(prefix, len), value);
                    assert_eq!(table.remove(prefix, len), value);
                    assert_eq!(table.remove(prefix, len), None);
                }
            }
        }
        check(&table, &model);
        for (prefix, len) in std::mem::take(&mut model).into_keys() {
            assert!(table.remove(prefix, len).is_some());
        }
        check(&table, &model);
        table.assert_empty();
    }};
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn ipv4_agrees_with_scan(
        ops in prop::collection::vec(op(), 1..200),
        probes in prop::collection::vec(address6(), 64..200),
    ) {
        agrees!(&ops, &probes, Lpm4, mask4, u32, |a, len| ((a >> 96) as u32, len % 33));
    }

    #[test]
    fn ipv6_agrees_with_scan(
        ops in prop::collection::vec(op(), 1..200),
        probes in prop::collection::vec(address6(), 64..200),
    ) {
        agrees!(&ops, &probes, Lpm6, mask6, u128, |a, len| (a, len));
    }
}

#[test]
fn every_length_nested() {
    let mut four = Lpm4::new().expect("address space");
    let mut six = Lpm6::new().expect("address space");
    let (address4, address6) = (0xc0a8_5a3c_u32, 0x2001_0db8_5a3c_c3a5_0123_4567_89ab_cdef_u128);
    for len in 0..=32 {
        assert_eq!(four.insert(address4, len, u32::from(len)), Ok(None));
    }
    for len in 0..=128 {
        assert_eq!(six.insert(address6, len, u32::from(len)), Ok(None));
    }
    // An address that leaves the path at bit n matches the prefix of n bits.
    for bit in 0..32u8 {
        assert_eq!(four.lookup(address4 ^ 1 << (31 - bit)), Some(u32::from(bit)));
    }
    for bit in 0..128u8 {
        assert_eq!(six.lookup(address6 ^ 1 << (127 - bit)), Some(u32::from(bit)));
    }
    assert_eq!((four.lookup(address4), six.lookup(address6)), (Some(32), Some(128)));
    // From the shortest on: what remains still matches.
    for len in 0..=32 {
        assert_eq!(four.remove(address4, len), Some(u32::from(len)));
        assert_eq!(four.lookup(address4), (len < 32).then_some(32));
    }
    for len in (0..=128).rev() {
        assert_eq!(six.remove(address6, len), Some(u32::from(len)));
        assert_eq!(six.lookup(address6), len.checked_sub(1).map(u32::from));
    }
    four.assert_empty();
    six.assert_empty();
}

#[test]
fn bounds_are_refused() {
    let mut table = Lpm4::new().expect("address space");
    assert!(matches!(table.insert(0, 33, 0), Err(TableError::BadParameter { .. })));
    assert!(matches!(table.insert(0, 8, MAX_VALUE + 1), Err(TableError::BadParameter { .. })));
    assert_eq!(table.remove(0, 33), None);
    assert_eq!(table.get_exact(0, 255), None);
    assert_eq!(table.insert(1, 8, MAX_VALUE), Ok(None));
    assert_eq!(table.get_exact(2, 8), Some(MAX_VALUE), "bits beyond the length are ignored");
    assert_eq!(table.lookup(3), Some(MAX_VALUE));
}

#[test]
fn list_picks_addresses() {
    let mut table = Lpm4::new().expect("address space");
    table.insert(0x0a00_0000, 8, 5).expect("valid");
    let mut values = [9; 3];
    let (addresses, list) = ([0x0a01_0101u32, 0x0a01_0101, 0x0b00_0000], [2, 0]);
    table.lookup_each(list.len(), |i| addresses[list[i]], |i, value| values[list[i]] = value);
    assert_eq!(values, [5, 9, MISS]);
}

#[test]
fn node_space_grows() {
    let mut table = Lpm4::new().expect("address space");
    table.shrink_reserve_for_test(4);
    for n in 0..64u32 {
        table.insert(n << 16, 24, n).expect("grows");
    }
    for n in 0..64u32 {
        assert_eq!(table.lookup(n << 16 | 7), Some(n));
    }
}
