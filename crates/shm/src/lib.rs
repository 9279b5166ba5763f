//! Packet memory: regions, slots, pools and the descriptor that speaks of a packet.

pub mod descriptor;

pub use descriptor::Packet;
