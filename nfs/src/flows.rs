//! A table of flows, each with a value, whose entries expire.

use packet::FlowKey;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use table::flow::{FlowConfig, FlowTable, RecordId};

/// Flows, each with a value and the time at which it expires unless it is used again.
#[derive(Debug)]
pub struct Flows<T> {
    table: FlowTable<5>,
    /// By the number of the record.
    entries: Vec<Option<(u64, T)>>,
}

/// Records that are inspected to find one to evict when the table is full.
const SAMPLE: usize = 32;

fn words(key: &FlowKey) -> [u64; 5] {
    let halves = |address: IpAddr| {
        let bits = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        [(bits >> 64) as u64, bits as u64]
    };
    let ([a, b], [c, d]) = (halves(key.src), halves(key.dst));
    let ports = u64::from(key.src_port) << 32 | u64::from(key.dst_port) << 16 | u64::from(key.protocol);
    [a, b, c, d, ports]
}

impl<T> Flows<T> {
    /// A table of at most `capacity` flows.
    ///
    /// # Errors
    ///
    /// A sentence, when there is no memory for them.
    pub fn new(capacity: u32) -> Result<Flows<T>, String> {
        // Peers choose the keys, so they must not know the hash.
        let seed = RandomState::new().build_hasher().finish();
        let config = FlowConfig { capacity, seed, ..FlowConfig::default() };
        let table =
            FlowTable::new(&config).map_err(|error| format!("no table of {capacity} flows: {error}"))?;
        Ok(Flows { table, entries: vec![] })
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The flow of a key.
    #[inline]
    pub fn find(&self, key: &FlowKey) -> Option<RecordId> {
        self.table.find(&words(key))
    }

    /// The value of a flow.
    #[inline]
    pub fn get(&mut self, flow: RecordId) -> Option<&mut T> {
        self.entries.get_mut(flow.number() as usize)?.as_mut().map(|(_, value)| value)
    }

    /// Sets the time at which a flow expires.
    #[inline]
    pub fn keep_until(&mut self, flow: RecordId, due_ns: u64) {
        if let Some(Some((due, _))) = self.entries.get_mut(flow.number() as usize) {
            *due = due_ns;
        }
    }

    /// Adds a flow that expires at `due_ns`; `None` when the table is full, or has the key.
    pub fn insert(&mut self, key: &FlowKey, value: T, due_ns: u64) -> Option<RecordId> {
        let flow = self.table.insert(&words(key)).ok()?;
        self.store(flow, value, due_ns);
        Some(flow)
    }

    /// The same, except that in a full table the flow of a sample that would expire first makes room. Returns
    /// whether one did, too, which does not ensure that there is room.
    pub fn insert_evicting(&mut self, key: &FlowKey, value: T, due_ns: u64) -> (Option<RecordId>, bool) {
        let mut flow = self.table.insert(&words(key)).ok();
        let evicts = flow.is_none() && self.evict().is_some();
        if evicts {
            flow = self.table.insert(&words(key)).ok();
        }
        if let Some(flow) = flow {
            self.store(flow, value, due_ns);
        }
        (flow, evicts)
    }

    fn store(&mut self, flow: RecordId, value: T, due_ns: u64) {
        let number = flow.number() as usize;
        if self.entries.len() <= number {
            self.entries.resize_with(number + 1, || None);
        }
        if let Some(entry) = self.entries.get_mut(number) {
            *entry = Some((due_ns, value));
        }
    }

    /// Adds a second key to a flow; false when another flow has it.
    pub fn alias(&mut self, flow: RecordId, key: &FlowKey) -> bool {
        self.table.insert_alias(flow, &words(key), 0).is_ok()
    }

    /// Removes a flow with all its keys.
    pub fn remove(&mut self, flow: RecordId) -> Option<T> {
        self.table.remove(flow);
        self.entries.get_mut(flow.number() as usize)?.take().map(|(_, value)| value)
    }

    /// Evicts the flow of a sample that would expire first, to make room in a full table.
    fn evict(&mut self) -> Option<T> {
        let (mut budget, mut first) = (SAMPLE, None);
        while let Some(flow) = self.table.step(&mut budget) {
            let due = self.due(flow);
            if first.is_none_or(|(least, _)| due < least) {
                first = Some((due, flow));
            }
        }
        self.remove(first?.1)
    }

    /// Inspects the next `budget` records, and removes expired flows; `each` receives their values. Called
    /// about once a batch; each call is short.
    pub fn expire(&mut self, now_ns: u64, mut budget: usize, mut each: impl FnMut(T)) {
        self.table.maintain();
        while let Some(flow) = self.table.step(&mut budget) {
            if self.due(flow) <= now_ns
                && let Some(value) = self.remove(flow)
            {
                each(value);
            }
        }
    }

    /// The values of all flows.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten().map(|(_, value)| value)
    }

    fn due(&self, flow: RecordId) -> u64 {
        self.entries.get(flow.number() as usize).and_then(Option::as_ref).map_or(0, |(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16) -> FlowKey {
        let ip = IpAddr::from([10, 0, 0, 1]);
        FlowKey { src: ip, dst: ip, protocol: 6, src_port: port, dst_port: 80 }
    }

    #[test]
    fn flows_age_and_make_room() {
        let mut flows = Flows::new(4).expect("memory");
        for port in 1..=4u16 {
            assert!(flows.insert(&key(port), port, u64::from(port) * 10).is_some());
        }
        assert!(flows.insert(&key(5), 5, 100).is_none() && flows.insert(&key(1), 1, 1).is_none());
        // A flow made room, and the table has the key all the same.
        assert_eq!(flows.insert_evicting(&key(4), 4, 100), (None, true));
        assert_eq!((flows.find(&key(1)), flows.len()), (None, 3));
        assert!(flows.insert_evicting(&key(1), 1, 10).0.is_some() && flows.len() == 4);
        assert_eq!(flows.evict(), Some(1));
        let flow = flows.find(&key(2)).expect("there");
        flows.keep_until(flow, 1000);
        assert!(flows.alias(flow, &key(2).reversed()) && !flows.alias(flow, &key(3)));
        let mut gone = vec![];
        flows.expire(500, 100, |port| gone.push(port));
        gone.sort_unstable();
        assert_eq!(gone, [3, 4]);
        assert_eq!(flows.find(&key(2).reversed()), Some(flow));
        assert_eq!((flows.remove(flow), flows.find(&key(2)), flows.len()), (Some(2), None, 0));
    }
}
