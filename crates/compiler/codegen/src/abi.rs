//! The interface between machine code and Rust.

use ir::table::PrefixWalk;
use shm::descriptor::Packet;

/// The arguments of a region's function: the addresses of the batch, the lists and the state.
///
/// Machine code relies on it: [`crate::stage`], which fills it, guarantees that the packets of the index
/// list exist, that each list has room for them, and that lanes have the widths of the plan.
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
    /// The addresses of the tables that machine code walks itself, by their numbers in the program; those
    /// of other tables are zeros. Empty unless the plan is [`crate::lookup_region::RegionPlan::walked`].
    pub walks: *const PrefixWalk,
    /// The end of the index list that a region processes. Only the region uses it; it is in memory
    /// because registers are scarce.
    pub list_end: *const u16,
    /// The burst's clock.
    pub now_ns: u64,
}

/// A region's function: context, index list, its length.
pub type RegionFn = unsafe extern "C" fn(*mut Context, *const u16, u64);
