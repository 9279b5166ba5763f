//! What machine code and Rust agree on.

use ir::table::PrefixWalk;
use shm::descriptor::Packet;

/// What a region's function gets: where the batch, the lists and the state lie.
///
/// Machine code trusts it: who fills it ([`crate::stage`]) upholds that the packets named by the
/// index list exist, that each list has room for them, and that lanes are as wide as the plan says.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    /// The vector of descriptors.
    pub packets: *mut Packet,
    /// The program's state cells.
    pub cells: *mut u64,
    /// Exit lists: list `k` starts at entry `k * LIST_CAPACITY`.
    pub lists: *mut u16,
    /// Entries in each list.
    pub counts: *mut u32,
    /// Key lanes: the words of packet `i` start at `i * key_stride`.
    pub keys: *mut u64,
    /// Found records, by packet.
    pub records: *mut u64,
    /// Carried values: those of packet `i` start at `i * carry_stride`.
    pub carry: *mut u64,
    /// Where the tables lie that machine code walks by itself, by their numbers in the program; those of
    /// other tables are zeros. Empty unless the plan is [`crate::lookup_region::RegionPlan::walked`].
    pub walks: *const PrefixWalk,
    /// Where the index list ends that a region works on: the region's own note, in memory because
    /// registers are scarce.
    pub list_end: *const u16,
    /// The burst's clock.
    pub now_ns: u64,
}

/// A region's function: context, index list, its length.
pub type RegionFn = unsafe extern "C" fn(*mut Context, *const u16, u64);
