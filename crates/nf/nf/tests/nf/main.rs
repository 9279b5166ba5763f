//! The SDK against a host that the tests simulate: the handshake, and bursts over real rings and real packet
//! memory.

mod bursts;
mod handlers;
mod handshake;
mod host;
mod neighbours;
mod random;
