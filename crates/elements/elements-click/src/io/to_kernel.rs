//! Packets that leave by a call to the kernel each.

use element::Work;
use shm::Packet;
use shm::burst::{Batch, LIST_CAPACITY, Vector};
use shm::pool::Pool;

/// Sends the packets of a batch; those that `send` refuses are dropped for the reason that it says.
pub(super) fn send_batch(
    batch: &mut Batch<'_>,
    work: &mut Work<'_>,
    mut send: impl FnMut(&Packet) -> Result<(), usize>,
) {
    let (mut sent, mut count, mut bytes) = ([0; LIST_CAPACITY], 0, 0);
    for &index in batch.list() {
        match send(batch.packet(index)) {
            Ok(()) => {
                sent[count] = index;
                count += 1;
                bytes += u64::from(batch.packet(index).total());
            }
            Err(reason) => batch.drop(index, reason),
        }
    }
    work.pool().free(batch.packets(), &sent[..count]);
    work.count_sent(count, bytes);
}

/// Pulls a burst from the first input and sends it. Returns how many packets there were.
pub(super) fn send_pulled(
    vector: &mut Vector,
    work: &mut Work<'_>,
    mut send: impl FnMut(&Packet) -> Result<(), usize>,
) -> usize {
    let pulled = work.pull(0, work.burst(), vector);
    for packet in vector.iter() {
        match send(packet) {
            Ok(()) => work.count_sent(1, packet.total().into()),
            Err(reason) => work.count_dropped(reason, 1),
        }
    }
    let (packets, list) = vector.parts();
    work.pool().free(packets, list);
    vector.clear();
    pulled
}
