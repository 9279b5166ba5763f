//! Packets in the hands of a worker: a vector of descriptors, and a batch of packets in it.
//!
//! A [`Vector`] holds up to [`LIST_CAPACITY`] descriptors. Packets keep their place in it for as long
//! as they are worked on; what moves between elements are index lists. A [`Batch`] is a vector, a
//! list of the packets that an element is to work on, and the exits it sorts them into.

use super::exits::{Exits, LIST_CAPACITY};
use crate::Packet;
use crate::bytes::{PacketBytes, PacketBytesMut};

/// All indices in order: a copy of a part of it lists new packets faster than a loop that counts.
static INDICES: [u16; LIST_CAPACITY] = {
    let mut indices = [0; LIST_CAPACITY];
    let mut at = 0;
    while at < LIST_CAPACITY {
        indices[at] = at as u16;
        at += 1;
    }
    indices
};

/// Descriptors of packets that are being worked on, and a list of those that are still in it.
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

    /// Forgets all packets: they went elsewhere.
    #[inline]
    pub fn clear(&mut self) {
        (self.used, self.listed) = (0, 0);
    }

    /// Number of packets listed.
    #[inline]
    pub fn len(&self) -> usize {
        self.listed
    }

    /// Whether none is listed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.listed == 0
    }

    /// Packets that still fit.
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

    /// Has `fill` write up to `most` descriptors into free places and say how many; lists those.
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

    /// The packets that are used and the list.
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

    /// Lists only these packets, which are in it; longer lists are cut.
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

/// What an opaque element works on: packets of a vector, and where it puts them.
///
/// Each listed packet must be put somewhere exactly once: emitted, dropped, or kept
/// (`element::Work::hold`). The host counts, and says aloud which element lost packets.
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

    /// Sends a packet out of a port where that is wired, else drops it.
    #[inline]
    pub fn emit_or_drop(&mut self, index: u16, port: usize, reason: usize) {
        if port < self.outputs() { self.emit(index, port) } else { self.drop(index, reason) }
    }

    /// Changes each packet and sends it out of output 0; drops it where `change` fails, for that reason.
    #[inline]
    pub fn emit_changed(&mut self, mut change: impl FnMut(&mut Packet) -> Result<(), usize>) {
        for &index in self.list {
            match change(self.packet_mut(index)) {
                Ok(()) => self.emit(index, 0),
                Err(reason) => self.drop(index, reason),
            }
        }
    }

    /// The same where there is one reason not to change a packet.
    #[inline]
    pub fn emit_if(&mut self, reason: usize, mut change: impl FnMut(&mut Packet) -> bool) {
        self.emit_changed(|packet| if change(packet) { Ok(()) } else { Err(reason) });
    }
}
