//! An NF's ends of its rings: what the host lent, and what goes back.
//!
//! Descriptors here are [`shm::Packet`]s, which can be copied: whoever uses them sees to it that each goes back
//! once ([`crate::Link`] does so by its types).

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
    granted: Vec<Packet>,
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
            if let Some(packet) = self.claimed(claim) {
                each(claim.destination, packet);
            }
        }
        count
    }

    /// The packet that the host claims.
    fn claimed(&self, claim: &Claim) -> Option<Packet> {
        let number = self.region.number();
        let bare = shm::claimed(number, claim)?;
        if !self.metadata {
            return Some(bare);
        }
        let Packet { data, len, total, generation, segments, .. } = bare;
        let parked = shm::unpark(number, claim.slot)?;
        Some(Packet { data, len, total, generation, segments, ..parked })
    }

    /// Takes an empty slot to make a packet in; `None` when the host has granted no more.
    pub fn make(&mut self) -> Option<Packet> {
        if self.granted.is_empty() {
            self.take_grants();
        }
        let Packet { buf, handle, slot, generation, region, .. } = self.granted.pop()?;
        Some(Packet { buf, handle, data: HEADROOM as u16, slot, generation, region, ..Packet::EMPTY })
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
                if let Some(packet) = self.claimed(claim) {
                    self.note_granted(claim.slot, true);
                    self.granted.push(packet);
                }
            }
            // The ledger knows whose they are; nobody asks what was done to them.
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
        if self.is_granted.get(packet.slot as usize) == Some(&true) {
            self.granted.push(*packet);
        } else {
            self.give(packet, Action::Drop, reason);
        }
    }

    /// Whether the host keeps one more packet for the NF.
    pub fn can_hold(&self) -> bool {
        self.held < self.welcome.quota
    }

    /// Has the host keep a packet that stays with the NF; false, and nothing said, when it keeps no more. One that is
    /// given later is kept no longer.
    pub fn hold(&mut self, packet: &Packet) -> bool {
        let can_hold = self.can_hold();
        let Some(held) = self.is_held.get_mut(packet.slot as usize) else { return false };
        // To hold it once more would be a bad claim.
        if !*held && can_hold {
            *held = true;
            self.held += 1;
            self.claim(packet, Action::Hold, 0);
        }
        self.is_held.get(packet.slot as usize) == Some(&true)
    }

    /// Gives a packet to the host.
    pub fn give(&mut self, packet: &Packet, action: Action, destination: u16) {
        if let Some(held) = self.is_held.get_mut(packet.slot as usize) {
            self.held -= u64::from(std::mem::take(held));
        }
        self.claim(packet, action, destination);
    }

    fn claim(&mut self, packet: &Packet, action: Action, destination: u16) {
        self.note_granted(packet.slot, false);
        // Its descriptor as the NF left it.
        let fits = packet.segments == 1 && packet.len <= u32::from(u16::MAX);
        let whole = fits && (!self.metadata || shm::park(packet));
        let claim = Claim {
            slot: packet.slot,
            generation: packet.generation,
            data: packet.data,
            len: packet.len as u16,
            action: if whole { action } else { Action::Drop } as u8,
            flags: 0,
            destination: if whole { destination } else { 0 },
        };
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
        for packet in std::mem::take(&mut self.granted) {
            self.give(&packet, Action::Drop, 0);
        }
        let end = std::time::Instant::now() + patience;
        self.flush();
        while !self.backlog.is_empty() && !self.broken && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_micros(100));
            self.flush();
        }
    }
}
