//! The interface of a lookup table to a program.
//!
//! A *record* is a fixed number of bytes; its handle is a number, never 0. Machine code takes the handle for
//! the record's address and reads and writes there, so that [`Table`] is an unsafe trait: its documentation
//! lists the guarantees, and each implementation states why they hold.
#![expect(unsafe_code, reason = "declares the trait whose addresses machine code follows")]

/// What packets earlier in a burst found in a table, by the same lookup of a program.
#[derive(Clone, Copy, Default, Debug)]
pub struct FoundEarlier<'a> {
    /// Their places in the burst.
    pub list: &'a [u16],
    /// By place in the burst: the record, or 0.
    pub records: &'a [u64],
    /// Whether the packet may wait for them.
    pub may_wait: bool,
}

impl FoundEarlier<'_> {
    /// The records, in the order of the packets.
    pub fn found(&self) -> impl Iterator<Item = u64> {
        let found = self.list.iter().filter_map(|index| self.records.get(usize::from(*index)));
        found.copied().filter(|record| *record != 0)
    }
}

/// The result of [`Table::create`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// The record existed or was created.
    Record(u64),
    /// Refused: the packet takes the program's `fail` path.
    Refused,
    /// Neither yet: to make room, the table has to know what the packets earlier in the burst do to their records,
    /// and records that later packets have found may go. The packet's turn comes when the earlier ones have left the
    /// program, and the later ones look up again. Only where it [may wait](FoundEarlier::may_wait).
    Wait,
}

/// How many records a table has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The records that can be created before one of the others has to go.
    pub left: usize,
    /// The same of an empty table.
    pub whole: usize,
    /// Whether a new record may end that of another key although there is room ([`Table::may_end_others`] of any).
    pub ends_others: bool,
}

/// A table's guarantees about the result of a lookup, for a cache that stores it: the key leads to this
/// record, and its [`Lasting::Fixed`] numbers stay, until `changes` grows or [`Table::take_gone`] returns the
/// record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheValidity {
    /// Whether the same holds for keys without a record, until `changes` grows.
    pub misses: bool,
    /// Grows when results change and the table does not record which.
    pub changes: u64,
    /// Number of records that were removed or changed and that [`Table::take_gone`] will return; `None` for
    /// tables that do not record them and only count changes.
    pub gone: Option<usize>,
}

/// How a number in a record changes while the record exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lasting {
    /// Its value never changes.
    Fixed,
    /// Packets only change it in this way, so that parts of it may be counted elsewhere and merged later, in
    /// any order.
    Merged(Merge),
    /// Its value changes.
    Moving,
}

/// The longest time from a packet until a cache has merged what it counted for it, in nanoseconds.
pub const MERGED_WITHIN_NS: u64 = 2_000_000_000;

/// How the parts of a number that is counted in several places become one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Merge {
    /// The largest: the time of the last packet of some kind.
    Max,
    /// All bits that are set in one.
    Or,
    /// The sum, but at most this.
    SumTo(u8),
}

impl Merge {
    /// The number of two parts.
    pub fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Merge::Max => a.max(b),
            Merge::Or => a | b,
            Merge::SumTo(most) => a.saturating_add(b).min(u64::from(most)),
        }
    }
}

/// What of a cache uses a record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Holder {
    /// The number of an entry, below 2^24; 0 for none. It may have been given to another entry since.
    pub entry: u32,
    /// Whether other entries use the record, too; the cache knows which.
    pub is_shared: bool,
}

/// A record that a cache uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldRecord {
    /// Its handle.
    pub record: u64,
    /// What uses it.
    pub holder: Holder,
}

/// The memory of a small table of IPv4 prefixes, for machine code that walks it packet by packet.
///
/// All are addresses. `root`, `entries` and `above` are those of `table::lpm::Layout4`. A value in them is
/// the number of a record, and record `n` is at `records` plus `n` times the record's bytes, rounded up to
/// whole words of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct PrefixWalk {
    /// The root's entries.
    pub root: u64,
    /// The nodes' entries.
    pub entries: u64,
    /// The values that nodes inherit.
    pub above: u64,
    /// Record 0.
    pub records: u64,
}

/// A prefix of a table of IPv4 prefixes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixRecord {
    /// The prefix; bits behind its length are 0.
    pub prefix: u32,
    /// Its length in bits.
    pub len: u8,
    /// The record's handle.
    pub record: u64,
}

/// The size of a table.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TableSize {
    /// Number of entries.
    pub entries: u64,
    /// Bytes of memory that they take.
    pub bytes: u64,
    /// The most entries that it holds, and the bytes that they take.
    pub most: Option<(u64, u64)>,
    /// Its structure, for display.
    pub how: String,
}

/// A lookup table as programs use it.
///
/// # Safety
/// Machine code dereferences the addresses that a table returns, without a check. A table whose
/// [`Table::record_bytes`] is `None` returns no addresses and guarantees nothing: only the evaluator runs
/// programs on it, and calls the table for each access. Where it is `Some(bytes)`, the implementation
/// guarantees:
///
/// - **Addresses.** Every handle that [`Table::lookup`], [`Table::lookup_batch`] and [`Table::create`] return
///   is the address of a record of at least `bytes` initialised bytes, or 0 for none. `lookup_batch` writes
///   `records[i]` for each `i` of its list, even if it finds no record: the previous content may be a record
///   of another table.
/// - **Alignment.** None is needed: machine code makes accesses that may be unaligned.
/// - **Lifetime.** The bytes stay mapped, and stay the table's, until the next call of [`Table::tick`] or of
///   a method of the implementation's own. A worker calls neither while it processes a burst. A `create` may
///   replace a record of the same burst by one for another key, but may not move or free memory.
/// - **Access.** Until then the thread that runs the program may read and write the bytes through the
///   address, while shared references to the table exist: the bytes are reached by a raw pointer or are in
///   cells (`Cell`, atomics), never in memory that an `&` to plain data covers. Another thread may read or
///   write them only as atomics.
/// - **Walks.** A [`PrefixWalk`] describes a table in the layout of `table::lpm::Layout4`. All its values are
///   `table::lpm::MISS` or numbers of records, for the same lifetime; no thread writes that part.
///
/// `bytes` and [`Table::key_words`] are the same in every call on a table.
///
/// Safe code cannot implement it:
///
/// ```compile_fail,E0200
/// struct Forged;
///
/// impl ir::Table for Forged {
///     fn key_words(&self) -> usize { 1 }
///     fn record_bytes(&self) -> Option<usize> { Some(64) }
///     fn lookup(&self, _: &[u64]) -> Option<u64> { Some(8) }
///     fn create(&mut self, _: &[u64], _: &[u64], _: u64) -> ir::Created { ir::Created::Record(8) }
///     fn record_load(&self, _: u64, _: u16, _: u8) -> u64 { 0 }
///     fn record_store(&mut self, _: u64, _: u16, _: u8, _: u64) {}
/// }
/// ```
pub unsafe trait Table: Send {
    /// Words of a key.
    fn key_words(&self) -> usize;

    /// Bytes of the record whose address a handle is; `None` where handles are not addresses. Machine code
    /// runs only on tables whose records have the bytes that its program declares.
    fn record_bytes(&self) -> Option<usize> {
        None
    }

    /// The record of a key, or `None`.
    fn lookup(&self, key: &[u64]) -> Option<u64>;

    /// Looks up `list.len()` keys at once, before the burst creates any record. The key of packet `list[i]`
    /// is in `keys[list[i] * stride ..]`; its record, or 0, is written to `records[list[i]]`. (`stride` may
    /// be longer than the key: arguments follow it.)
    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        for &index in list {
            let at = usize::from(index) * stride;
            let found = keys.get(at..at + self.key_words()).and_then(|key| self.lookup(key));
            if let Some(record) = records.get_mut(usize::from(index)) {
                *record = found.unwrap_or(0);
            }
        }
    }

    /// The addresses that machine code needs to look up keys itself. Only for a table declared as
    /// [`crate::program::Matching::Prefixes4`], and only while it is small enough to stay in the nearer
    /// caches. Once lookups wait for memory, looking up a whole burst at once is faster.
    fn walk(&self) -> Option<PrefixWalk> {
        None
    }

    /// All prefixes with their records, for a table declared as [`crate::program::Matching::Prefixes4`], if
    /// they are at most so many; `None` for other tables.
    fn prefixes(&self, most: usize) -> Option<Vec<PrefixRecord>> {
        let _ = most;
        None
    }

    /// Finds the record of the key, or creates it. `args` are the program's; `now_ns` is the burst's clock. No other
    /// packet of the burst is in the program: its record may be that of another key before.
    fn create(&mut self, key: &[u64], args: &[u64], now_ns: u64) -> Created;

    /// [`Table::create`] where packets earlier in the burst found records by the same lookup, and have not
    /// stored anything in them yet: the records count as used at `now_ns`, for a table that evicts what was
    /// not used for long. Later packets have looked up, too, so that no record may become another key's.
    fn create_behind(
        &mut self,
        key: &[u64],
        args: &[u64],
        now_ns: u64,
        earlier: FoundEarlier<'_>,
    ) -> Created {
        let _ = earlier;
        self.create(key, args, now_ns)
    }

    /// Reads `bytes` (1, 2, 4, 8) of a record as a little-endian number.
    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64;

    /// Writes such a number.
    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64);

    /// Its guarantees about the results of lookups; `None` if there are none.
    fn cache_validity(&self) -> Option<CacheValidity> {
        None
    }

    /// How a number in a record changes, by its offset.
    fn lasting(&self, record: u64, offset: u16) -> Lasting {
        let _ = (record, offset);
        Lasting::Moving
    }

    /// Announces that a cache uses this record, and counts a part of its [`Lasting::Merged`] numbers itself.
    /// The cache merges it within [`MERGED_WITHIN_NS`]. When the record goes, [`Table::take_gone`] returns
    /// it. Before the table decides by such a number that the record goes, it asks for the cache's part
    /// ([`Table::take_asked`]), which comes in the same tick or never.
    fn hold(&mut self, record: u64, by: Holder) {
        let _ = (record, by);
    }

    /// Who holds a record.
    fn holder(&self, record: u64) -> Holder {
        let _ = record;
        Holder::default()
    }

    /// Appends the held records that were removed or changed since the last call.
    fn take_gone(&mut self, gone: &mut Vec<HeldRecord>) {
        let _ = gone;
    }

    /// Appends the held records whose numbers the table asks for. The cache merges its parts into them by
    /// [`Table::record_store`], and then answers each by [`Table::settle`].
    fn take_asked(&mut self, asked: &mut Vec<HeldRecord>) {
        let _ = asked;
    }

    /// Says that a cache merged its part of the numbers of a record that was asked for, and whether it still
    /// uses the record. The table decides again what becomes of it.
    fn settle(&mut self, record: u64, is_held: bool) {
        let _ = (record, is_held);
    }

    /// The addresses that keys led to until the last creation, and that lookups must not return any more: packets later
    /// in the burst, which have found them, have none.
    fn take_replaced(&mut self) -> Option<[u64; 2]> {
        None
    }

    /// How many records can be created; `None` if the table ends none to make room.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Whether a new record whose creation has this first argument, or any, may end that of another key now, although
    /// there is room; `None` where none ever does.
    fn may_end_others(&self, by: Option<u64>) -> Option<bool> {
        let _ = by;
        None
    }

    /// Says whether caches that hold records have merged all parts of their numbers, and count nothing until the
    /// opposite is said.
    fn note_merged(&mut self, is_merged: bool) {
        let _ = is_merged;
    }

    /// Its size, if the table can report it.
    fn size(&self) -> Option<TableSize> {
        None
    }

    /// Maintenance between bursts: ageing, growth. Does a bounded amount of work.
    fn tick(&mut self, now_ns: u64) {
        let _ = now_ns;
    }
}

/// The tables that a program uses, in the order of its declarations.
pub trait Tables {
    /// The table with that number.
    fn table(&mut self, index: usize) -> Option<&mut dyn Table>;

    /// The union of the tables that a program asks in a row by one key, by the row's number; `None` where there
    /// is none now, such as while one of the tables has changed.
    ///
    /// Its records have those of the tables behind one another, in the row's order, each rounded up to whole
    /// words of 8 bytes. It has one where all tables have one, with the numbers that the row requires. In its
    /// [`PrefixWalk`], value 0 is no record: it stands for prefixes where it has none.
    fn union(&mut self, row: usize) -> Option<&dyn Table> {
        let _ = row;
        None
    }
}

/// For programs without tables.
impl Tables for () {
    fn table(&mut self, _index: usize) -> Option<&mut dyn Table> {
        None
    }
}

impl Tables for [Box<dyn Table>] {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        match self.get_mut(index) {
            Some(table) => Some(table.as_mut()),
            None => None,
        }
    }
}

impl Tables for Vec<Box<dyn Table>> {
    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        self.as_mut_slice().table(index)
    }
}
