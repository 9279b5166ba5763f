//! An NF's ends of its rings: packets that the host enqueued, and packets that the NF returns.
//!
//! A packet is a [`Received`] here or, with its metadata, a [`shm::Packet`]. Both can be copied: the caller
//! must return each packet once ([`crate::Link`] ensures this by its types).

use crate::NfError;
use crate::attach::Attached;
use crate::direct::{Direct, Sent};
use crate::handler::{Call, Merge, Text};
use crate::message::{FromNf, ToNf, Welcome};
use crate::neighbours::Neighbours;
use crate::socket::Socket;
use shm::descriptor::HEADROOM;
use shm::page::Page;
use shm::ring::{Action, Consumer, Descriptor, Mapped, Producer, RingFile};
use shm::{Packet, PacketRegion};
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Descriptors that are taken at a time.
const BURST: usize = 64;
/// Bursts after which sleeping NFs of the direct-path group are woken; when no packet arrives, they are woken
/// at once.
const WAKE_AFTER: usize = 16;
/// The word of the page that contains the heartbeat.
pub const HEARTBEAT: usize = 0;
/// The first word of the page that is one of the NF's own counters.
pub const FIRST_COUNTER: usize = 8;

/// A packet that the host enqueued: the values that are needed to access its bytes and to return it. A
/// [`Packet`] is four times as large, and an NF copies these values often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Address of the slot's buffer in this process.
    pub buf: u64,
    /// The slot.
    pub slot: u32,
    /// The generation of the in-flight entry.
    pub generation: u32,
    /// First byte, from the buffer's start.
    pub data: u16,
    /// Bytes.
    pub len: u16,
    /// The number of the region in this process.
    pub region: u16,
}

impl Received {
    #[inline(always)]
    fn claimed(region: u16, descriptor: &Descriptor) -> Option<Received> {
        let Descriptor { slot, generation, data, len, .. } = *descriptor;
        Some(Received { buf: shm::buffer(region, slot)?, slot, generation, data, len, region })
    }

    fn of(packet: &Packet) -> Received {
        Received {
            buf: packet.buf(),
            slot: packet.slot(),
            generation: packet.generation(),
            data: packet.data(),
            len: packet.len() as u16,
            region: packet.region(),
        }
    }

    fn descriptor(self) -> Descriptor {
        let Received { slot, generation, data, len, .. } = self;
        Descriptor { slot, generation, data, len, ..Descriptor::default() }
    }

    /// The packet with its metadata, which is in the metadata block of its slot.
    pub fn parked(self) -> Option<Packet> {
        shm::claimed_with_metadata(self.region, &self.descriptor())
    }
}

/// Marks of a slot: the host keeps its packet for the NF; the slot was granted and is still with the NF; (in
/// a direct-path group) the NF has its packet; the packet is noted.
const HELD: u16 = 1;
const GRANTED: u16 = 2;
const HERE: u16 = 4;
const NOTED: u16 = 8;
/// The first bit of the packet's hop count.
const HOPS: u32 = 8;

/// An NF's ends of its rings.
#[derive(Debug)]
pub struct Ends {
    socket: Socket,
    welcome: Welcome,
    neighbours: Neighbours,
    region: Arc<PacketRegion>,
    page: Page,
    from: Consumer<Mapped>,
    to: Producer<Mapped>,
    grants: Consumer<Mapped>,
    metadata: bool,
    /// Descriptors that did not fit into the ring.
    backlog: VecDeque<Descriptor>,
    /// Descriptors of the ring that the NF has not released.
    working: usize,
    /// Empty slots to make packets in.
    granted: Vec<Received>,
    /// The marks of each slot (see above).
    marks: Vec<u16>,
    /// The number of packets that the host keeps for the NF.
    held: u64,
    /// The direct rings to and from other NFs of its direct-path group.
    direct: Option<Direct>,
    /// The descriptors that were taken last.
    last: Box<[Descriptor; BURST]>,
    last_count: usize,
    /// How many of them the last call returned.
    fetched: usize,
    /// In a direct-path group: the number of packets that the NF has.
    here: usize,
    /// Whether descriptors for the host wait until other NFs have taken earlier packets.
    closing: bool,
    /// Bursts since the other NFs were last woken.
    unwoken: usize,
    /// Descriptors of packets that are noted as this NF's and were sent.
    noted: Vec<Descriptor>,
    beats: u64,
    /// Handlers that the host called.
    calls: VecDeque<Call>,
    /// Whether the host has requested the end or closed the socket.
    over: bool,
    /// Whether the host wrote an impossible index: no more packets are taken or returned.
    broken: bool,
    _rings: RingFile<3>,
}

impl Ends {
    /// The ends of an NF that the host has welcomed. The host enqueues packets once it receives
    /// [`FromNf::Ready`].
    pub fn new(attached: Attached) -> Ends {
        let Attached { socket, welcome, region, rings, page, metadata, group, .. } = attached;
        let [from, to, grants] = rings.rings();
        let neighbours = Neighbours::new(welcome.l3_interfaces.clone());
        Ends {
            neighbours,
            marks: vec![0; region.slots() as usize],
            held: 0,
            direct: group.map(Direct::new),
            last: Box::new([Descriptor::default(); BURST]),
            last_count: 0,
            fetched: 0,
            here: 0,
            closing: false,
            unwoken: 0,
            noted: vec![],
            socket,
            welcome,
            region,
            page,
            from: Consumer::new(from),
            to: Producer::new(to),
            grants: Consumer::new(grants),
            metadata,
            backlog: VecDeque::new(),
            working: 0,
            granted: vec![],
            beats: 0,
            calls: VecDeque::new(),
            over: false,
            broken: false,
            _rings: rings,
        }
    }

    /// Reports to the host that the NF is ready.
    ///
    /// # Errors
    ///
    /// When the host has closed the socket.
    pub fn ready(&self) -> Result<(), NfError> {
        self.socket.send(&FromNf::Ready, &[])
    }

    /// The host's welcome message.
    #[inline]
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// The packet region.
    pub fn region(&self) -> &Arc<PacketRegion> {
        &self.region
    }

    /// The page with the NF's counters.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Whether the host enqueues no more packets: it requested the end, closed the socket, or broke its
    /// rings.
    pub fn is_over(&self) -> bool {
        self.over || self.broken
    }

    /// Whether descriptors wait for room in the ring.
    pub fn is_backed_up(&self) -> bool {
        !self.backlog.is_empty() || self.direct.as_ref().is_some_and(Direct::is_backed_up)
    }

    /// Fetches up to 64 packets that the host enqueued, each with the number of its input; returns how many.
    /// The descriptors of the previous call are released: the caller must have sent those packets or keep
    /// them on purpose.
    pub fn fetch(&mut self, mut each: impl FnMut(u16, Packet)) -> usize {
        let (input, region) = (self.fetch_claims(), self.region.number());
        self.prefetch();
        let claimed = if self.metadata { shm::claimed_with_metadata } else { shm::claimed };
        for descriptor in &self.last[..self.fetched] {
            if let Some(packet) = claimed(region, descriptor) {
                each(input.unwrap_or(descriptor.destination), packet);
            }
        }
        self.fetched
    }

    /// Prefetches the bytes, and the metadata where the NF uses them, of the packets that were fetched last.
    /// Another core wrote them.
    #[inline]
    fn prefetch(&self) {
        let prefetch = if self.metadata { shm::prefetch } else { shm::prefetch_data };
        self.last[..self.fetched]
            .iter()
            .for_each(|descriptor| prefetch(self.region.number(), descriptor.slot));
    }

    /// The same, without metadata.
    #[inline]
    pub fn fetch_received(&mut self, mut each: impl FnMut(u16, Received)) -> usize {
        self.fetch_all().for_each(|(input, received)| each(input, received));
        self.fetched
    }

    /// The same as an iterator. [`Ends::fetched`] returns their number.
    #[inline]
    pub fn fetch_all(&mut self) -> impl Iterator<Item = (u16, Received)> + '_ {
        let input = self.fetch_claims();
        self.prefetch();
        let (number, descriptors) = (self.region.number(), &self.last[..self.fetched]);
        descriptors.iter().filter_map(move |descriptor| {
            Some((input.unwrap_or(descriptor.destination), Received::claimed(number, descriptor)?))
        })
    }

    /// The number of packets that were fetched last.
    #[inline]
    pub fn fetched(&self) -> usize {
        self.fetched
    }

    /// Takes the next descriptors; returns their input if all have the same.
    #[inline]
    fn fetch_claims(&mut self) -> Option<u16> {
        self.fetched = 0;
        self.flush();
        self.beats += 1;
        self.page.store(HEARTBEAT, self.beats);
        // While packets wait for room in the ring to the host, no more are taken.
        if self.broken || !self.backlog.is_empty() {
            return None;
        }
        let input = match &self.direct {
            None => {
                self.last_count = self.take_enqueued();
                None
            }
            Some(_) => self.take_any(),
        };
        self.fetched = self.last_count;
        input
    }

    /// Takes packets that the host enqueued; returns how many.
    #[inline]
    fn take_enqueued(&mut self) -> usize {
        if self.working > 0 {
            self.from.release(std::mem::take(&mut self.working));
        }
        let Ok(count) = self.from.take(&mut self.last[..]) else {
            self.broken = true;
            return 0;
        };
        self.working = count;
        count
    }

    /// Takes packets from the host or from another NF; returns their input if all have the same.
    #[inline]
    fn take_any(&mut self) -> Option<u16> {
        self.let_go();
        let direct = self.direct.as_mut()?;
        let (waits, full) = (direct.is_backed_up(), direct.is_full());
        for _ in 0..=direct.entrances.len() {
            let Some(direct) = &mut self.direct else { break };
            let input = match direct.turn() {
                Some(turn) if !full => {
                    let input = direct.entrances.get(turn).map(|entrance| entrance.input);
                    self.last_count = direct.take(turn, &mut self.last[..], self.from.index());
                    input
                }
                // While packets wait for room in the ring to another NF, none are taken from the host.
                // Packets of other NFs are still taken: those NFs may be the ones whose rings are full.
                None if !waits => {
                    self.last_count = self.take_enqueued();
                    None
                }
                _ => continue,
            };
            if self.last_count > 0 {
                self.here += self.last_count;
                for descriptor in &self.last[..self.last_count] {
                    if let Some(marks) = self.marks.get_mut(descriptor.slot as usize) {
                        *marks = *marks & (HELD | GRANTED) | HERE | u16::from(descriptor.hops) << HOPS;
                    }
                }
                self.unwoken += 1;
                if self.unwoken >= WAKE_AFTER {
                    self.wake_others();
                }
                return input;
            }
        }
        self.wake_others();
        None
    }

    /// Wakes the sleeping NFs of the direct-path group that packets were sent to.
    pub fn wake_others(&mut self) {
        self.unwoken = 0;
        self.direct.iter_mut().for_each(Direct::wake);
    }

    /// Releases the descriptors of all rings. Packets that the NF still has are noted first.
    fn let_go(&mut self) {
        let Some(direct) = &mut self.direct else { return };
        if self.here > 0 {
            for descriptor in &self.last[..self.last_count] {
                if let Some(marks) = self.marks.get_mut(descriptor.slot as usize)
                    && *marks & HERE != 0
                {
                    *marks |= NOTED;
                    direct.record(descriptor);
                }
            }
        }
        self.last_count = 0;
        if self.working > 0 {
            self.from.release(std::mem::take(&mut self.working));
        }
        direct.release();
    }

    /// Whether packets have metadata.
    #[inline]
    pub fn has_metadata(&self) -> bool {
        self.metadata
    }

    /// Takes an empty slot for a new packet; `None` when the host has granted no more.
    pub fn make(&mut self) -> Option<Packet> {
        if self.granted.is_empty() {
            self.take_grants();
        }
        let empty = Received { data: HEADROOM as u16, len: 0, ..self.granted.pop()? };
        self.close_exits();
        shm::claimed(empty.region, &empty.descriptor())
    }

    /// The same, without metadata; a metadata block of the slot is reset.
    pub fn make_received(&mut self) -> Option<Received> {
        let packet = self.make()?;
        (!self.metadata || shm::park(&packet)).then(|| Received::of(&packet))
    }

    /// Has all packets pass through the host from now on. A packet that the NF made or kept must pass through
    /// the host, and must not overtake others.
    #[inline]
    fn close_exits(&mut self) {
        if let Some(direct) = &mut self.direct {
            self.closing |= direct.close_exits();
        }
    }

    /// The number of empty slots that the NF has.
    pub fn granted(&mut self) -> usize {
        self.take_grants();
        self.granted.len()
    }

    fn take_grants(&mut self) {
        let mut descriptors = [Descriptor::default(); BURST];
        loop {
            let Ok(count) = self.grants.take(&mut descriptors) else {
                self.broken = true;
                return;
            };
            for descriptor in &descriptors[..count] {
                if let Some(received) = Received::claimed(self.region.number(), descriptor) {
                    if let Some(marks) = self.marks.get_mut(descriptor.slot as usize) {
                        *marks |= GRANTED;
                    }
                    self.granted.push(received);
                }
            }
            // The host knows the owner of the slot without the descriptor.
            self.grants.release(count);
            if count < BURST {
                return;
            }
        }
    }

    #[inline]
    fn marks(&self, slot: u32) -> u16 {
        self.marks.get(slot as usize).copied().unwrap_or_default()
    }

    /// Frees a packet: a granted slot is reused; any other packet is returned to the host with the number of
    /// a drop reason.
    pub fn free(&mut self, packet: &Packet, reason: u16) {
        self.free_received(&Received::of(packet), reason);
    }

    /// The same for a received packet.
    #[inline]
    pub fn free_received(&mut self, received: &Received, reason: u16) {
        if self.marks(received.slot) & GRANTED != 0 {
            self.granted.push(*received);
        } else {
            self.give_received(received, Action::Drop, reason);
        }
    }

    /// Whether the host would keep one more packet for the NF.
    pub fn can_hold(&self) -> bool {
        self.held < self.welcome.quota
    }

    /// Has the host keep a packet that stays with the NF. False, without effect, when the quota is used up. A
    /// packet that is sent later is kept no longer.
    pub fn hold(&mut self, received: &Received) -> bool {
        let is_held = self.marks(received.slot) & HELD != 0;
        // Holding it again would be a bad descriptor.
        if is_held || !self.can_hold() {
            return is_held;
        }
        self.close_exits();
        self.give_received(received, Action::Hold, 0);
        if let Some(marks) = self.marks.get_mut(received.slot as usize) {
            *marks |= HELD;
            self.held += 1;
        }
        self.marks(received.slot) & HELD != 0
    }

    /// Returns a packet to the host with its metadata. A packet that a descriptor cannot describe is dropped.
    pub fn give(&mut self, packet: &Packet, action: Action, destination: u16) {
        let fits = packet.segments() == 1 && packet.len() <= u32::from(u16::MAX);
        let whole = fits && (!self.metadata || shm::park(packet));
        let (action, destination) = if whole { (action, destination) } else { (Action::Drop, 0) };
        self.give_received(&Received::of(packet), action, destination);
    }

    /// Sends a packet to the host, or to the NF at that output, with the contents of its metadata block.
    #[inline]
    pub fn give_received(&mut self, received: &Received, action: Action, destination: u16) {
        let Received { slot, generation, data, len, .. } = *received;
        let marks = self.marks.get_mut(slot as usize).map(std::mem::take).unwrap_or_default();
        let hops = ((marks >> HOPS) as u8).saturating_add(1);
        let descriptor = Descriptor { slot, generation, data, len, action: action as u8, hops, destination };
        if marks != 0 {
            self.held -= u64::from(marks & HELD);
            self.here -= usize::from(marks & HERE != 0);
        }
        if let Some(direct) = &mut self.direct
            && action == Action::Emit
            // A packet that is held or in a granted slot passes through the host.
            && marks & (HELD | GRANTED) == 0
        {
            match direct.send(descriptor) {
                Sent::Went if marks & NOTED == 0 => return,
                Sent::Went => return self.noted.push(descriptor),
                Sent::Waits => return self.keep(slot, marks),
                Sent::NotHere => {}
            }
        }
        if marks & NOTED != 0 {
            self.noted.push(descriptor);
        }
        self.return_to_host(descriptor);
    }

    /// Records that the NF still has a packet whose descriptor waits for room.
    #[cold]
    fn keep(&mut self, slot: u32, marks: u16) {
        if let Some(place) = self.marks.get_mut(slot as usize) {
            *place = marks | HERE;
            self.here += 1;
        }
    }

    #[inline(always)]
    fn return_to_host(&mut self, descriptor: Descriptor) {
        if self.closing || !self.backlog.is_empty() || self.to.write_one(descriptor) != Ok(true) {
            self.backlog.push_back(descriptor);
        }
    }

    /// Publishes all sent packets to the host and to other NFs.
    #[inline]
    pub fn flush(&mut self) {
        if self.closing {
            self.flush_direct();
            self.closing = self.direct.as_mut().is_some_and(|direct| !direct.is_drained());
            if self.closing {
                return;
            }
        }
        while let Some(descriptor) = self.backlog.front()
            && self.to.write(&[*descriptor]) == Ok(1)
        {
            self.backlog.pop_front();
        }
        self.to.publish();
        if self.direct.is_some() {
            self.flush_direct();
        }
    }

    fn flush_direct(&mut self) {
        let Some(direct) = &mut self.direct else { return };
        let (all, here, noted) = (&mut self.marks, &mut self.here, &mut self.noted);
        let mut leave = |descriptor: &Descriptor| {
            if let Some(marks) = all.get_mut(descriptor.slot as usize) {
                *here -= usize::from(*marks & HERE != 0);
                if *marks & NOTED != 0 {
                    noted.push(*descriptor);
                }
                *marks &= !(HERE | NOTED);
            }
        };
        let back = direct.flush(&mut leave);
        if !back.is_empty() {
            back.iter().for_each(&mut leave);
            back.into_iter().for_each(|descriptor| self.return_to_host(descriptor));
            self.to.publish();
        }
        // A packet that is not yet in a ring stays noted.
        if let Some(direct) =
            self.direct.as_ref().filter(|_| !self.noted.is_empty() && self.backlog.is_empty())
        {
            self.noted.drain(..).for_each(|descriptor| direct.forget(&descriptor));
        }
    }

    /// Sleeps until packets may have arrived, or for the given time at most.
    pub fn sleep(&mut self, most: Duration) {
        self.flush();
        if !self.is_backed_up() {
            self.let_go();
            self.wake_others();
            let entrances = self.direct.iter_mut().flat_map(|direct| &mut direct.entrances);
            let others = entrances.map(|entrance| &mut entrance.from);
            Consumer::sleep_on(std::iter::once(&mut self.from).chain(others), most);
        } else {
            // No ring wakes an NF that waits for room.
            std::thread::sleep(most.min(Duration::from_micros(100)));
        }
    }

    /// Takes no more packets from other NFs, because the NF ends.
    pub fn leave_others(&mut self) {
        self.flush();
        self.let_go();
        self.direct.iter_mut().for_each(Direct::leave);
    }

    /// Receives messages of the host.
    pub fn listen(&mut self) {
        while !self.over {
            match self.socket.receive::<ToNf>(Duration::ZERO) {
                Ok(None) => return,
                Ok(Some((ToNf::Stop, _))) | Err(_) => self.over = true,
                Ok(Some((ToNf::Direct { ring: way, input, descriptors, index }, files))) => {
                    if let (Some(direct), Some(file)) = (&mut self.direct, files.into_iter().next())
                        && let Err(error) =
                            direct.open((way, input), (file, descriptors), index, self.from.published())
                    {
                        self.say(&FromNf::Finding { text: error.to_string() });
                    }
                }
                Ok(Some((ToNf::Neighbours { changes }, _))) => self.neighbours.learn(changes),
                Ok(Some((ToNf::Call { call: number, handler, value, last: is_last }, files))) => {
                    let value = value.map(|value| value.unpack(files)).transpose();
                    match value {
                        Ok(value) => self.calls.push_back(Call { number, handler, value, is_last }),
                        Err(why) => self.say(&FromNf::Refusal { call: number, why }),
                    }
                }
                Ok(Some(_)) => {}
            }
        }
    }

    /// The NF's table of neighbours.
    #[inline]
    pub fn neighbours(&mut self) -> &mut Neighbours {
        &mut self.neighbours
    }

    /// The same, read-only.
    #[inline]
    pub fn known_neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Sends the pending requests for neighbours to the host.
    pub fn attend_neighbours(&mut self) {
        let socket = &self.socket;
        self.neighbours.attend(|message| socket.send(message, &[]).is_ok());
    }

    /// The next handler that the host called.
    #[inline]
    pub fn next_call(&mut self) -> Option<Call> {
        self.calls.pop_front()
    }

    /// Answers a call: with the handler's value and how to merge it with those of other processes, or with
    /// the reason of a failure.
    pub fn answer(&self, call: &Call, answer: Result<(Merge, String), String>) {
        let call = call.number;
        let packed = answer.and_then(|(merge, text)| Ok((merge, Text::pack(text)?)));
        let (message, file) = match packed {
            Ok((merge, (text, file))) => (FromNf::Answer { call, text, merge }, file),
            Err(why) => (FromNf::Refusal { call, why: cut(why) }, None),
        };
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        let _ = self.socket.send(&message, &files);
    }

    /// Sends a message to the host. If the host does not read from the socket, the message is lost.
    pub fn say(&self, message: &FromNf) {
        let _ = self.socket.send(message, &[]);
    }

    /// Returns unused granted slots, and for up to `patience` all packets that wait for room.
    pub fn close(&mut self, patience: Duration) {
        self.take_grants();
        for received in std::mem::take(&mut self.granted) {
            self.give_received(&received, Action::Drop, 0);
        }
        let end = std::time::Instant::now() + patience;
        self.flush();
        while self.is_backed_up() && !self.broken && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_micros(100));
            self.flush();
        }
        self.wake_others();
    }
}

/// Cuts a text so that a message has room for it with every character escaped.
fn cut(mut text: String) -> String {
    const MOST_BYTES: usize = 4 << 10;
    text.truncate(text.floor_char_boundary(MOST_BYTES));
    text
}
