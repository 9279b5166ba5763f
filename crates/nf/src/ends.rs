//! An NF's ends of its rings: what the host lent, and what goes back.
//!
//! Descriptors here are [`Lent`] or, with what is known beside the bytes, [`shm::Packet`]s. Both can be copied: whoever
//! uses them sees to it that each goes back once ([`crate::Link`] does so by its types).

use crate::NfError;
use crate::attach::Attached;
use crate::message::{FromNf, ToNf, Welcome};
use crate::socket::Socket;
use shm::descriptor::HEADROOM;
use shm::page::Page;
use shm::ring::{Action, Claim, Consumer, Mapped, Producer, RingFile};
use shm::{Packet, Region};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Claims that are taken at a time.
const BURST: usize = 64;
/// The word of the page that says that the NF is alive.
pub const HEARTBEAT: usize = 0;
/// The first word of the page that is one of the NF's own counters.
pub const FIRST_COUNTER: usize = 8;

/// A packet that the host lent: what is needed to reach its bytes and to give it back. A [`Packet`] has four times the
/// bytes, and an NF passes them from hand to hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lent {
    /// Address of the slot's buffer in this process.
    pub buf: u64,
    /// The slot.
    pub slot: u32,
    /// The loan.
    pub generation: u32,
    /// First byte, from the buffer's start.
    pub data: u16,
    /// Bytes.
    pub len: u16,
    /// The region, as this process numbers them.
    pub region: u16,
}

impl Lent {
    fn of(packet: &Packet) -> Lent {
        let Packet { buf, slot, generation, data, len, region, .. } = *packet;
        Lent { buf, slot, generation, data, len: len as u16, region }
    }

    fn packet(self) -> Packet {
        let Lent { buf, slot, generation, data, len, region } = self;
        let len = u32::from(len);
        Packet { buf, slot, generation, data, len, total: len, region, ..Packet::EMPTY }
    }

    /// What is known of it beside its bytes, in the metadata block of its slot.
    pub fn parked(self) -> Option<Packet> {
        let Packet { data, len, total, generation, segments, .. } = self.packet();
        let parked = shm::unpark(self.region, self.slot)?;
        Some(Packet { data, len, total, generation, segments, ..parked })
    }
}

/// The ends.
#[derive(Debug)]
pub struct Ends {
    socket: Socket,
    welcome: Welcome,
    region: Arc<Region>,
    page: Page,
    from: Consumer<Mapped>,
    to: Producer<Mapped>,
    grants: Consumer<Mapped>,
    metadata: bool,
    /// Claims that did not fit into the ring.
    backlog: VecDeque<Claim>,
    /// Claims of the ring that are with the NF.
    working: usize,
    /// Empty slots to make packets in.
    granted: Vec<Lent>,
    /// Which slots were granted and are still here.
    is_granted: Vec<bool>,
    /// Which slots the host keeps for the NF, and how many.
    is_held: Vec<bool>,
    held: u64,
    beats: u64,
    /// The host asked for the end, or is gone.
    over: bool,
    /// The host's indices cannot be: nothing more is taken or given.
    broken: bool,
    _rings: RingFile<3>,
}

impl Ends {
    /// Of an NF that the host has welcomed. Packets come once it says [`FromNf::Ready`].
    pub fn new(attached: Attached) -> Ends {
        let Attached { socket, welcome, region, rings, page, metadata, .. } = attached;
        let [from, to, grants] = rings.rings();
        Ends {
            is_granted: vec![false; region.slots() as usize],
            is_held: vec![false; region.slots() as usize],
            held: 0,
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
            over: false,
            broken: false,
            _rings: rings,
        }
    }

    /// Says that the NF is ready.
    ///
    /// # Errors
    ///
    /// When the host has hung up.
    pub fn ready(&self) -> Result<(), NfError> {
        self.socket.send(&FromNf::Ready, &[])
    }

    /// What the host said.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Packet memory.
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The NF's counters.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Whether nothing more comes: the host asked for the end, hung up, or broke its rings.
    pub fn is_over(&self) -> bool {
        self.over || self.broken
    }

    /// Whether claims wait for room in the ring.
    pub fn is_backed_up(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Fetches what the host lent, up to 64 packets, each with the number of its input; how many. Whoever asks has
    /// given on, or keeps on purpose, what came before: its claims are released.
    pub fn fetch(&mut self, mut each: impl FnMut(u16, Packet)) -> usize {
        let metadata = self.metadata;
        self.fetch_lent(|input, lent| {
            let packet = if metadata { lent.parked() } else { Some(lent.packet()) };
            packet.into_iter().for_each(|packet| each(input, packet));
        })
    }

    /// The same, without what is known of packets beside their bytes.
    #[inline]
    pub fn fetch_lent(&mut self, mut each: impl FnMut(u16, Lent)) -> usize {
        self.flush();
        self.beats += 1;
        self.page.store(HEARTBEAT, self.beats);
        // What does not go out must not come in.
        if self.broken || !self.backlog.is_empty() {
            return 0;
        }
        if self.working > 0 {
            self.from.release(std::mem::take(&mut self.working));
        }
        let mut claims = [Claim::default(); BURST];
        let Ok(count) = self.from.take(&mut claims) else {
            self.broken = true;
            return 0;
        };
        self.working = count;
        // What another core wrote takes a while to come.
        let prefetch = if self.metadata { shm::prefetch } else { shm::prefetch_data };
        claims[..count].iter().for_each(|claim| prefetch(self.region.number(), claim.slot));
        for claim in &claims[..count] {
            if let Some(packet) = shm::claimed(self.region.number(), claim) {
                each(claim.destination, Lent::of(&packet));
            }
        }
        count
    }

    /// Whether packets come with metadata.
    pub fn has_metadata(&self) -> bool {
        self.metadata
    }

    /// Takes an empty slot to make a packet in; `None` when the host has granted no more.
    pub fn make(&mut self) -> Option<Packet> {
        if self.granted.is_empty() {
            self.take_grants();
        }
        let empty = Lent { data: HEADROOM as u16, len: 0, ..self.granted.pop()? };
        Some(Packet { handle: u64::from(empty.slot) + 1, ..empty.packet() })
    }

    /// The same, without what is known of packets beside their bytes: where there is such, it says nothing.
    pub fn make_lent(&mut self) -> Option<Lent> {
        let packet = self.make()?;
        (!self.metadata || shm::park(&packet)).then(|| Lent::of(&packet))
    }

    /// Empty slots that are there.
    pub fn granted(&mut self) -> usize {
        self.take_grants();
        self.granted.len()
    }

    fn take_grants(&mut self) {
        let mut claims = [Claim::default(); BURST];
        loop {
            let Ok(count) = self.grants.take(&mut claims) else {
                self.broken = true;
                return;
            };
            for claim in &claims[..count] {
                if let Some(packet) = shm::claimed(self.region.number(), claim) {
                    self.note_granted(claim.slot, true);
                    self.granted.push(Lent::of(&packet));
                }
            }
            // The host knows whose they are; nobody asks what was done to them.
            self.grants.release(count);
            if count < BURST {
                return;
            }
        }
    }

    /// Notes whether a slot is one that was granted.
    fn note_granted(&mut self, slot: u32, granted: bool) {
        if let Some(known) = self.is_granted.get_mut(slot as usize) {
            *known = granted;
        }
    }

    /// Takes a packet that is not needed any more: to be used again, or back to the host with the number of a
    /// reason.
    pub fn free(&mut self, packet: &Packet, reason: u16) {
        self.free_lent(&Lent::of(packet), reason);
    }

    /// The same.
    #[inline]
    pub fn free_lent(&mut self, lent: &Lent, reason: u16) {
        if self.is_granted.get(lent.slot as usize) == Some(&true) {
            self.granted.push(*lent);
        } else {
            self.give_lent(lent, Action::Drop, reason);
        }
    }

    /// Whether the host keeps one more packet for the NF.
    pub fn can_hold(&self) -> bool {
        self.held < self.welcome.quota
    }

    /// Has the host keep a packet that stays with the NF; false, and nothing said, when it keeps no more. One that is
    /// given later is kept no longer.
    pub fn hold(&mut self, lent: &Lent) -> bool {
        let can_hold = self.can_hold();
        let Some(held) = self.is_held.get_mut(lent.slot as usize) else { return false };
        // To hold it once more would be a bad claim.
        if !*held && can_hold {
            *held = true;
            self.held += 1;
            self.claim(lent, Action::Hold, 0);
        }
        self.is_held.get(lent.slot as usize) == Some(&true)
    }

    /// Gives a packet to the host, with what is known of it as it stands here. One that claims cannot speak of is
    /// dropped.
    pub fn give(&mut self, packet: &Packet, action: Action, destination: u16) {
        let fits = packet.segments == 1 && packet.len <= u32::from(u16::MAX);
        let whole = fits && (!self.metadata || shm::park(packet));
        let (action, destination) = if whole { (action, destination) } else { (Action::Drop, 0) };
        self.give_lent(&Lent::of(packet), action, destination);
    }

    /// Gives a packet to the host, with what stands in the metadata block of its slot.
    #[inline]
    pub fn give_lent(&mut self, lent: &Lent, action: Action, destination: u16) {
        if let Some(held) = self.is_held.get_mut(lent.slot as usize) {
            self.held -= u64::from(std::mem::take(held));
        }
        self.claim(lent, action, destination);
    }

    #[inline]
    fn claim(&mut self, lent: &Lent, action: Action, destination: u16) {
        self.note_granted(lent.slot, false);
        let Lent { slot, generation, data, len, .. } = *lent;
        let claim = Claim { slot, generation, data, len, action: action as u8, flags: 0, destination };
        if !self.backlog.is_empty() || self.to.write(&[claim]) != Ok(1) {
            self.backlog.push_back(claim);
        }
    }

    /// Shows the host what was given.
    pub fn flush(&mut self) {
        while let Some(claim) = self.backlog.front()
            && self.to.write(&[*claim]) == Ok(1)
        {
            self.backlog.pop_front();
        }
        self.to.publish();
    }

    /// Gives up the processor until something may have come, or for so long.
    pub fn sleep(&mut self, most: Duration) {
        if self.backlog.is_empty() {
            self.from.sleep(most);
        } else {
            // Nobody wakes an NF that waits for room.
            std::thread::sleep(most.min(Duration::from_micros(100)));
        }
    }

    /// Looks whether the host said something.
    pub fn listen(&mut self) {
        while !self.over {
            match self.socket.receive::<ToNf>(Duration::ZERO) {
                Ok(None) => return,
                Ok(Some((ToNf::Stop, _))) | Err(_) => self.over = true,
                Ok(Some(_)) => {}
            }
        }
    }

    /// Tells the host something beside the packets. One that does not listen misses it.
    pub fn say(&self, message: &FromNf) {
        let _ = self.socket.send(message, &[]);
    }

    /// Gives back what was granted and not used, and everything that waits for room, for so long.
    pub fn close(&mut self, patience: Duration) {
        self.take_grants();
        for lent in std::mem::take(&mut self.granted) {
            self.give_lent(&lent, Action::Drop, 0);
        }
        let end = std::time::Instant::now() + patience;
        self.flush();
        while !self.backlog.is_empty() && !self.broken && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_micros(100));
            self.flush();
        }
    }
}
