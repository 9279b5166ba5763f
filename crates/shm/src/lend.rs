//! Lending packets to an NF: the host's end of an NF's rings.
//!
//! A packet that is lent lies in its slot, with its descriptor parked in front of it, and the private
//! [`Loans`] say who holds it. What comes back is a claim: the slot must be one that this NF holds, in the
//! loan that the ledger knows, and the descriptor must be one that can be. Then, and only then, the ledger
//! says that the host holds it again, and a second claim on it is a bad one. What only the host may know of a
//! packet (its pool's handle) never lies where an NF can write it.
//!
//! When an NF has died, [`Lender::bury`] finds every slot that it held, each once: what stands in the ring
//! from the NF came back, what the NF had not taken is untouched, the rest is lost with it. It must not be
//! called before nothing of the NF runs any more.

use crate::descriptor::{BUF_BYTES, NO_HEADER, Packet, PacketType, flag};
use crate::ledger::{ClaimError, HOST, Ledger};
use crate::ring::{Action, Broken, Cells, Claim, Consumer, Producer};
use crate::slot::{buffer, park, prefetch, unpark};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Claims that are looked at at a time.
const BURST: usize = 64;

/// Who holds each slot of a region, and what the host knows of the packets that are lent. Private to the
/// host; shared by all that lend out of a region. Whoever has a slot at the moment writes its entry.
#[derive(Debug)]
pub struct Loans {
    ledger: Ledger,
    kept: Box<[Kept]>,
}

/// What the host keeps of a packet that is lent.
#[derive(Debug, Default)]
struct Kept {
    handle: AtomicU64,
    generation: AtomicU32,
    granted: AtomicBool,
}

/// The destination of a claim on an empty slot that an NF may make a packet in.
pub const GRANT: u16 = u16::MAX;

/// A packet that was lent.
#[derive(Clone, Copy, Debug)]
pub struct Lent {
    /// The packet.
    pub packet: Packet,
    /// Whether it was an empty slot that was granted: then it is no packet that came in.
    pub granted: bool,
}

impl Loans {
    /// Of a region's slots, none of which is lent.
    pub fn new(slots: u32) -> Loans {
        Loans { ledger: Ledger::new(slots), kept: (0..slots).map(|_| Kept::default()).collect() }
    }

    /// Which loan each slot is in, and who has it.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Notes a loan; its number.
    #[inline]
    fn begin(&self, packet: &Packet, holder: u16, granted: bool) -> Option<u32> {
        let kept = self.kept.get(packet.slot as usize)?;
        if self.ledger.holder(packet.slot) != Some(HOST) {
            return None;
        }
        kept.handle.store(packet.handle, Relaxed);
        kept.generation.store(packet.generation, Relaxed);
        kept.granted.store(granted, Relaxed);
        self.ledger.grant(packet.slot, holder);
        Some(self.ledger.generation(packet.slot))
    }

    /// Ends a loan; the packet as the host knows it, with nothing that an NF can write.
    #[inline]
    fn end(&self, region: u16, slot: u32) -> Lent {
        self.ledger.end(slot, self.ledger.generation(slot));
        self.ledger.grant(slot, HOST);
        let buf = buffer(region, slot).unwrap_or(0);
        let mut packet = Packet { buf, slot, region, ..Packet::EMPTY };
        let mut granted = false;
        if let Some(kept) = self.kept.get(slot as usize) {
            packet.handle = kept.handle.load(Relaxed);
            packet.generation = kept.generation.load(Relaxed);
            granted = kept.granted.load(Relaxed);
        }
        Lent { packet, granted }
    }
}

/// A packet that an NF gave back.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// The packet, as the NF left it, with everything checked that the host relies on.
    pub packet: Packet,
    /// What is to happen to it.
    pub action: Action,
    /// Where it goes, depending on the action.
    pub destination: u16,
    /// Whether it was made in an empty slot that was granted.
    pub granted: bool,
}

/// What an NF did, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LendStats {
    /// Packets lent.
    pub lent: u64,
    /// Packets that came back by good claims.
    pub returned: u64,
    /// Packets that an NF held when it died and had taken: they are lost.
    pub lost: u64,
    /// Packets that an NF held when it died and had not taken.
    pub untouched: u64,
    /// Claims on slots that there are not.
    pub out_of_range: u64,
    /// Claims on lives of slots that are over.
    pub stale: u64,
    /// Claims on slots that somebody else holds, those given back twice among them.
    pub not_held: u64,
    /// Good claims with a descriptor that cannot be: the packet came back, and is dropped.
    pub malformed: u64,
    /// Times that one of the NF's indices could not be.
    pub broken: u64,
}

/// What a dead NF held.
#[derive(Debug, Default)]
pub struct Estate {
    /// Packets that it had given back.
    pub returned: Vec<Returned>,
    /// Packets that it had not taken, oldest first.
    pub untouched: Vec<Lent>,
    /// Packets that it had taken: nobody knows what it did to them. To be freed.
    pub lost: Vec<Lent>,
}

/// The host's end of one NF.
#[derive(Debug)]
pub struct Lender<C> {
    to: Producer<C>,
    /// Of empty slots: they must not wait behind packets that wait for them.
    grants: Option<Producer<C>>,
    from: Consumer<C>,
    holder: u16,
    region: u16,
    /// Packets that the NF may hold.
    most: u64,
    stats: LendStats,
}

impl<C: Cells> Lender<C> {
    /// Over two new rings, to an NF that the ledger knows as `holder` and that sees the slots of `region`.
    pub fn new(to: C, from: C, holder: u16, region: u16) -> Lender<C> {
        let (to, from) = (Producer::new(to), Consumer::new(from));
        Lender { to, grants: None, from, holder, region, most: u64::MAX, stats: LendStats::default() }
    }

    /// With a limit to the packets that the NF holds at a time: the ring is no limit to an NF that takes and
    /// does not give. Empty slots that are granted count, too, and are not limited.
    #[must_use]
    pub fn limited_to(mut self, most: u64) -> Lender<C> {
        self.most = most;
        self
    }

    /// With a third new ring, by which empty slots are granted.
    #[must_use]
    pub fn with_grants(mut self, grants: C) -> Lender<C> {
        self.grants = Some(Producer::new(grants));
        self
    }

    /// What was counted.
    pub fn stats(&self) -> LendStats {
        self.stats
    }

    /// Claims that were no good.
    pub fn bad_claims(&self) -> u64 {
        let LendStats { out_of_range, stale, not_held, malformed, .. } = self.stats;
        out_of_range + stale + not_held + malformed
    }

    /// Slots that the NF holds, as far as the books say.
    #[inline]
    pub fn held(&self) -> u64 {
        let LendStats { lent, returned, lost, untouched, malformed, .. } = self.stats;
        lent.saturating_sub(returned + lost + untouched + malformed)
    }

    /// Lends packets of one segment, the front ones of the list, as many as fit, with a number that the NF
    /// reads; how many, and whether the NF sleeps and is to be woken. Stops in front of a packet that has
    /// several segments, or no slot of the region that is the host's to lend. With [`GRANT`] as the number,
    /// packets are empty slots for the NF to fill.
    ///
    /// # Errors
    ///
    /// When the NF's index cannot be: it is to be evicted.
    #[inline]
    pub fn lend(
        &mut self,
        loans: &Loans,
        packets: &[Packet],
        list: &[u16],
        destination: u16,
    ) -> Result<(usize, bool), Broken> {
        let granted = destination == GRANT;
        let free = if granted { u64::MAX } else { self.most.saturating_sub(self.held()) };
        let free = usize::try_from(free).unwrap_or(usize::MAX);
        let to = match &mut self.grants {
            Some(grants) if granted => grants,
            _ => &mut self.to,
        };
        let room = to.room(list.len()).inspect_err(|_| self.stats.broken += 1)?;
        let mut lent = 0;
        for &index in list.iter().take(room.min(free)) {
            let Some(packet) = packets.get(usize::from(index)) else { break };
            // Parked without what is nobody else's business.
            let parked = Packet { handle: 0, generation: 0, ..*packet };
            if packet.region != self.region || packet.segments != 1 || !park(&parked) {
                break;
            }
            let Some(generation) = loans.begin(packet, self.holder, granted) else { break };
            let (slot, data, len) = (packet.slot, packet.data, packet.len as u16);
            let claim = Claim { slot, generation, data, len, destination, ..Claim::default() };
            // There is room: it was asked for.
            to.write(&[claim])?;
            lent += 1;
        }
        self.stats.lent += lent as u64;
        Ok((lent, to.publish()))
    }

    /// Takes back what the NF gave, at most as much as `out` has room for. Bad claims are counted and passed
    /// over.
    ///
    /// # Errors
    ///
    /// When the NF's index cannot be: it is to be evicted.
    #[inline]
    pub fn take_back(&mut self, loans: &Loans, out: &mut Vec<Returned>) -> Result<usize, Broken> {
        self.take_back_most(loans, out, out.capacity() - out.len())
    }

    /// The same of at most so many claims, good or bad: an NF that goes on and on giving bad ones must not keep
    /// its host here.
    #[inline]
    fn take_back_most(
        &mut self,
        loans: &Loans,
        out: &mut Vec<Returned>,
        most: usize,
    ) -> Result<usize, Broken> {
        let (before, mut left) = (out.len(), most);
        while left > 0 {
            let mut claims = [Claim::default(); BURST];
            let room = left.min(BURST);
            let count = self.from.take(&mut claims[..room]).inspect_err(|_| self.stats.broken += 1)?;
            claims[..count].iter().for_each(|claim| prefetch(self.region, claim.slot));
            for claim in &claims[..count] {
                out.extend(self.accept(loans, claim));
            }
            // Ours now: should this process die, all slots die with it.
            self.from.release(count);
            left -= count;
            if count < room {
                break;
            }
        }
        Ok(out.len() - before)
    }

    /// Ends the loan of a good claim: the slot is the host's from here on. The packet as the NF left it, where it
    /// can be one, and as the host knows it.
    #[inline]
    fn reclaim(&self, loans: &Loans, claim: &Claim) -> Result<(Option<Packet>, Lent), ClaimError> {
        loans.ledger.check(claim.slot, claim.generation, self.holder)?;
        let own = loans.end(self.region, claim.slot);
        // One read of what the NF can write, then only the copy is used.
        let parked = unpark(self.region, claim.slot);
        Ok((parked.and_then(|parked| sound(parked, claim, &own.packet)), own))
    }

    /// Takes a packet back by a claim; `None` when that is a bad one.
    #[inline]
    fn accept(&mut self, loans: &Loans, claim: &Claim) -> Option<Returned> {
        let (packet, Lent { packet: own, granted }) = match self.reclaim(loans, claim) {
            Ok(reclaimed) => reclaimed,
            Err(error) => {
                *match error {
                    ClaimError::OutOfRange { .. } => &mut self.stats.out_of_range,
                    ClaimError::Stale { .. } => &mut self.stats.stale,
                    ClaimError::NotHolder { .. } => &mut self.stats.not_held,
                } += 1;
                return None;
            }
        };
        let (Some(packet), Some(action)) = (packet, Action::from_number(claim.action)) else {
            self.stats.malformed += 1;
            // It is a packet of ours all the same, and somebody has to free it.
            return Some(Returned { packet: own, action: Action::Drop, destination: 0, granted });
        };
        self.stats.returned += 1;
        Some(Returned { packet, action, destination: claim.destination, granted })
    }

    /// Collects what a dead NF held. Afterwards it holds nothing, and the rings are of no more use.
    pub fn bury(&mut self, loans: &Loans) -> Estate {
        let mut estate = Estate::default();
        // The downstream ring wins: what stands there came back. Where its index cannot be, nothing does.
        let most = self.from.cells().capacity() as usize;
        let _ = self.take_back_most(loans, &mut estate.returned, most);
        let found = self.to.autopsy();
        for claim in self.to.untouched(found) {
            match self.reclaim(loans, &claim) {
                Ok((Some(packet), own)) => estate.untouched.push(Lent { packet, ..own }),
                Ok((None, own)) => estate.lost.push(own),
                // History, or scribbled over.
                Err(_) => {}
            }
        }
        self.stats.untouched += estate.untouched.len() as u64;
        for slot in loans.ledger.held_by(self.holder) {
            estate.lost.push(loans.end(self.region, slot));
        }
        self.stats.lost += estate.lost.len() as u64;
        estate
    }
}

impl Lender<crate::ring::Mapped> {
    /// Wakes the NF: for when [`Lender::lend`] says that it sleeps. A system call.
    #[cold]
    pub fn wake(&self) {
        self.to.wake();
    }
}

/// A descriptor that an NF left, when it can be one: what the host knows better is set, what it relies on is
/// checked, what cannot be is unset.
#[inline]
fn sound(parked: Packet, claim: &Claim, own: &Packet) -> Option<Packet> {
    if usize::from(claim.data) + usize::from(claim.len) > BUF_BYTES {
        return None;
    }
    let header = |at: u16| if usize::from(at) > BUF_BYTES { NO_HEADER } else { at };
    Some(Packet {
        data: claim.data,
        mac: header(parked.mac),
        net: header(parked.net),
        trans: header(parked.trans),
        len: u32::from(claim.len),
        total: u32::from(claim.len),
        anno: parked.anno,
        timestamp_ns: parked.timestamp_ns,
        flow_hash: parked.flow_hash,
        origin: parked.origin,
        flags: parked.flags & (flag::PARTIAL_CHECKSUM | flag::GSO),
        packet_type: parked.packet_type.min(PacketType::Outgoing as u8),
        ..*own
    })
}
