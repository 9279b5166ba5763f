//! The services of a worker for its elements.
//!
//! The worker implements [`Host`]; elements use [`Work`], which adds the number of the element.

use shm::Packet;
use shm::burst::Vector;
use shm::pool::PacketPool;

/// The worker that runs an element. `node` is the number of the element that calls.
pub trait Host {
    /// The burst's clock in nanoseconds; it never goes back.
    fn now_ns(&self) -> u64;
    /// The clock now: the time may have gone on since the burst began. Only elements that measure times inside
    /// of a burst ask for it, once for each burst.
    fn clock_ns(&self) -> u64 {
        self.now_ns()
    }
    /// The packet pool.
    fn pool(&mut self) -> &mut PacketPool;
    /// Packets to process at a time.
    fn burst(&self) -> usize;
    /// The most packets to process at a time just now.
    fn most_at_once(&self) -> usize {
        usize::MAX
    }
    /// Sends a packet out of a port once the element has returned. A `place` of `2 * n` is before packet `n` of its
    /// batch, one of `2 * n + 1` behind it, and `u16::MAX` is behind all.
    fn emit(&mut self, node: usize, port: usize, place: u16, packet: &Packet);
    /// Sends packets out of a port once the element has returned.
    fn emit_all(&mut self, node: usize, port: usize, place: u16, packets: &[Packet]) {
        packets.iter().for_each(|packet| self.emit(node, port, place, packet));
    }
    /// Counts packets that left by a port without the host. The first element downstream that does more than
    /// forward holds them.
    fn pass(&mut self, _node: usize, _port: usize, _count: usize) {}
    /// Frees packets and counts them as dropped for a reason.
    fn drop(&mut self, node: usize, reason: usize, packets: &[Packet]);
    /// Counts packets that were freed already as dropped for a reason.
    fn count_dropped(&mut self, node: usize, reason: usize, count: usize);
    /// Pulls up to `most` packets from an input into a vector.
    fn pull(&mut self, node: usize, input: usize, most: usize, into: &mut Vector) -> usize;
    /// Adds to one of the element's node counters.
    fn count(&mut self, node: usize, counter: NodeCounter, count: usize);
    /// Calls [`crate::Element::fire`] at that time or soon after; replaces an earlier time.
    fn fire_at(&mut self, node: usize, at_ns: u64);
    /// The worker, if it has nothing to do, runs its tasks again at that time or soon after.
    fn wake_at(&mut self, _at_ns: u64) {}
    /// Requests the end of the element's NF, and of the run unless scripts of other NFs hold it.
    fn stop(&mut self, node: usize);
    /// Makes sources wait for one turn of the worker.
    fn hold_sources(&mut self);
    /// Prints a line for the user. Only elements whose purpose is printing call it for each packet.
    fn print(&mut self, line: &str);
    /// Prints a line about the packet of the batch with this index. Lines about the packets of a burst are printed
    /// as if packets came one by one.
    fn print_about(&mut self, _index: u16, line: &str) {
        self.print(line);
    }
    /// Reads a handler of any element of this worker, as `element.handler`.
    fn read_handler(&mut self, node: usize, handler: &str) -> Result<String, String>;
    /// Writes a handler.
    fn write_handler(&mut self, node: usize, handler: &str, value: &str) -> Result<(), String>;
    /// Lets the elements whose handlers were written follow at once ([`crate::Element::follow_write`]).
    fn follow_writes(&mut self) {}
    /// Takes the writes to the element's handlers that came while it ran, each a handler and a value. What it does not
    /// take is written when it returns.
    fn take_own_writes(&mut self, _node: usize) -> Vec<(String, String)> {
        vec![]
    }
}

/// The node counters of an element. For each element,
/// in + received + made + released = out + dropped + sent + merged + held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeCounter {
    /// Packets that the element made.
    Made,
    /// Packets that it started to hold.
    Held,
    /// Packets that it held and released.
    Released,
    /// Packets that became part of others, as fragments of a datagram.
    Merged,
    /// Packets from a port or a file.
    Received,
    /// Packets to a port or a file.
    Sent,
    /// Bytes of the received packets.
    ReceivedBytes,
    /// Bytes of the sent packets.
    SentBytes,
}

impl NodeCounter {
    /// All counters, in the order of their discriminants.
    pub const ALL: [NodeCounter; 8] = [
        NodeCounter::Made,
        NodeCounter::Held,
        NodeCounter::Released,
        NodeCounter::Merged,
        NodeCounter::Received,
        NodeCounter::Sent,
        NodeCounter::ReceivedBytes,
        NodeCounter::SentBytes,
    ];
}

/// The worker's services for one element.
pub struct Work<'a> {
    host: &'a mut dyn Host,
    node: usize,
    /// Where emitted packets leave, between those of the batch.
    place: u16,
}

impl<'a> Work<'a> {
    /// The services of `host` for element `node`.
    #[inline]
    pub fn new(host: &'a mut dyn Host, node: usize) -> Work<'a> {
        Work { host, node, place: u16::MAX }
    }

    /// The burst's clock in nanoseconds; never goes back.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    /// The clock now, later than the burst's by what was done since.
    pub fn clock_ns(&self) -> u64 {
        self.host.clock_ns()
    }

    /// Packets to process at a time.
    #[inline]
    pub fn burst(&self) -> usize {
        self.burst_or(None)
    }

    /// The same for an element with a number of its own.
    #[inline]
    pub fn burst_or(&self, own: Option<usize>) -> usize {
        own.unwrap_or_else(|| self.host.burst()).min(self.host.most_at_once())
    }

    /// The packet pool.
    #[inline]
    pub fn pool(&mut self) -> &mut PacketPool {
        self.host.pool()
    }

    /// A packet that holds `frame`, counted as made. `None` if the pool is empty.
    #[inline]
    pub fn make(&mut self, frame: &[u8]) -> Option<Packet> {
        let packet = shm::chain::write_frame(self.host.pool(), frame)?;
        self.host.count(self.node, NodeCounter::Made, 1);
        Some(packet)
    }

    /// A copy of a packet with its annotations, counted as made. `None` if the pool is empty.
    #[inline]
    pub fn copy(&mut self, packet: &Packet) -> Option<Packet> {
        let copy = shm::chain::clone_packet(self.host.pool(), packet)?;
        self.host.count(self.node, NodeCounter::Made, 1);
        Some(copy)
    }

    /// Counts packets received from a port or a file, and their bytes.
    #[inline]
    pub fn count_received(&mut self, count: usize, bytes: u64) {
        self.host.count(self.node, NodeCounter::Received, count);
        self.host.count(self.node, NodeCounter::ReceivedBytes, bytes as usize);
    }

    /// Counts packets sent to a port or a file, and their bytes: the element neither emits nor drops them.
    #[inline]
    pub fn count_sent(&mut self, count: usize, bytes: u64) {
        self.host.count(self.node, NodeCounter::Sent, count);
        self.host.count(self.node, NodeCounter::SentBytes, bytes as usize);
    }

    /// Counts packets that the element made without [`Work::make`] and [`Work::copy`].
    #[inline]
    pub fn count_made(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Made, count);
    }

    /// From now on, emitted packets leave behind this packet of the batch, and before those behind it.
    #[inline]
    pub fn place_behind(&mut self, index: u16) {
        self.place = 2 * index + 1;
    }

    /// From now on, emitted packets leave before this packet of the batch, and behind those before it.
    #[inline]
    pub fn place_before(&mut self, index: u16) {
        self.place = 2 * index;
    }

    /// Emits a packet that is not in the batch: one that was made or released. It leaves after the batch, if
    /// it has no other place ([`Work::place_behind`]).
    #[inline]
    pub fn emit(&mut self, port: usize, packet: &Packet) {
        self.host.emit(self.node, port, self.place, packet);
    }

    /// Emits packets that are not in the batch, as [`Work::emit`] does.
    #[inline]
    pub fn emit_all(&mut self, port: usize, packets: &[Packet]) {
        self.host.emit_all(self.node, port, self.place, packets);
    }

    /// Counts packets that left by a port without the host: an element downstream holds them.
    #[inline]
    pub fn pass(&mut self, port: usize, count: usize) {
        self.host.pass(self.node, port, count);
    }

    /// Drops packets that are not in the batch.
    #[inline]
    pub fn drop(&mut self, reason: usize, packets: &[Packet]) {
        self.host.drop(self.node, reason, packets);
    }

    /// Counts packets whose slots were freed already as dropped.
    #[inline]
    pub fn count_dropped(&mut self, reason: usize, count: usize) {
        self.host.count_dropped(self.node, reason, count);
    }

    /// Makes the worker's sources wait for a turn: their packets would only be dropped later.
    #[inline]
    pub fn hold_sources(&mut self) {
        self.host.hold_sources();
    }

    /// Counts packets that the element started to hold.
    #[inline]
    pub fn hold(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Held, count);
    }

    /// Counts held packets that the element releases: it emits, drops or merges them, or a pull returns them.
    #[inline]
    pub fn release(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Released, count);
    }

    /// Drops packets that the element held.
    #[inline]
    pub fn drop_held(&mut self, reason: usize, packets: &[Packet]) {
        self.release(packets.len());
        self.drop(reason, packets);
    }

    /// Counts packets that became part of others; the caller frees them.
    #[inline]
    pub fn merge(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Merged, count);
    }

    /// Pulls up to `most` packets from an input.
    #[inline]
    pub fn pull(&mut self, input: usize, most: usize, into: &mut Vector) -> usize {
        self.host.pull(self.node, input, most, into)
    }

    /// Calls [`crate::Element::fire`] at that time or soon after.
    #[inline]
    pub fn fire_at(&mut self, at_ns: u64) {
        self.host.fire_at(self.node, at_ns);
    }

    /// Says in a task, or in a pull, that there will be something to do at a time, when nothing is now. It holds until
    /// the worker's tasks run again: each time it has to be said anew. A worker without other work sleeps no longer, and
    /// virtual time goes on to there.
    pub fn wake_at(&mut self, at_ns: u64) {
        self.host.wake_at(at_ns);
    }

    /// Requests the end of the element's NF, and of the run unless scripts of other NFs hold it.
    pub fn stop(&mut self) {
        self.host.stop(self.node);
    }

    /// Prints a line for the user.
    pub fn print(&mut self, line: &str) {
        self.host.print(line);
    }

    /// Prints a line about the packet of the batch with this index, in the order of packets: see
    /// [`crate::Element::prints`].
    pub fn print_about(&mut self, index: u16, line: &str) {
        self.host.print_about(index, line);
    }

    /// Reads `element.handler`.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub fn read_handler(&mut self, handler: &str) -> Result<String, String> {
        self.host.read_handler(self.node, handler)
    }

    /// Writes `element.handler`.
    ///
    /// # Errors
    /// A sentence with the reason.
    pub fn write_handler(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.host.write_handler(self.node, handler, value)
    }

    /// Lets the elements whose handlers it has written follow now ([`crate::Element::follow_write`]), and not when it
    /// returns.
    pub fn follow_writes(&mut self) {
        self.host.follow_writes();
    }

    /// Takes the writes to the element's own handlers that came while it ran, each a handler and a value: by a script that
    /// it called, for example. What it does not take is written when it returns.
    pub fn take_own_writes(&mut self) -> Vec<(String, String)> {
        self.host.take_own_writes(self.node)
    }
}
