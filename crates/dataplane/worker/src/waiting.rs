//! Packets of a burst that wait, in their vector, to enter a node.
//!
//! Where ways part, the packets of each way wait, and the node that comes first in the order of the graph
//! ([`crate::order`]) runs next. So packets whose ways meet again wait until all of them are there, and
//! enter in the order in which they arrived: lists are sorted by the packets' place in the vector.

use shm::burst::{LIST_CAPACITY, is_in_order, put_in_order};

/// What packets that wait at a node enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryPoint {
    /// An input.
    Input(usize),
    /// The element's own code for a slow path of its program.
    Slow(usize),
}

/// Packets that wait at a node.
pub(crate) struct WaitingPackets {
    /// The node's place in the order of the graph.
    pub rank: u32,
    /// The node.
    pub node: usize,
    /// What they enter.
    pub entry_point: EntryPoint,
    /// How often they went back in the order of the graph.
    pub depth: usize,
    len: usize,
    indices: [u16; LIST_CAPACITY],
}

impl WaitingPackets {
    /// The packets, in the order of their arrival.
    #[inline]
    pub fn list(&self) -> &[u16] {
        &self.indices[..self.len]
    }

    fn set(&mut self, list: &[u16]) {
        self.len = list.len().min(LIST_CAPACITY);
        self.indices[..self.len].copy_from_slice(&list[..self.len]);
    }

    /// Adds packets. None of them is in the list yet.
    fn merge(&mut self, list: &[u16]) {
        let room = list.len().min(LIST_CAPACITY - self.len);
        self.indices[self.len..self.len + room].copy_from_slice(&list[..room]);
        self.len += room;
        let all = &mut self.indices[..self.len];
        if !is_in_order(all) {
            put_in_order(all);
        }
    }

    /// The number of packets whose index is below `end`.
    fn below(&self, end: u16) -> usize {
        self.list().partition_point(|index| *index < end)
    }
}

/// The packets that wait, for each vector that is being processed: that of the burst, and those of packets
/// that elements made of it meanwhile. The entries of the vector that is processed now are the last ones.
#[derive(Default)]
pub(crate) struct WaitingLists {
    #[expect(clippy::vec_box, reason = "entries are taken out and put back, and their lists are long")]
    entries: Vec<Box<WaitingPackets>>,
    #[expect(clippy::vec_box, reason = "kept for their allocations")]
    spare: Vec<Box<WaitingPackets>>,
    /// The first entry of the vector that is processed now.
    start: usize,
    /// The lowest rank of an entry of this vector.
    lowest: u32,
}

impl WaitingLists {
    /// Starts a vector, and returns where the one before starts.
    #[inline]
    pub fn enter_vector(&mut self) -> usize {
        self.lowest = u32::MAX;
        std::mem::replace(&mut self.start, self.entries.len())
    }

    /// Ends a vector. Nothing waits in it any more.
    #[inline]
    pub fn leave_vector(&mut self, before: usize) {
        debug_assert_eq!(self.start, self.entries.len(), "all packets have left");
        self.start = before;
        self.find_lowest();
    }

    fn find_lowest(&mut self) {
        self.lowest = self.of_vector().map(|entry| entry.rank).min().unwrap_or(u32::MAX);
    }

    /// The entries of the vector that is processed now.
    pub fn of_vector(&self) -> impl Iterator<Item = &WaitingPackets> {
        self.entries[self.start..].iter().map(|entry| &**entry)
    }

    /// The first packet of this vector that waits for an element's own code.
    pub fn first_slow(&self) -> Option<u16> {
        let slow = self.of_vector().filter(|entry| matches!(entry.entry_point, EntryPoint::Slow(_)));
        slow.filter_map(|entry| entry.list().first().copied()).min()
    }

    /// The first packet of this vector that waits at one of these nodes.
    pub fn first_at(&self, is_one: impl Fn(usize) -> bool) -> u16 {
        let there = self.of_vector().filter(|entry| is_one(entry.node));
        there.filter_map(|entry| entry.list().first().copied()).min().unwrap_or(u16::MAX)
    }

    /// Whether a node with this rank comes before all that wait.
    #[inline(always)]
    pub fn is_first(&self, rank: u32) -> bool {
        rank < self.lowest
    }

    /// Lets packets wait.
    pub fn add(&mut self, (rank, node): (u32, usize), entry_point: EntryPoint, depth: usize, list: &[u16]) {
        debug_assert!(is_in_order(list), "packets in the order of their arrival: {list:?}");
        self.lowest = self.lowest.min(rank);
        let mut of_vector = self.entries[self.start..].iter_mut();
        if let Some(entry) = of_vector.find(|entry| entry.node == node && entry.entry_point == entry_point) {
            entry.depth = entry.depth.max(depth);
            return entry.merge(list);
        }
        let mut entry = self.empty();
        (entry.rank, entry.node, entry.entry_point, entry.depth) = (rank, node, entry_point, depth);
        entry.set(list);
        self.entries.push(entry);
    }

    fn empty(&mut self) -> Box<WaitingPackets> {
        let new = || {
            let (node, entry_point, indices) = (0, EntryPoint::Input(0), [0; LIST_CAPACITY]);
            Box::new(WaitingPackets { rank: 0, node, entry_point, depth: 0, len: 0, indices })
        };
        self.spare.pop().unwrap_or_else(new)
    }

    /// Takes the packets that run next: those of the node that comes first. If some wait at several of its
    /// entry points, these are the first packets of the one whose packet arrived first, up to the next packet of
    /// another one: what the node remembers is as if packets came one by one.
    pub fn take_next(&mut self) -> Option<Box<WaitingPackets>> {
        let of_vector = &self.entries[self.start..];
        let first_of = |entry: &WaitingPackets| entry.list().first().copied().unwrap_or(u16::MAX);
        let (mut next, mut end, mut after) = (None, u16::MAX, u32::MAX);
        for (at, entry) in of_vector.iter().enumerate() {
            let first = first_of(entry);
            match next {
                _ if entry.rank > self.lowest => after = after.min(entry.rank),
                None => next = Some((at, first)),
                Some((_, before)) if first < before => (next, end) = (Some((at, first)), before),
                Some(_) => end = end.min(first),
            }
        }
        let at = self.start + next?.0;
        if self.entries[at].below(end) < self.entries[at].len {
            return Some(self.take_below(at, end));
        }
        // Others of the node may wait on.
        if end == u16::MAX {
            self.lowest = after;
        }
        Some(self.entries.swap_remove(at))
    }

    /// Takes the packets of an entry whose index is below `end`. Others stay in it.
    fn take_below(&mut self, at: usize, end: u16) -> Box<WaitingPackets> {
        let mut taken = self.empty();
        let entry = &mut self.entries[at];
        (taken.rank, taken.node, taken.entry_point, taken.depth) =
            (entry.rank, entry.node, entry.entry_point, entry.depth);
        let count = entry.below(end);
        taken.set(&entry.list()[..count]);
        entry.indices.copy_within(count..entry.len, 0);
        entry.len -= count;
        taken
    }

    /// Keeps an entry that was taken for its allocation.
    #[inline]
    pub fn put_back(&mut self, entry: Box<WaitingPackets>) {
        self.spare.push(entry);
    }

    /// Starts a vector, as [`WaitingLists::enter_vector`] does, with those packets of the present one whose
    /// index is below `end`: they go on before all others.
    pub fn enter_below(&mut self, end: u16) -> usize {
        let before = self.start;
        let entries = self.entries.len();
        let mut at = before;
        for _ in before..entries {
            match self.entries[at].below(end) {
                0 => at += 1,
                count if count == self.entries[at].len => {
                    // To the end, where the new vector's entries are. The order of entries is of no meaning.
                    let entry = self.entries.remove(at);
                    self.entries.push(entry);
                }
                _ => {
                    let lower = self.take_below(at, end);
                    self.entries.push(lower);
                    at += 1;
                }
            }
        }
        self.start = at;
        self.find_lowest();
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lists: &mut WaitingLists) -> Option<(usize, EntryPoint, Vec<u16>)> {
        let entry = lists.take_next()?;
        let taken = (entry.node, entry.entry_point, entry.list().to_vec());
        lists.put_back(entry);
        Some(taken)
    }

    #[test]
    fn packets_whose_ways_meet_are_in_the_order_of_their_arrival() {
        let mut lists = WaitingLists::default();
        let before = lists.enter_vector();
        lists.add((7, 70), EntryPoint::Input(0), 1, &[0, 3, 9]);
        lists.add((4, 40), EntryPoint::Input(0), 1, &[2]);
        lists.add((7, 70), EntryPoint::Input(0), 3, &[1, 5, 10]);
        assert!(lists.is_first(3) && !lists.is_first(4) && !lists.is_first(5));
        assert_eq!(taken(&mut lists), Some((40, EntryPoint::Input(0), vec![2])));
        assert!(lists.is_first(6) && !lists.is_first(7));
        assert_eq!(taken(&mut lists), Some((70, EntryPoint::Input(0), vec![0, 1, 3, 5, 9, 10])));
        assert_eq!(taken(&mut lists), None);
        lists.leave_vector(before);
    }

    #[test]
    fn several_entry_points_of_a_node_take_turns() {
        let mut lists = WaitingLists::default();
        lists.enter_vector();
        lists.add((1, 5), EntryPoint::Input(0), 1, &[0, 1, 4]);
        lists.add((1, 5), EntryPoint::Input(1), 1, &[2, 3, 6, 7]);
        lists.add((1, 5), EntryPoint::Slow(0), 1, &[5]);
        let all = std::iter::from_fn(|| taken(&mut lists)).map(|(_, entry_point, list)| (entry_point, list));
        let turns = [
            (EntryPoint::Input(0), vec![0, 1]),
            (EntryPoint::Input(1), vec![2, 3]),
            (EntryPoint::Input(0), vec![4]),
            (EntryPoint::Slow(0), vec![5]),
            (EntryPoint::Input(1), vec![6, 7]),
        ];
        assert_eq!(all.collect::<Vec<_>>(), turns);
    }

    #[test]
    fn packets_below_an_index_go_on_before_others() {
        let mut lists = WaitingLists::default();
        let outer = lists.enter_vector();
        lists.add((3, 30), EntryPoint::Input(0), 1, &[0, 4, 8]);
        lists.add((2, 20), EntryPoint::Input(0), 1, &[5, 6]);
        lists.add((1, 10), EntryPoint::Input(0), 1, &[1, 2]);
        let before = lists.enter_below(5);
        assert_eq!(taken(&mut lists), Some((10, EntryPoint::Input(0), vec![1, 2])));
        assert_eq!(taken(&mut lists), Some((30, EntryPoint::Input(0), vec![0, 4])));
        assert_eq!(taken(&mut lists), None);
        lists.leave_vector(before);
        assert!(lists.is_first(1) && !lists.is_first(2));
        assert_eq!(taken(&mut lists), Some((20, EntryPoint::Input(0), vec![5, 6])));
        assert_eq!(taken(&mut lists), Some((30, EntryPoint::Input(0), vec![8])));
        lists.leave_vector(outer);
    }
}
