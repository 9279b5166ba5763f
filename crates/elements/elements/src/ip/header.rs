//! A packet as seen from its IP header, for code that is not a program.

use shm::Packet;
use shm::descriptor::NO_HEADER;

/// The packet starting at its network header, which may lie before its first byte (it was stripped)
/// or behind; `None` when it is not set. The descriptor is a copy: it shares the bytes.
pub fn from_network(packet: &Packet) -> Option<Packet> {
    if packet.net == NO_HEADER { None } else { packet.starting_at(packet.net) }
}

/// Bytes from the network header to the transport header; `None` when one is not set or they stand
/// the wrong way round.
pub fn transport_offset(packet: &Packet) -> Option<usize> {
    if packet.trans == NO_HEADER || packet.net == NO_HEADER {
        return None;
    }
    packet.trans.checked_sub(packet.net).map(usize::from)
}
