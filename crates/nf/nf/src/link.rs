//! The burst interface: an NF's loop receives packets and decides about each.

use crate::NfError;
use crate::attach::{Options, attach};
use crate::ends::{Ends, FIRST_COUNTER};
use crate::handler::{Call, Handler, Merge};
use crate::message::{FromNf, InterfaceFacts};
use crate::neighbours::Neighbour;
use crate::packet::Packet;
use shm::ring::Action;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Receives without packets for which an NF polls before it yields the processor, and for which it yields
/// before it sleeps.
const SPINS: u32 = 8;
const YIELDS: u32 = 80;
/// The longest sleep: after it the NF checks for messages of the host.
const SLEEP: Duration = Duration::from_millis(10);
/// The shortest sleep: putting a thread to sleep and waking it takes about as long.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// The longest sleep while the host resolves a neighbour, and receives after which an NF that always finds
/// packets then checks for the answer.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
const ANSWER_AFTER: u32 = 16;
/// Receives after which an NF that always finds packets checks for messages of the host.
const LISTEN_AFTER: u32 = 1024;
/// How long a stopping NF waits for room to return its packets.
const PATIENCE: Duration = Duration::from_secs(1);

/// A packet that is kept for later. [`Link::release`] returns it to work; one that goes out of scope is
/// dropped.
#[derive(Debug)]
pub struct Held(Packet);

/// An NF's link to its host.
#[derive(Debug)]
pub struct Link {
    ends: Ends,
    config: Vec<u8>,
    reasons: u16,
    counters: usize,
    handlers: Vec<Handler>,
    /// Receives in a row that found no packet, and receives since the last check for messages.
    idle: u32,
    unheard: u32,
    /// The latest end of the next wait.
    wake: Option<Instant>,
    /// Set by a signal that ends the NF.
    stop: Arc<AtomicBool>,
}

impl Link {
    /// Performs the handshake with the host that the environment names. The host may enqueue packets from now
    /// on.
    ///
    /// # Errors
    ///
    /// When there is no host, or it refuses this NF.
    pub fn attach(options: &Options) -> Result<Link, NfError> {
        let link = Link::prepare(options)?;
        link.ready()?;
        Ok(link)
    }

    /// The same for an NF that must read its configuration first: the host enqueues packets once the NF is
    /// [ready](Link::ready).
    ///
    /// # Errors
    ///
    /// When there is no host, or it refuses this NF.
    pub fn prepare(options: &Options) -> Result<Link, NfError> {
        let mut attached = attach(options)?;
        let config = std::mem::take(&mut attached.config);
        let (reasons, counters) = (attached.reasons as u16, attached.counters);
        let (ends, stop) = (Ends::new(attached), Arc::default());
        let handlers = options.hello.handlers.clone();
        Ok(Link { ends, config, reasons, counters, handlers, idle: 0, unheard: 0, wake: None, stop })
    }

    /// Reports to the host that the NF is ready for packets.
    ///
    /// # Errors
    ///
    /// When the host has closed the socket.
    pub fn ready(&self) -> Result<(), NfError> {
        self.ends.ready()
    }

    /// Reports to the host that the NF cannot run, with a sentence that explains why.
    pub fn fail(&self, why: &str) {
        self.ends.say(&FromNf::Failed { why: why.into() });
    }

    /// Whether the host only asks whether the NF would run with its configuration (`millrace check --ask`). No
    /// packets will come. An NF checks its configuration and reports that it is ready, or fails; it need not do
    /// what others would notice, such as opening a connection.
    pub fn is_check(&self) -> bool {
        std::env::var_os(crate::CHECK_ENVIRONMENT).is_some()
    }

    /// The NF's name in the chain.
    pub fn name(&self) -> &str {
        &self.ends.welcome().name
    }

    /// The interfaces that packets can be sent to, by number.
    #[inline]
    pub fn interfaces(&self) -> &[String] {
        &self.ends.welcome().outputs
    }

    /// The number of an interface.
    pub fn interface(&self, name: &str) -> Option<usize> {
        self.interfaces().iter().position(|known| known == name)
    }

    /// The text that the chain file has for this NF (`config`), possibly empty.
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// The L3 interface of an interface: the Ethernet address and the addresses of the port or virtual device
    /// behind it. `None` if that has no addresses, and if something else is behind the interface.
    pub fn l3_interface(&self, interface: usize) -> Option<&InterfaceFacts> {
        self.ends.known_neighbours().l3_interface(interface)
    }

    /// The old name of [`Link::l3_interface`].
    #[deprecated(note = "use `l3_interface`")]
    pub fn station(&self, interface: usize) -> Option<&InterfaceFacts> {
        self.l3_interface(interface)
    }

    /// The Ethernet address of a next hop on an interface. The first call has the host resolve it, and keep
    /// it up to date as long as this NF calls at least once a minute. Later calls cost a table lookup.
    /// [`Link::receive`] and [`Link::wait`] apply the host's answers.
    ///
    /// [`Neighbour::Unreachable`] also if no port or device with addresses is behind the interface, and for addresses
    /// that cannot be a neighbour's.
    #[inline]
    pub fn neighbour(&mut self, interface: usize, next_hop: IpAddr) -> Neighbour {
        self.ends.neighbours().look(interface, next_hop)
    }

    /// A number that changes with every change of a neighbour's state, for NFs that hold packets until then.
    #[inline]
    pub fn neighbour_changes(&self) -> u64 {
        self.ends.known_neighbours().changes()
    }

    /// Whether packets may be written: not those of an observer.
    pub fn is_writable(&self) -> bool {
        self.ends.welcome().writable
    }

    /// Packets that the NF should process at a time.
    pub fn burst(&self) -> usize {
        self.ends.welcome().burst
    }

    /// Packets that the NF may have in work at a time, and as many again held; the host enqueues no more.
    pub fn quota(&self) -> u64 {
        self.ends.welcome().quota
    }

    /// Has SIGTERM and SIGINT end the NF as the host does: [`Link::is_over`] is true from then on.
    /// [`run`](crate::run) calls this by itself.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn stop_on_signals(&mut self) -> Result<(), NfError> {
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&self.stop))
                .map_err(|source| NfError::Socket { action: "catch signals for", source })?;
        }
        Ok(())
    }

    /// Whether the NF is to end. [`Link::close`] returns the packets that it still has, and so does the link
    /// when it goes out of scope.
    pub fn is_over(&self) -> bool {
        self.ends.is_over() || self.stop.load(Ordering::Relaxed)
    }

    /// Reports that the NF has nothing left to do. The host shows this to the operator; it does not end the
    /// run of other NFs for a program.
    pub fn ask_end(&self) {
        self.ends.say(&FromNf::Over);
    }

    /// Appends the next packets, up to 64, and returns how many. Never waits. Publishes to the host the
    /// packets that were sent since the last call.
    #[inline]
    pub fn receive(&mut self, packets: &mut impl Extend<Packet>) -> usize {
        self.free_abandoned();
        self.unheard += 1;
        let listen_after =
            if self.ends.known_neighbours().is_resolving() { ANSWER_AFTER } else { LISTEN_AFTER };
        if self.unheard > listen_after {
            self.unheard = 0;
            self.ends.listen();
            self.ends.attend_neighbours();
        } else if self.ends.known_neighbours().has_wishes() {
            self.ends.attend_neighbours();
        }
        let (writable, known) = (self.is_writable(), self.ends.has_metadata());
        let came = self.ends.fetch_all();
        packets.extend(came.map(|(input, received)| Packet::new(received, input, writable, known)));
        let count = self.ends.fetched();
        self.idle = if count > 0 { 0 } else { self.idle.saturating_add(1) };
        count
    }

    /// Waits a moment, after [`Link::receive`] found no packet. The wait is longer the more calls in a row
    /// found none: at most 10 ms, or until the time that [`Link::wake_at`] set.
    #[inline]
    pub fn wait(&mut self) {
        let wake = self.wake.take();
        match self.idle {
            0 => {}
            1..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => {
                self.ends.listen();
                self.ends.attend_neighbours();
                let sleep = if self.ends.known_neighbours().is_resolving() { SHORT_SLEEP } else { SLEEP };
                let left = wake.map_or(sleep, |wake| wake.saturating_duration_since(Instant::now()));
                // So short a sleep takes longer than requested.
                if left < SHORTEST_SLEEP {
                    std::thread::yield_now();
                } else if !self.is_over() {
                    self.ends.sleep(left.min(sleep));
                }
            }
        }
    }

    /// Limits the next [`Link::wait`] to this time, for packets that are held, and for timers. Of several
    /// calls before it the earliest time counts.
    pub fn wake_at(&mut self, time: Instant) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }

    /// Sends a packet out of an interface. With a number that is no interface, the host counts it as dropped.
    #[inline]
    pub fn send(&mut self, packet: Packet, interface: usize) {
        let interface = u16::try_from(interface).unwrap_or(u16::MAX);
        self.ends.give_received(&packet.give(), Action::Emit, interface);
    }

    /// Sends a packet out of the opposite interface: with two interfaces, the one that it was not received
    /// from; with one interface, that one. With more there is no opposite interface, and the packet is
    /// dropped.
    #[inline]
    pub fn pass(&mut self, packet: Packet) {
        match (self.interfaces().len(), packet.interface()) {
            (1, _) => self.send(packet, 0),
            (2, from) => self.send(packet, 1 - from.min(1)),
            _ => drop(packet),
        }
    }

    /// Drops a packet for one of the reasons that the NF named ([`Options::reason`]); 0 is the unstated one.
    #[inline]
    pub fn drop_for(&mut self, packet: Packet, reason: usize) {
        let reason = u16::try_from(reason).ok().filter(|reason| *reason < self.reasons).unwrap_or(0);
        self.ends.free_received(&packet.give(), reason);
    }

    /// Keeps a packet for later. While [`Link::can_hold`] is true, the host counts it against a separate
    /// quota, and the packet is not lost if this NF dies. Otherwise it counts as a packet in work.
    pub fn hold(&mut self, packet: Packet) -> Held {
        let (input, known) = (packet.interface() as u16, packet.is_known());
        let received = packet.give();
        self.ends.hold(&received);
        Held(Packet::new(received, input, self.is_writable(), known))
    }

    /// Whether the host would keep one more packet.
    pub fn can_hold(&self) -> bool {
        self.ends.can_hold()
    }

    /// Returns a held packet to work, so that it can be sent or dropped.
    pub fn release(&mut self, held: Held) -> Packet {
        held.0
    }

    /// An empty packet for [`Packet::fill`]; `None` when the host has granted no more slots.
    pub fn make(&mut self) -> Option<Packet> {
        self.free_abandoned();
        let made = self.ends.make_received()?;
        Some(Packet::new(made, 0, self.is_writable(), self.ends.has_metadata()))
    }

    /// A packet of these bytes; `None` when there is no slot, or when they do not fit into one.
    pub fn make_from(&mut self, bytes: &[u8]) -> Option<Packet> {
        let mut packet = self.make()?;
        packet.fill(bytes).then_some(packet)
    }

    /// Adds to one of the counters that the NF named ([`Options::counter`]).
    pub fn count(&mut self, counter: usize, by: u64) {
        if counter < self.counters {
            let word = FIRST_COUNTER + counter;
            self.ends.page().store(word, self.ends.page().load(word).wrapping_add(by));
        }
    }

    /// Sets one of the counters that the NF named, for a value that is no sum.
    pub fn set(&mut self, counter: usize, value: u64) {
        if counter < self.counters {
            self.ends.page().store(FIRST_COUNTER + counter, value);
        }
    }

    /// Publishes to the host the packets that were sent so far. [`Link::receive`] does that, too.
    pub fn flush(&mut self) {
        self.free_abandoned();
        self.ends.flush();
        self.ends.wake_others();
    }

    /// The next call of a handler that the NF named ([`Options::handler`]); to be answered by
    /// [`Link::answer`] within two seconds. Calls arrive while the NF receives and waits, and once more when
    /// it is to end. A loop of the NF's own checks for them after both; [`run`](crate::run) does that by
    /// itself.
    #[inline]
    pub fn next_call(&mut self) -> Option<Call> {
        self.ends.next_call()
    }

    /// Answers a call: with the handler's value, up to 1 MiB (empty for a write), or with a sentence that
    /// explains why there is none.
    pub fn answer(&mut self, call: Call, answer: Result<String, String>) {
        let known = self.handlers.iter().find(|handler| handler.name == call.handler());
        let merge = known.map_or(Merge::First, |handler| handler.merge);
        self.ends.answer(&call, answer.map(|text| (merge, text)));
    }

    /// Sends a sentence to the operator.
    pub fn tell(&self, text: &str) {
        self.ends.say(&FromNf::Finding { text: text.into() });
    }

    /// Returns all packets, drops those that were received and not sent, and ends.
    pub fn close(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.free_abandoned();
        let end = Instant::now() + PATIENCE;
        self.ends.leave_others();
        // Packets that the host enqueued and the NF has not received are returned, too.
        while !self.ends.is_backed_up() {
            let left: Vec<_> = self.ends.fetch_all().map(|(_, received)| received).collect();
            if self.ends.fetched() == 0 || Instant::now() > end {
                break;
            }
            left.iter().for_each(|received| self.ends.free_received(received, 0));
        }
        self.ends.close(PATIENCE);
    }

    /// Drops packets that went out of scope.
    fn free_abandoned(&mut self) {
        for packet in Packet::abandoned() {
            self.ends.free_received(&packet, 0);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.finish();
    }
}
