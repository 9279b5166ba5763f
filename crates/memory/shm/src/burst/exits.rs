//! Exit lists: the exit of each packet of a batch.
//!
//! Lists contain the packets' indices in their vector. A run of an element fills one list for each output
//! port, drop reason and slow path (and, during the run, for each lookup to do). Each list has room for a
//! whole vector, so that machine code never checks for space: every packet is put on exactly one list, and a
//! vector holds at most [`LIST_CAPACITY`] packets.

/// The most packets that a vector holds, and so the capacity of each list.
pub const LIST_CAPACITY: usize = 256;

/// Whether packets are in the order of their arrival: that of their indices. None is listed twice.
#[inline]
pub fn is_in_order(list: &[u16]) -> bool {
    // No early end: so it compiles to a few vector instructions.
    list.iter().zip(&list[1.min(list.len())..]).fold(true, |all, (one, next)| all & (one < next))
}

/// Puts packets in the order of their arrival. None is listed twice.
pub fn put_in_order(list: &mut [u16]) {
    let mut listed = [0u64; LIST_CAPACITY / 64];
    for &index in list.iter() {
        listed[usize::from(index) / 64 % listed.len()] |= 1 << (index % 64);
    }
    let mut places = list.iter_mut();
    for (word, bits) in listed.iter_mut().enumerate() {
        while *bits != 0 {
            if let Some(place) = places.next() {
                *place = (word * 64) as u16 + bits.trailing_zeros() as u16;
            }
            *bits &= *bits - 1;
        }
    }
}

/// Most elements have no more exits than this.
const FEW_LISTS: usize = 16;

/// The exit lists of one run of one element. Reused for each run.
#[derive(Debug)]
pub struct Exits {
    lists: Vec<u16>,
    counts: Vec<u32>,
    outputs: usize,
    reasons: usize,
}

impl Default for Exits {
    fn default() -> Exits {
        Exits::with_capacity(0)
    }
}

impl Exits {
    /// Lists for elements of up to `lists` exits of any kind.
    pub fn with_capacity(lists: usize) -> Exits {
        let lists = lists.max(FEW_LISTS);
        Exits { lists: vec![0; lists * LIST_CAPACITY], counts: vec![0; lists], outputs: 0, reasons: 0 }
    }

    /// Empties the lists and sets the number of each kind: ports first, then reasons, then others (slow
    /// paths, lookups).
    #[inline]
    pub fn reset(&mut self, outputs: usize, reasons: usize, others: usize) {
        let lists = outputs + reasons + others;
        match self.counts.first_chunk_mut::<FEW_LISTS>() {
            // This compiles to a few stores of a fixed width.
            Some(few) if lists <= FEW_LISTS => *few = [0; FEW_LISTS],
            _ => {
                self.lists.resize(self.lists.len().max(lists * LIST_CAPACITY), 0);
                self.counts.resize(self.counts.len().max(lists), 0);
                self.counts.fill(0);
            }
        }
        (self.outputs, self.reasons) = (outputs, reasons);
    }

    /// The list with that number; empty if there is none.
    #[inline]
    pub fn list(&self, list: usize) -> &[u16] {
        let count = self.counts.get(list).map_or(0, |count| *count as usize);
        let start = list * LIST_CAPACITY;
        self.lists.get(start..start + count.min(LIST_CAPACITY)).unwrap_or(&[])
    }

    /// Number of output ports.
    #[inline]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Number of drop reasons.
    #[inline]
    pub fn reasons(&self) -> usize {
        self.reasons
    }

    /// Packets that leave by a port.
    #[inline]
    pub fn output(&self, port: usize) -> &[u16] {
        if port < self.outputs { self.list(port) } else { &[] }
    }

    /// Packets that are dropped for a reason.
    #[inline]
    pub fn dropped(&self, reason: usize) -> &[u16] {
        if reason < self.reasons { self.list(self.outputs + reason) } else { &[] }
    }

    /// Whether any packet is dropped.
    #[inline]
    pub fn has_drops(&self) -> bool {
        self.has_exceptions(0)
    }

    /// Whether any packet is dropped or on one of the first `slow` lists of the third kind.
    #[inline]
    pub fn has_exceptions(&self, slow: usize) -> bool {
        let counts = self.counts.get(self.outputs..self.outputs + self.reasons + slow).unwrap_or(&[]);
        counts.iter().fold(0, |all, count| all | count) != 0
    }

    /// The packets of a list of the third kind: slow paths and lookups.
    #[inline]
    pub fn other(&self, other: usize) -> &[u16] {
        self.list(self.outputs + self.reasons + other)
    }

    /// Appends a packet to a list. Each packet must be put on one list only; a packet beyond the list's
    /// capacity is ignored, which can happen only if that rule is broken.
    #[inline]
    pub fn push(&mut self, list: usize, packet: u16) {
        if let Some(count) = self.counts.get_mut(list)
            && let Some(place) = self.lists.get_mut(list * LIST_CAPACITY + *count as usize)
            && (*count as usize) < LIST_CAPACITY
        {
            *place = packet;
            *count += 1;
        }
    }

    /// Sends a packet out of a port.
    #[inline]
    pub fn emit(&mut self, port: usize, packet: u16) {
        debug_assert!(port < self.outputs, "output {port} of {}", self.outputs);
        self.push(port, packet);
    }

    /// Drops a packet for a reason.
    #[inline]
    pub fn drop(&mut self, reason: usize, packet: u16) {
        debug_assert!(reason < self.reasons, "reason {reason} of {}", self.reasons);
        self.push(self.outputs + reason, packet);
    }

    /// Appends all packets of `from` to a list.
    #[inline]
    pub fn extend(&mut self, list: usize, from: &[u16]) {
        let Some(count) = self.counts.get_mut(list) else { return };
        let start = list * LIST_CAPACITY + *count as usize;
        let room = LIST_CAPACITY - *count as usize;
        let from = &from[..from.len().min(room)];
        self.lists[start..start + from.len()].copy_from_slice(from);
        *count += from.len() as u32;
    }

    /// Merges packets into a list that must stay in the order of arrival.
    #[inline]
    pub fn merge(&mut self, list: usize, from: &[u16]) {
        self.extend(list, from);
        self.order(list);
    }

    /// Puts a list in the order of arrival.
    #[inline]
    pub fn order(&mut self, list: usize) {
        if !is_in_order(self.list(list)) {
            self.order_list(list);
        }
    }

    #[cold]
    fn order_list(&mut self, list: usize) {
        let (start, count) = (list * LIST_CAPACITY, self.list(list).len());
        put_in_order(&mut self.lists[start..start + count]);
    }

    /// Puts the lists of packets that go on in the order of arrival: of ports, and the first `others` of the
    /// third kind.
    #[inline]
    pub fn order_all(&mut self, others: usize) {
        let first = self.outputs + self.reasons;
        for list in (0..self.outputs).chain(first..first + others) {
            if self.counts[list] > 1 {
                self.order(list);
            }
        }
    }

    /// The same with all lists of `other`: ports, reasons and the first `others` of the third kind.
    #[inline]
    pub fn merge_all(&mut self, other: &Exits, others: usize) {
        for list in 0..self.outputs + self.reasons + others {
            if !other.list(list).is_empty() {
                self.merge(list, other.list(list));
            }
        }
    }

    /// Keeps the first packets of a list on it.
    #[inline]
    pub fn truncate(&mut self, list: usize, packets: usize) {
        if let Some(count) = self.counts.get_mut(list) {
            *count = (*count).min(packets as u32);
        }
    }

    /// Empties a list of the third kind.
    #[inline]
    pub fn clear_other(&mut self, other: usize) {
        let at = self.outputs + self.reasons + other;
        if let Some(count) = self.counts.get_mut(at) {
            *count = 0;
        }
    }

    /// The lists and counts as machine code writes them: list `k` starts at `k * LIST_CAPACITY`.
    #[inline]
    pub fn raw(&mut self) -> (*mut u16, *mut u32) {
        (self.lists.as_mut_ptr(), self.counts.as_mut_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_put_in_the_order_of_arrival() {
        let mut exits = Exits::default();
        exits.reset(2, 1, 1);
        exits.extend(0, &[3, 64, 255]);
        exits.merge(0, &[0, 65, 130]);
        exits.extend(2, &[9]);
        exits.extend(3, &[200, 7]);
        exits.order_all(0);
        assert_eq!(exits.output(0), [0, 3, 64, 65, 130, 255]);
        assert_eq!((exits.output(1), exits.dropped(0), exits.other(0)), (&[][..], &[9][..], &[200, 7][..]));
        exits.order_all(1);
        assert_eq!(exits.other(0), [7, 200]);
        assert!(is_in_order(&[]) && is_in_order(&[4]) && is_in_order(&[4, 5]));
        assert!(!is_in_order(&[5, 4]) && !is_in_order(&[4, 4]));
    }
}
