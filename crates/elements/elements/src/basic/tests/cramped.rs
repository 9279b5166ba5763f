//! Slow paths of elements that push headers, with packets that have no headroom left.

use crate::testing::Rig;
use element::Transparent;
use element::work::{Host, Work};
use packet::Access;
use shm::Packet;
use shm::burst::Batch;
use shm::burst::Exits;
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::descriptor::BUF_BYTES;
use shm::pool::Pool;

/// Takes a packet that begins where its buffer does, its MAC header there, through a slow path. How it
/// left by output 0, and its bytes; `None` when it was dropped.
pub(crate) fn through_slow_path(element: &mut dyn Transparent, bytes: &[u8]) -> Option<(Packet, Vec<u8>)> {
    let mut rig = Rig::new("Null", "", 1, 1);
    let mut packet = shm::chain::write_frame(rig.host().pool(), &[]).unwrap();
    let headroom = packet.headroom();
    assert!(packet.push(headroom));
    assert!(packet.take(headroom.saturating_sub(bytes.len())));
    assert!(packet.put(bytes.len().saturating_sub(headroom)));
    assert!(PacketBytesMut::new(&mut packet).copy_in(0, bytes));
    packet.mac = 0;
    let mut packets = [packet];
    let mut exits = Exits::with_capacity(4);
    exits.reset(1, element.reasons().len(), 0);
    element.slow(0, &mut Batch::new(&mut packets, &[0], &mut exits), &mut Work::new(rig.host(), 0));
    let left = !exits.output(0).is_empty();
    assert_eq!(left, exits.dropped(0).is_empty(), "sent or dropped, not both");
    let seen = PacketBytes::new(&packets[0]).to_vec();
    rig.host().pool().free_all(&packets);
    left.then_some((packets[0], seen))
}

/// Bytes that fill the buffer but for some.
pub(crate) fn all_but(bytes: usize) -> Vec<u8> {
    (0..BUF_BYTES - bytes).map(|at| at as u8).collect()
}
