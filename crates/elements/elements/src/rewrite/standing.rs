//! How far flows have come, and the order in which their mappings make room in a full table.

use table::flow::RecordId;

/// The most records that a search looks at.
pub(super) const WINDOW: u32 = 1024;

/// How far a flow has come. Where a full table has to choose, the mappings of the first kind go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// A TCP connection that FIN from both sides or RST ended; a mapping that has expired.
    Ended,
    /// No reply came, or, of TCP, nothing but replies to its SYN.
    Unanswered,
    /// A reply came. Of TCP, the handshake was not seen: the connection is older than the mapping.
    Answered,
    /// A TCP connection whose handshake both sides have completed, and which was seen.
    Established,
}

/// The order in which mappings go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rank {
    /// How far its flow has come.
    pub standing: Standing,
    /// The second in which it expires.
    pub due_s: u64,
    /// The number of the mapping, in the order in which they were made.
    pub creation: u64,
}

/// The state of the search.
#[derive(Debug)]
pub struct Evictions {
    /// For each record the number of its mapping, in the order in which they were made.
    pub(super) creations: Vec<u64>,
    last_creation: u64,
    /// The next mappings to go, the first one last.
    pub(super) next: Vec<(Rank, RecordId)>,
    /// The record at which the next search begins.
    pub(super) from: u32,
    /// New flows for which the last search counts, which found nothing.
    pub(super) pause: u32,
    /// How many were evicted.
    pub(super) count: u64,
}

impl Evictions {
    /// For a table of so many records.
    pub(super) fn new(records: usize) -> Evictions {
        // Memory that is zero is used as it is written to.
        let creations = vec![0; records + 1];
        let next = Vec::with_capacity(WINDOW as usize);
        Evictions { creations, last_creation: 0, next, from: 0, pause: 0, count: 0 }
    }

    /// Notes that a record is a new mapping's.
    pub(super) fn count_creation(&mut self, record: RecordId) {
        self.last_creation += 1;
        if let Some(creation) = self.creations.get_mut(record.number() as usize) {
            *creation = self.last_creation;
        }
    }
}
