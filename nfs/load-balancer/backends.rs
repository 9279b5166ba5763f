//! The lookup table of Maglev (Eisenbud et al., NSDI 2016, section 3.4): every backend has about its share of
//! the entries, and when a backend is removed, most flows of the others keep their backends.

use packet::{FlowKey, MacAddr};
use std::net::Ipv4Addr;

/// A backend server.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    pub end: (Ipv4Addr, u16),
    pub mac: Option<MacAddr>,
    /// Its share, relative to those of the others.
    pub weight: usize,
}

/// Entries of the table: a prime, a hundred times the reasonable number of backends.
const ENTRIES: usize = 65_537;
/// Fixed, so that parallel balancers, and a restarted one, choose the same backends.
const SEEDS: [u64; 3] = [0x6d69_6c6c_7261_6365, 0x6f66_6673_6574, 0x736b_6970];

/// The lookup table.
#[derive(Default)]
pub struct Table {
    entries: Vec<u16>,
}

fn hash(backend: &Backend, seed: u64) -> usize {
    let (address, port) = backend.end;
    let key =
        FlowKey { src: address.into(), dst: address.into(), protocol: 0, src_port: port, dst_port: port };
    key.table_hash(seed) as usize
}

impl Table {
    /// The table of these backends.
    pub fn new(backends: &[Backend]) -> Table {
        const FREE: u16 = u16::MAX;
        let mut entries = vec![FREE; ENTRIES];
        // Each backend visits the entries in an order of its own and takes free ones in turn.
        let mut turns: Vec<(usize, usize)> = backends
            .iter()
            .map(|backend| (hash(backend, SEEDS[1]) % ENTRIES, 1 + hash(backend, SEEDS[2]) % (ENTRIES - 1)))
            .collect();
        let mut left = if backends.is_empty() { 0 } else { ENTRIES };
        while left > 0 {
            for (number, ((at, skip), backend)) in turns.iter_mut().zip(backends).enumerate() {
                for _ in 0..backend.weight.min(left) {
                    while entries[*at] != FREE {
                        *at = (*at + *skip) % ENTRIES;
                    }
                    entries[*at] = number as u16;
                    left -= 1;
                }
            }
        }
        Table { entries: if backends.is_empty() { vec![] } else { entries } }
    }

    /// The backend of a flow, by its number.
    pub fn choose(&self, key: &FlowKey) -> Option<usize> {
        let hash = key.table_hash(SEEDS[0]) as usize;
        self.entries.get(hash % ENTRIES).map(|number| usize::from(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(last: u8, weight: usize) -> Backend {
        Backend { end: (Ipv4Addr::new(10, 0, 0, last), 80), mac: None, weight }
    }

    fn chosen(backends: &[Backend]) -> Vec<Ipv4Addr> {
        let table = Table::new(backends);
        let ip = std::net::IpAddr::from([192, 0, 2, 1]);
        let key = |port| FlowKey { src: ip, dst: ip, protocol: 6, src_port: port, dst_port: 80 };
        (0..10_000).filter_map(|port| Some(backends[table.choose(&key(port))?].end.0)).collect()
    }

    #[test]
    fn shares_are_by_weight() {
        let all = chosen(&[backend(1, 1), backend(2, 1), backend(3, 2)]);
        for (last, expected) in [(1, 2500), (2, 2500), (3, 5000)] {
            let count = all.iter().filter(|address| address.octets()[3] == last).count();
            assert!(count.abs_diff(expected) < 300, "backend {last} has {count}");
        }
        assert!(chosen(&[]).is_empty());
    }

    #[test]
    fn flows_of_the_others_stay_when_one_goes() {
        let before = chosen(&[backend(1, 1), backend(2, 1), backend(3, 1), backend(4, 1)]);
        let after = chosen(&[backend(1, 1), backend(2, 1), backend(4, 1)]);
        let moved = before.iter().zip(&after).filter(|(old, new)| old.octets()[3] != 3 && old != new).count();
        assert!(moved < 500, "{moved} flows of others moved");
    }
}
