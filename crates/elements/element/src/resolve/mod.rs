//! The platform's ARP and neighbour discovery (RFC 826, RFC 4861), for NFs that need next hops.
//!
//! - [`station`]: a port or virtual device with addresses of its own, as packet threads and control threads share it
//! - [`table`]: its neighbours: who is wanted, in which state, when what is to be done about it
//! - [`wanted`]: which addresses packet threads have to tell about
//! - `message`: frames as facts, questions as frames
//! - `resolver`: the element `Resolver`, which stands where packets of the station come in
//!
//! A packet thread never waits here. It answers for the station's own addresses, which do not change, and leaves word
//! of what it heard in a queue; what is to be asked comes by another. The table has a lock, which control threads
//! take for as long as a lookup takes; housekeeping of a packet thread takes it when nobody has it, and else the next
//! time.
//!
//! Invariants: an entry is there because somebody here asked for it, never because of a packet. So nobody on the
//! network makes the table larger.

mod message;
mod resolver;
pub mod station;
pub mod table;
pub mod wanted;

#[cfg(test)]
mod tests;

pub use station::{Address, Station};
pub use table::{Refusal, Report};

use crate::class::Class;

/// The classes of this folder.
pub const CLASSES: &[&Class] = &[&resolver::CLASS];
