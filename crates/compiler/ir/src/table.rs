//! What a lookup table offers to a program.
//!
//! A *record* is a fixed number of bytes; its handle is a number, never 0. Machine code takes the handle for
//! the record's address and reads and writes there, so that [`Table`] is an unsafe trait: what an
//! implementation promises stands there, and each one says why it holds.
#![expect(unsafe_code, reason = "declares the trait whose addresses machine code follows")]

/// What [`Table::create`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Created {
    /// The record was there or was made.
    Record(u64),
    /// Refused: the packet takes the program's `fail` path.
    Refused,
}

/// What a table promises of what a lookup found, to who wants to remember it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheValidity {
    /// For how long, nanoseconds from when a program last worked on the record, the key leads to this record
    /// and its [`Lasting::Fixed`] numbers stay, unless `changes` grows or it is
    /// among those that went.
    pub ns: u64,
    /// Whether the same is promised of keys for which there is no record.
    pub misses: bool,
    /// Grows when what was found changes before its time, nobody knows what.
    pub changes: u64,
    /// Records that went or changed before their time, to be asked for by [`Table::take_gone`]; `None` from tables
    /// that tell of none, and count changes only.
    pub gone: Option<usize>,
}

/// What a number in a record does while the record lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lasting {
    /// It stays.
    Fixed,
    /// It is when a packet last did something: it may lag behind by the time that [`Table::set_cache_validity`] was
    /// told.
    Time,
    /// It changes.
    Moving,
}

/// Where a small table of IPv4 prefixes lies, for machine code that walks it packet by packet.
///
/// All are addresses. `root`, `entries` and `above` are those of `table::lpm::Layout4`; a value found
/// there is the number of a record, and record `n` lies at `records` plus `n` times the record's bytes,
/// rounded up to whole words of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct PrefixWalk {
    /// The root's entries.
    pub root: u64,
    /// The nodes' entries.
    pub entries: u64,
    /// What the nodes inherit.
    pub above: u64,
    /// Record 0.
    pub records: u64,
}

/// What a table takes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TableSize {
    /// What is in it.
    pub entries: u64,
    /// Bytes of memory for that.
    pub bytes: u64,
    /// The most entries that it holds, and the bytes that they take.
    pub most: Option<(u64, u64)>,
    /// How it is made, for people.
    pub how: String,
}

/// A lookup table as programs use it.
///
/// # Safety
/// Machine code follows the addresses that a table gives it, without a check. A table whose
/// [`Table::record_bytes`] is `None` gives out no addresses and promises nothing: only the evaluator, which
/// asks the table for each access, runs programs on it. Where it is `Some(bytes)`, the implementation promises:
///
/// - **What is an address.** Every handle that [`Table::lookup`], [`Table::lookup_batch`] and [`Table::create`]
///   give is the address of a record of at least `bytes` initialised bytes, or 0 for none. `lookup_batch`
///   writes `records[i]` for each `i` of its list, also where nothing is found: what stood there before may be
///   a record of another table.
/// - **Alignment.** None is needed: machine code makes accesses that may be unaligned.
/// - **For how long.** The bytes stay mapped, and stay the table's, until the next call of [`Table::tick`] or of
///   a method of the implementation's own, neither of which a worker makes while a burst is under way. A
///   `create` may put another key in the place of a record of the same burst, but may not move or free memory.
/// - **Who writes.** Until then the thread that runs the program may read and write the bytes through the
///   address, while shared references to the table exist: they are reached by a raw pointer or lie in cells
///   (`Cell`, atomics), never in memory that an `&` to plain data covers. Another thread may read or write
///   them only as atomics.
/// - **Walks.** A [`PrefixWalk`] leads to a table as `table::lpm::Layout4` says, all of whose values are
///   `table::lpm::MISS` or numbers of records, for as long as above; nobody writes that part.
///
/// `bytes` and [`Table::key_words`] are the same in every call on a table.
///
/// Safe code makes no table:
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

    /// Bytes of the record that a handle is the address of; `None` where handles are no addresses. Machine code
    /// runs only on tables whose records have the bytes that its program declares.
    fn record_bytes(&self) -> Option<usize> {
        None
    }

    /// The record of a key, or `None`.
    fn lookup(&self, key: &[u64]) -> Option<u64>;

    /// Looks up `list.len()` keys at once, all before the records that the burst makes. The key of packet `list[i]`
    /// stands in `keys[list[i] * stride ..]`; its record, or 0, goes to `records[list[i]]`. (`stride` may be longer
    /// than the key: arguments follow it.)
    fn lookup_batch(&self, keys: &[u64], stride: usize, list: &[u16], records: &mut [u64]) {
        for &index in list {
            let at = usize::from(index) * stride;
            let found = keys.get(at..at + self.key_words()).and_then(|key| self.lookup(key));
            if let Some(record) = records.get_mut(usize::from(index)) {
                *record = found.unwrap_or(0);
            }
        }
    }

    /// Where machine code finds what it needs to look up keys by itself. Only for a table declared as
    /// [`crate::program::Matching::Prefixes4`], and only while it is small enough to stay in the nearer
    /// caches: looking up a whole burst at once is better once lookups wait for memory.
    fn walk(&self) -> Option<PrefixWalk> {
        None
    }

    /// Finds the key, or makes a record for it. `args` are the program's; `now_ns` is the burst's
    /// clock.
    fn create(&mut self, key: &[u64], args: &[u64], now_ns: u64) -> Created;

    /// Reads `bytes` (1, 2, 4, 8) of a record as a little-endian number.
    fn record_load(&self, record: u64, offset: u16, bytes: u8) -> u64;

    /// Writes such a number.
    fn record_store(&mut self, record: u64, offset: u16, bytes: u8, value: u64);

    /// What it promises of what lookups found; `None`: nothing.
    fn cache_validity(&self) -> Option<CacheValidity> {
        None
    }

    /// What a number in its records does, by its offset.
    fn lasting(&self, offset: u16) -> Lasting {
        let _ = offset;
        Lasting::Moving
    }

    /// Appends the records that went or changed before their time since the last call.
    fn take_gone(&mut self, gone: &mut Vec<u64>) {
        let _ = gone;
    }

    /// Says that what is found is remembered for so many nanoseconds: [`Lasting::Time`]s may lag as much.
    fn set_cache_validity(&mut self, ns: u64) {
        let _ = ns;
    }

    /// What it takes, where it can tell.
    fn size(&self) -> Option<TableSize> {
        None
    }

    /// Housekeeping between bursts: ageing, growth. Does a bounded amount of work.
    fn tick(&mut self, now_ns: u64) {
        let _ = now_ns;
    }
}

/// The tables that a program uses, in the order of its declarations.
pub trait Tables {
    /// The table with that number.
    fn table(&mut self, index: usize) -> Option<&mut dyn Table>;
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
