//! The burst interface: an NF's loop asks for packets, and says what becomes of each.

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

/// How long an NF without packets looks again and again, before it lets others have the processor, and before it
/// sleeps.
const SPINS: u32 = 8;
const YIELDS: u32 = 80;
/// The longest sleep: then the NF looks whether the host said something.
const SLEEP: Duration = Duration::from_millis(10);
/// The shortest sleep: putting a thread to sleep and waking it takes about as long.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
/// The longest sleep while the host looks for a neighbour, and receives after which an NF that always finds packets
/// looks whether it has found it.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
const ANSWER_AFTER: u32 = 16;
/// Receives after which an NF that always finds packets looks whether the host said something.
const LISTEN_AFTER: u32 = 1024;
/// How long a stopping NF waits for room to give back what it has.
const PATIENCE: Duration = Duration::from_secs(1);

/// A packet that is kept for later. Let go of with [`Link::release`]; one that goes out of scope is dropped.
#[derive(Debug)]
pub struct Held(Packet);

/// An NF's way to its host.
#[derive(Debug)]
pub struct Link {
    ends: Ends,
    config: Vec<u8>,
    reasons: u16,
    counters: usize,
    handlers: Vec<Handler>,
    /// Receives in a row that found nothing, and since the host was last listened to.
    idle: u32,
    unheard: u32,
    /// When the next wait ends at the latest.
    wake: Option<Instant>,
    /// A signal asked for the end.
    stop: Arc<AtomicBool>,
}

impl Link {
    /// Shakes hands with the host that the environment names. Packets come from now on.
    ///
    /// # Errors
    ///
    /// When there is no host, or it does not want this NF.
    pub fn attach(options: &Options) -> Result<Link, NfError> {
        let link = Link::prepare(options)?;
        link.ready()?;
        Ok(link)
    }

    /// The same for an NF that has to look at its configuration first: packets come when it is
    /// [ready](Link::ready).
    ///
    /// # Errors
    ///
    /// When there is no host, or it does not want this NF.
    pub fn prepare(options: &Options) -> Result<Link, NfError> {
        let mut attached = attach(options)?;
        let config = std::mem::take(&mut attached.config);
        let (reasons, counters) = (attached.reasons as u16, attached.counters);
        let (ends, stop) = (Ends::new(attached), Arc::default());
        let handlers = options.hello.handlers.clone();
        Ok(Link { ends, config, reasons, counters, handlers, idle: 0, unheard: 0, wake: None, stop })
    }

    /// Says that packets may come.
    ///
    /// # Errors
    ///
    /// When the host has hung up.
    pub fn ready(&self) -> Result<(), NfError> {
        self.ends.ready()
    }

    /// Tells the host that the NF cannot run, in a sentence that says why.
    pub fn fail(&self, why: &str) {
        self.ends.say(&FromNf::Failed { why: why.into() });
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

    /// The text that the chain file has for this NF (`config`), or nothing.
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// What the port or virtual device behind an interface is on its network: its Ethernet address and its addresses.
    /// `None` where it has none, and where something else is behind the interface.
    pub fn l3_interface(&self, interface: usize) -> Option<&InterfaceFacts> {
        self.ends.known_neighbours().l3_interface(interface)
    }

    /// The old name of [`Link::l3_interface`].
    #[deprecated(note = "use `l3_interface`")]
    pub fn station(&self, interface: usize) -> Option<&InterfaceFacts> {
        self.l3_interface(interface)
    }

    /// The Ethernet address of a next hop that is reached by an interface. The first look has the host look for it, and
    /// keep it up to date from then on, as long as this NF looks at it at least once a minute; what is known costs a
    /// look into a table. What the host says is taken in by [`Link::receive`] and [`Link::wait`].
    ///
    /// [`Neighbour::Unreachable`] also where no port or device with addresses is behind the interface, and for
    /// addresses that are no neighbour's.
    #[inline]
    pub fn neighbour(&mut self, interface: usize, next_hop: IpAddr) -> Neighbour {
        self.ends.neighbours().look(interface, next_hop)
    }

    /// A number that changes whenever something becomes known of a neighbour: for NFs that hold packets until then.
    #[inline]
    pub fn neighbour_changes(&self) -> u64 {
        self.ends.known_neighbours().changes()
    }

    /// Whether packets may be written: an observer's may not.
    pub fn is_writable(&self) -> bool {
        self.ends.welcome().writable
    }

    /// Packets that the host wants to be worked on at a time.
    pub fn burst(&self) -> usize {
        self.ends.welcome().burst
    }

    /// Packets that the NF may have in work at a time, and as many again held; the host enqueues no more.
    pub fn quota(&self) -> u64 {
        self.ends.welcome().quota
    }

    /// Has SIGTERM and SIGINT end the NF as the host does: [`Link::is_over`] says so from then on. [`run`](crate::run)
    /// does that by itself.
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

    /// Whether the NF is to end: what it still has goes back by [`Link::close`], or when the link goes out of
    /// scope.
    pub fn is_over(&self) -> bool {
        self.ends.is_over() || self.stop.load(Ordering::Relaxed)
    }

    /// Says that the NF has nothing left to do. The host tells the operator; it does not end the run of others for a
    /// program.
    pub fn ask_end(&self) {
        self.ends.say(&FromNf::Over);
    }

    /// Appends the next packets, up to 64; how many. Never waits. What the NF gave since the last call is shown to
    /// the host.
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

    /// Waits a moment, after [`Link::receive`] found nothing: the longer that was so, the longer; at most 10 ms, or
    /// until [`Link::wake_at`] says.
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
                // A sleep so short takes longer than it says.
                if left < SHORTEST_SLEEP {
                    std::thread::yield_now();
                } else if !self.is_over() {
                    self.ends.sleep(left.min(sleep));
                }
            }
        }
    }

    /// Has the next [`Link::wait`] end by then at the latest: for packets that are held, and for timers. Of several
    /// calls before it the earliest counts.
    pub fn wake_at(&mut self, time: Instant) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }

    /// Sends a packet out of an interface. The host counts one to an interface that there is not as dropped.
    #[inline]
    pub fn send(&mut self, packet: Packet, interface: usize) {
        let interface = u16::try_from(interface).unwrap_or(u16::MAX);
        self.ends.give_received(&packet.give(), Action::Emit, interface);
    }

    /// Sends a packet out of the interface across: of two, the one that it did not come in by; of one, that. With
    /// more there is none, and the packet is dropped.
    #[inline]
    pub fn pass(&mut self, packet: Packet) {
        match (self.interfaces().len(), packet.interface()) {
            (1, _) => self.send(packet, 0),
            (2, from) => self.send(packet, 1 - from.min(1)),
            _ => drop(packet),
        }
    }

    /// Drops a packet for one of the reasons that the NF named ([`Options::reason`]); 0 states none.
    #[inline]
    pub fn drop_for(&mut self, packet: Packet, reason: usize) {
        let reason = u16::try_from(reason).ok().filter(|reason| *reason < self.reasons).unwrap_or(0);
        self.ends.free_received(&packet.give(), reason);
    }

    /// Keeps a packet for later. The host counts it against a quota of its own, as long as
    /// [`Link::can_hold`] says so, and knows that it was whole should this NF die; else it counts as one in work.
    pub fn hold(&mut self, packet: Packet) -> Held {
        let (input, known) = (packet.interface() as u16, packet.is_known());
        let received = packet.give();
        self.ends.hold(&received);
        Held(Packet::new(received, input, self.is_writable(), known))
    }

    /// Whether the host keeps one more packet.
    pub fn can_hold(&self) -> bool {
        self.ends.can_hold()
    }

    /// The packet that was held, to be sent or dropped now.
    pub fn release(&mut self, held: Held) -> Packet {
        held.0
    }

    /// An empty packet to [`Packet::fill`]; `None` when the host has granted no more slots for now.
    pub fn make(&mut self) -> Option<Packet> {
        self.free_abandoned();
        let made = self.ends.make_lent()?;
        Some(Packet::new(made, 0, self.is_writable(), self.ends.has_metadata()))
    }

    /// A packet of these bytes; `None` when there is no slot for now, or when they do not fit into one.
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

    /// Sets one of the counters that the NF named, for what is no sum.
    pub fn set(&mut self, counter: usize, value: u64) {
        if counter < self.counters {
            self.ends.page().store(FIRST_COUNTER + counter, value);
        }
    }

    /// Shows the host what was given so far. [`Link::receive`] does that, too.
    pub fn flush(&mut self) {
        self.free_abandoned();
        self.ends.flush();
        self.ends.wake_others();
    }

    /// The next handler that somebody calls, of those that the NF named ([`Options::handler`]); to be answered by
    /// [`Link::answer`], within two seconds. Calls come while the NF receives and waits, and once more when it is to
    /// end: a loop of its own looks for them after both, and [`run`](crate::run) does that by itself.
    #[inline]
    pub fn next_call(&mut self) -> Option<Call> {
        self.ends.next_call()
    }

    /// Answers a call: what the handler says, up to 1 MiB, or nothing where it was written; or a sentence that says
    /// why not.
    pub fn answer(&mut self, call: Call, answer: Result<String, String>) {
        let known = self.handlers.iter().find(|handler| handler.name == call.handler());
        let merge = known.map_or(Merge::First, |handler| handler.merge);
        self.ends.answer(&call, answer.map(|text| (merge, text)));
    }

    /// Tells the operator something, in a sentence.
    pub fn tell(&self, text: &str) {
        self.ends.say(&FromNf::Finding { text: text.into() });
    }

    /// Gives back everything, drops what was received and not given, and ends.
    pub fn close(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.free_abandoned();
        let end = Instant::now() + PATIENCE;
        self.ends.leave_others();
        // What was enqueued and not fetched goes back, too.
        while !self.ends.is_backed_up() {
            let mut left = vec![];
            if self.ends.fetch_received(|_, received| left.push(received)) == 0 || Instant::now() > end {
                break;
            }
            left.iter().for_each(|received| self.ends.free_received(received, 0));
        }
        self.ends.close(PATIENCE);
    }

    /// Gives back what went out of scope.
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
