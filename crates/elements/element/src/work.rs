//! What an element asks of its worker while it runs.
//!
//! [`Host`] is the worker's side; elements use [`Work`], which knows which element is asking.

use shm::Packet;
use shm::burst::Vector;
use shm::pool::PacketPool;

/// The worker that runs an element. `node` says which element asks.
pub trait Host {
    /// The burst's clock: nanoseconds that never go back.
    fn now_ns(&self) -> u64;
    /// The packet pool.
    fn pool(&mut self) -> &mut PacketPool;
    /// Packets to work on at a time.
    fn burst(&self) -> usize;
    /// Sends a packet out of a port once the element has returned.
    fn emit(&mut self, node: usize, port: usize, packet: &Packet);
    /// Sends packets out of a port once the element has returned.
    fn emit_all(&mut self, node: usize, port: usize, packets: &[Packet]) {
        packets.iter().for_each(|packet| self.emit(node, port, packet));
    }
    /// Counts packets that went out of a port by themselves, and are kept by the first element behind it that does
    /// more than pass packets on.
    fn pass(&mut self, _node: usize, _port: usize, _count: usize) {}
    /// Frees packets and counts them as dropped for a reason.
    fn drop(&mut self, node: usize, reason: usize, packets: &[Packet]);
    /// Counts packets as dropped for a reason that were freed already.
    fn count_dropped(&mut self, node: usize, reason: usize, count: usize);
    /// Pulls up to `most` packets from what is wired to an input into a vector.
    fn pull(&mut self, node: usize, input: usize, most: usize, into: &mut Vector) -> usize;
    /// Changes the element's accounts.
    fn count(&mut self, node: usize, account: NodeCounter, count: usize);
    /// Calls [`crate::Element::fire`] at that time or soon after; replaces an earlier wish.
    fn fire_at(&mut self, node: usize, at_ns: u64);
    /// Asks for the end of the run.
    fn stop(&mut self);
    /// Asks sources to wait for a turn of the worker.
    fn hold_sources(&mut self);
    /// Prints a line for the user. Never called for each packet of a fast path: only by elements that
    /// are there to print.
    fn print(&mut self, line: &str);
    /// Reads a handler of any element of this worker, as `element.handler`.
    fn read_handler(&mut self, node: usize, handler: &str) -> Result<String, String>;
    /// Writes a handler.
    fn write_handler(&mut self, node: usize, handler: &str, value: &str) -> Result<(), String>;
}

/// An element's books, so that in + received + made + released = out + dropped + sent + merged + held
/// holds for each of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeCounter {
    /// Packets that the element made.
    Made,
    /// Packets that it keeps from now on.
    Held,
    /// Packets that it kept and lets go now.
    Released,
    /// Packets that went into others: fragments into a whole.
    Merged,
    /// Packets that a port or a file gave.
    Received,
    /// Packets that a port or a file took.
    Sent,
}

impl NodeCounter {
    /// All accounts, in the order of their discriminants.
    pub const ALL: [NodeCounter; 6] = [
        NodeCounter::Made,
        NodeCounter::Held,
        NodeCounter::Released,
        NodeCounter::Merged,
        NodeCounter::Received,
        NodeCounter::Sent,
    ];
}

/// A worker, as the element that it runs sees it.
pub struct Work<'a> {
    host: &'a mut dyn Host,
    node: usize,
}

impl<'a> Work<'a> {
    /// The worker's services for one element.
    #[inline]
    pub fn new(host: &'a mut dyn Host, node: usize) -> Work<'a> {
        Work { host, node }
    }

    /// The burst's clock in nanoseconds; never goes back.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.host.now_ns()
    }

    /// Packets to work on at a time.
    #[inline]
    pub fn burst(&self) -> usize {
        self.host.burst()
    }

    /// The packet pool.
    #[inline]
    pub fn pool(&mut self) -> &mut PacketPool {
        self.host.pool()
    }

    /// A packet that holds `frame`, counted as made. `None` when the pool is empty.
    #[inline]
    pub fn make(&mut self, frame: &[u8]) -> Option<Packet> {
        let packet = shm::chain::write_frame(self.host.pool(), frame)?;
        self.host.count(self.node, NodeCounter::Made, 1);
        Some(packet)
    }

    /// A copy of a packet with its annotations, counted as made. `None` when the pool is empty.
    #[inline]
    pub fn copy(&mut self, packet: &Packet) -> Option<Packet> {
        let copy = shm::chain::clone_packet(self.host.pool(), packet)?;
        self.host.count(self.node, NodeCounter::Made, 1);
        Some(copy)
    }

    /// Counts packets that came from a port or a file.
    #[inline]
    pub fn count_received(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Received, count);
    }

    /// Counts packets that a port or a file took: they are no longer the element's, and are neither
    /// emitted nor dropped.
    #[inline]
    pub fn count_sent(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Sent, count);
    }

    /// Counts packets that the element made in another way than by [`Work::make`] and [`Work::copy`].
    #[inline]
    pub fn count_made(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Made, count);
    }

    /// Sends out a packet that is not in the batch: one that was made or released. It leaves after
    /// the packets of the batch.
    #[inline]
    pub fn emit(&mut self, port: usize, packet: &Packet) {
        self.host.emit(self.node, port, packet);
    }

    /// Sends out packets that are not in the batch, as [`Work::emit`] does.
    #[inline]
    pub fn emit_all(&mut self, port: usize, packets: &[Packet]) {
        self.host.emit_all(self.node, port, packets);
    }

    /// Counts packets that went out of a port without the host: whoever is behind it keeps them from now on.
    #[inline]
    pub fn pass(&mut self, port: usize, count: usize) {
        self.host.pass(self.node, port, count);
    }

    /// Drops packets that are not in the batch.
    #[inline]
    pub fn drop(&mut self, reason: usize, packets: &[Packet]) {
        self.host.drop(self.node, reason, packets);
    }

    /// Counts packets as dropped whose slots were freed already.
    #[inline]
    pub fn count_dropped(&mut self, reason: usize, count: usize) {
        self.host.count_dropped(self.node, reason, count);
    }

    /// Asks the worker's sources to wait for a turn: what they bring in would only be dropped later.
    #[inline]
    pub fn hold_sources(&mut self) {
        self.host.hold_sources();
    }

    /// Says that so many packets are kept from now on.
    #[inline]
    pub fn hold(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Held, count);
    }

    /// Says that so many kept packets are let go: they are emitted, dropped, returned by a pull or
    /// merged now.
    #[inline]
    pub fn release(&mut self, count: usize) {
        self.host.count(self.node, NodeCounter::Released, count);
    }

    /// Says that so many packets went into others; the caller frees them.
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

    /// Asks for the end of the run.
    pub fn stop(&mut self) {
        self.host.stop();
    }

    /// Prints a line for the user.
    pub fn print(&mut self, line: &str) {
        self.host.print(line);
    }

    /// Reads `element.handler`.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn read_handler(&mut self, handler: &str) -> Result<String, String> {
        self.host.read_handler(self.node, handler)
    }

    /// Writes `element.handler`.
    ///
    /// # Errors
    /// A sentence that says why not.
    pub fn write_handler(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.host.write_handler(self.node, handler, value)
    }
}
