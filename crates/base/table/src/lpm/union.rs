//! Several tables of IPv4 prefixes that are asked by one key, as one.
//!
//! Of two prefixes, one contains the other, or they have no address in common. So the answers of several tables
//! change only where a prefix of one of them begins or ends, and the union of their prefixes is at most as
//! many as theirs together.

/// A prefix of a union: its address and length, and what each table answers for the addresses in it that are
/// in no longer prefix.
pub type Together<T> = (u32, u8, Vec<Option<T>>);

/// The union of tables: of each, its prefixes (addresses whose bits behind the length are 0, lengths of at most
/// 32, each pair once) with their values. A prefix comes before those that it contains.
///
/// Takes as much memory as there are prefixes times tables.
pub fn union<T: Copy>(tables: &[&[(u32, u8, T)]]) -> Vec<Together<T>> {
    let prefixes = |(table, of): (usize, &&[(u32, u8, T)])| {
        of.iter().map(move |(prefix, len, value)| (*prefix, *len, table, *value)).collect::<Vec<_>>()
    };
    let mut all: Vec<(u32, u8, usize, T)> = tables.iter().enumerate().flat_map(prefixes).collect();
    all.sort_by_key(|(prefix, len, ..)| (*prefix, *len));
    let mut union: Vec<Together<T>> = vec![];
    // The prefixes that contain the present one, by their places in the union; the longest is the last.
    let mut around: Vec<usize> = vec![];
    for (prefix, len, table, value) in all {
        if union.last().is_none_or(|last| (last.0, last.1) != (prefix, len)) {
            while around.last().is_some_and(|at| !contains(union[*at].0, union[*at].1, prefix)) {
                around.pop();
            }
            let inherited = around.last().map_or_else(|| vec![None; tables.len()], |at| union[*at].2.clone());
            around.push(union.len());
            union.push((prefix, len, inherited));
        }
        if let Some(last) = union.last_mut() {
            last.2[table] = Some(value);
        }
    }
    union
}

fn contains(prefix: u32, len: u8, address: u32) -> bool {
    (prefix ^ address).checked_shr(32 - u32::from(len.min(32))).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lpm::Lpm4;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Prefixes that often contain each other.
    fn table() -> impl Strategy<Value = BTreeMap<(u32, u8), u32>> {
        let prefix = (0u8..=32, 0u32..16, any::<bool>()).prop_map(|(len, bits, is_low)| {
            let address = if is_low { 0xc612_0000 | bits } else { bits << 28 | bits };
            (address & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0), len)
        });
        prop::collection::btree_map(prefix, 0u32..5, 0..12)
    }

    proptest! {
        #[test]
        fn a_union_answers_what_each_table_answers(
            tables in prop::collection::vec(table(), 1..5),
            others in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            let listed: Vec<Vec<(u32, u8, u32)>> = tables
                .iter()
                .map(|table| table.iter().map(|((prefix, len), value)| (*prefix, *len, *value)).collect())
                .collect();
            let singles: Vec<Lpm4> = listed
                .iter()
                .map(|table| {
                    let mut lpm = Lpm4::new().expect("memory");
                    for (prefix, len, value) in table {
                        lpm.insert(*prefix, *len, *value).expect("a prefix");
                    }
                    lpm
                })
                .collect();
            let union = union(&listed.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert!(union.len() <= listed.iter().map(Vec::len).sum());
            let mut together = Lpm4::new().expect("memory");
            for (at, (prefix, len, _)) in union.iter().enumerate() {
                prop_assert_eq!(together.insert(*prefix, *len, at as u32).expect("a prefix"), None);
            }
            // The borders of all prefixes, and any addresses.
            let borders = listed.iter().flatten().flat_map(|(prefix, len, _)| {
                let last = prefix | u32::MAX.checked_shr(u32::from(*len)).unwrap_or(0);
                [*prefix, prefix.wrapping_sub(1), last, last.wrapping_add(1)]
            });
            for address in borders.chain(others) {
                let answers: Vec<Option<u32>> = singles.iter().map(|lpm| lpm.lookup(address)).collect();
                let found = together.lookup(address).map(|at| union[at as usize].2.clone());
                prop_assert_eq!(found.unwrap_or_else(|| vec![None; singles.len()]), answers, "{:#x}", address);
            }
        }
    }
}
