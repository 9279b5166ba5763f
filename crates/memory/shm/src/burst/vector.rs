//! A worker's packets: a vector of descriptors, and a batch of packets in it.
//!
//! A [`Vector`] holds up to [`LIST_CAPACITY`] descriptors. Packets keep their index in it as long as the
//! worker processes them; index lists move between elements. A [`Batch`] is a vector, the list of the packets
//! that an element processes, and the exits into which the element sorts them.

use super::exits::{Exits, LIST_CAPACITY};
use crate::Packet;
use crate::bytes::{PacketBytes, PacketBytesMut};

/// All indices in order: copying a part of it lists new packets faster than a counting loop.
static INDICES: [u16; LIST_CAPACITY] = {
    let mut indices = [0; LIST_CAPACITY];
    let mut at = 0;
    while at < LIST_CAPACITY {
        indices[at] = at as u16;
        at += 1;
    }
    indices
};

/// Descriptors of packets in processing, and the list of those that are still in the vector.
#[derive(Debug)]
pub struct Vector {
    packets: Box<[Packet; LIST_CAPACITY]>,
    used: usize,
    list: [u16; LIST_CAPACITY],
    listed: usize,
}

impl Default for Vector {
    fn default() -> Vector {
        Vector {
            packets: Box::new([Packet::EMPTY; LIST_CAPACITY]),
            used: 0,
            list: [0; LIST_CAPACITY],
            listed: 0,
        }
    }
}

impl Vector {
    /// An empty vector.
    #[inline]
    pub fn new() -> Vector {
        Vector::default()
    }

    /// Removes all packets from the vector; it frees none.
    #[inline]
    pub fn clear(&mut self) {
        (self.used, self.listed) = (0, 0);
    }

    /// Number of packets listed.
    #[inline]
    pub fn len(&self) -> usize {
        self.listed
    }

    /// Whether no packet is listed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }

    /// Number of packets that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        LIST_CAPACITY - self.used
    }

    /// Adds a packet; false, and nothing added, when the vector is full.
    #[inline]
    pub fn push(&mut self, packet: &Packet) -> bool {
        let Some(place) = self.packets.get_mut(self.used) else { return false };
        *place = *packet;
        self.list[self.listed] = self.used as u16;
        self.used += 1;
        self.listed += 1;
        true
    }

    /// Adds packets from `next`: up to `most`, as many as fit, and until there is none. Returns their number.
    pub fn push_from(&mut self, most: usize, next: impl FnMut() -> Option<Packet>) -> usize {
        let packets = std::iter::from_fn(next).take(most.min(self.room()));
        packets.map(|packet| self.push(&packet)).count()
    }

    /// Lets `fill` write up to `most` descriptors into free positions and return their number, and lists
    /// those.
    #[inline]
    pub fn fill(&mut self, most: usize, fill: impl FnOnce(&mut [Packet]) -> usize) -> usize {
        let most = most.min(self.room());
        let free = &mut self.packets[self.used..self.used + most];
        let count = fill(free).min(most);
        let indices = &INDICES[self.used..self.used + count];
        self.list[self.listed..self.listed + count].copy_from_slice(indices);
        self.used += count;
        self.listed += count;
        count
    }

    /// The used descriptors and the list.
    #[inline]
    pub fn parts(&mut self) -> (&mut [Packet], &[u16]) {
        (&mut self.packets[..self.used], &self.list[..self.listed])
    }

    /// The list.
    #[inline]
    pub fn list(&self) -> &[u16] {
        &self.list[..self.listed]
    }

    /// A packet by its index.
    #[inline]
    pub fn packet(&self, index: u16) -> &Packet {
        &self.packets[usize::from(index)]
    }

    /// A packet by its index.
    #[inline]
    pub fn packet_mut(&mut self, index: u16) -> &mut Packet {
        &mut self.packets[usize::from(index)]
    }

    /// The listed packets in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.list().iter().map(|index| self.packet(*index))
    }

    /// Replaces the list by these packets of the vector; a longer list is truncated.
    #[inline]
    pub fn relist(&mut self, list: &[u16]) {
        let count = list.len().min(LIST_CAPACITY);
        self.list[..count].copy_from_slice(&list[..count]);
        self.listed = count;
    }

    /// Keeps the first `count` listed packets listed and takes the others off the list.
    #[inline]
    pub fn truncate(&mut self, count: usize) {
        self.listed = self.listed.min(count);
    }
}

/// The packets that an opaque element processes, and the exits for them.
///
/// The element must emit, drop or keep (`element::Work::hold`) each listed packet exactly once. The host
/// counts, and reports an element that lost packets.
pub struct Batch<'a> {
    packets: &'a mut [Packet],
    list: &'a [u16],
    exits: &'a mut Exits,
}

impl<'a> Batch<'a> {
    /// A batch of the listed packets.
    #[inline]
    pub fn new(packets: &'a mut [Packet], list: &'a [u16], exits: &'a mut Exits) -> Batch<'a> {
        Batch { packets, list, exits }
    }

    /// Indices of the packets. The list does not borrow the batch, so that packets can be changed
    /// and sorted while going through it.
    #[inline]
    pub fn list(&self) -> &'a [u16] {
        self.list
    }

    /// The vector's descriptors.
    #[inline]
    pub fn packets(&mut self) -> &mut [Packet] {
        self.packets
    }

    // The same four functions as of `Vector`: a batch borrows its descriptors, and not the whole vector.

    /// A packet's descriptor.
    #[inline]
    pub fn packet(&self, index: u16) -> &Packet {
        &self.packets[usize::from(index)]
    }

    /// A packet's descriptor.
    #[inline]
    pub fn packet_mut(&mut self, index: u16) -> &mut Packet {
        &mut self.packets[usize::from(index)]
    }

    /// Read access to a packet's bytes.
    #[inline]
    pub fn bytes(&self, index: u16) -> PacketBytes<'_> {
        PacketBytes::new(&self.packets[usize::from(index)])
    }

    /// Read and write access to a packet's bytes.
    #[inline]
    pub fn bytes_mut(&mut self, index: u16) -> PacketBytesMut<'_> {
        PacketBytesMut::new(&mut self.packets[usize::from(index)])
    }

    /// Number of wired outputs.
    #[inline]
    pub fn outputs(&self) -> usize {
        self.exits.outputs()
    }

    /// Sends a packet out of a port.
    #[inline]
    pub fn emit(&mut self, index: u16, port: usize) {
        self.exits.emit(port, index);
    }

    /// Drops a packet for a reason: an index into `element::Element::reasons`.
    #[inline]
    pub fn drop(&mut self, index: u16, reason: usize) {
        self.exits.drop(reason, index);
    }

    /// Sends a packet out of a port if it is wired, else drops it.
    #[inline]
    pub fn emit_or_drop(&mut self, index: u16, port: usize, reason: usize) {
        if port < self.outputs() { self.emit(index, port) } else { self.drop(index, reason) }
    }

    /// Changes each packet and sends it out of output 0; drops it for the reason that `change` returns if it
    /// fails.
    #[inline]
    pub fn emit_changed(&mut self, mut change: impl FnMut(&mut Packet) -> Result<(), usize>) {
        for &index in self.list {
            match change(self.packet_mut(index)) {
                Ok(()) => self.emit(index, 0),
                Err(reason) => self.drop(index, reason),
            }
        }
    }

    /// The same with one drop reason for all failures.
    #[inline]
    pub fn emit_if(&mut self, reason: usize, mut change: impl FnMut(&mut Packet) -> bool) {
        self.emit_changed(|packet| if change(packet) { Ok(()) } else { Err(reason) });
    }
}
