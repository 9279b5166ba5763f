//! Lending packets to an NF: the host's end of an NF's two rings.
//!
//! A packet that is lent lies in its slot, with its descriptor parked in front of it, and the private
//! [`Ledger`] says who holds it. What comes back is a claim: the slot must be one that this NF holds, in the
//! life that the ledger knows, and the descriptor must be one that can be. Then, and only then, the ledger
//! says that the host holds it again, and a second claim on it is a bad one.
//!
//! When an NF has died, [`Lender::bury`] finds every slot that it held, each once: what stands in the ring
//! from the NF came back, what the NF had not taken is untouched, the rest is lost with it. It must not be
//! called before nothing of the NF runs any more.

use crate::descriptor::{BUF_BYTES, LAYOUT_VERSION, NO_HEADER, Packet, PacketType, flag};
use crate::ledger::{ClaimError, HOST, Ledger};
use crate::ring::{Action, Broken, Cells, Claim, Consumer, Producer};
use crate::slot::{park, unpark};

/// Claims that are looked at at a time.
const BURST: usize = 64;

/// A packet that an NF gave back.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// The packet, as the NF left it, with everything checked that the host relies on.
    pub packet: Packet,
    /// What is to happen to it.
    pub action: Action,
    /// Where it goes, depending on the action.
    pub destination: u16,
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
    pub untouched: Vec<Packet>,
    /// Packets that it had taken: nobody knows what it did to them. To be freed.
    pub lost: Vec<Packet>,
}

/// The host's end of one NF.
#[derive(Debug)]
pub struct Lender<C> {
    to: Producer<C>,
    from: Consumer<C>,
    holder: u16,
    region: u16,
    stats: LendStats,
}

impl<C: Cells> Lender<C> {
    /// Over two new rings, to an NF that the ledger knows as `holder` and that sees the slots of `region`.
    pub fn new(to: C, from: C, holder: u16, region: u16) -> Lender<C> {
        let (to, from) = (Producer::new(to), Consumer::new(from));
        Lender { to, from, holder, region, stats: LendStats::default() }
    }

    /// What was counted.
    pub fn stats(&self) -> LendStats {
        self.stats
    }

    /// Slots that the NF holds, as far as the books say.
    pub fn held(&self) -> u64 {
        let LendStats { lent, returned, lost, untouched, malformed, .. } = self.stats;
        lent.saturating_sub(returned + lost + untouched + malformed)
    }

    /// Lends packets of one segment, the front ones of the list, as many as fit; how many, and whether the NF
    /// sleeps and is to be woken. Stops in front of a packet that is no slot of the region in its present
    /// life, which is a mistake of the caller.
    ///
    /// # Errors
    ///
    /// When the NF's index cannot be: it is to be evicted.
    pub fn lend(
        &mut self,
        ledger: &Ledger,
        packets: &[Packet],
        list: &[u16],
    ) -> Result<(usize, bool), Broken> {
        let room = self.to.room(list.len()).inspect_err(|_| self.stats.broken += 1)?;
        let mut lent = 0;
        for &index in list.iter().take(room) {
            let Some(packet) = packets.get(usize::from(index)) else { break };
            let own = packet.region == self.region && packet.segments == 1;
            if !own || ledger.check(packet.slot, packet.generation, HOST).is_err() || !park(packet) {
                break;
            }
            ledger.grant(packet.slot, self.holder);
            let claim = Claim {
                slot: packet.slot,
                generation: packet.generation,
                data: packet.data,
                len: packet.len as u16,
                ..Claim::default()
            };
            // There is room: it was asked for.
            self.to.write(&[claim])?;
            lent += 1;
        }
        self.stats.lent += lent as u64;
        Ok((lent, self.to.publish()))
    }

    /// Takes back what the NF gave, at most as much as `out` has room for. Bad claims are counted and passed
    /// over.
    ///
    /// # Errors
    ///
    /// When the NF's index cannot be: it is to be evicted.
    pub fn take_back(&mut self, ledger: &Ledger, out: &mut Vec<Returned>) -> Result<usize, Broken> {
        let before = out.len();
        while out.len() < out.capacity() {
            let mut claims = [Claim::default(); BURST];
            let room = (out.capacity() - out.len()).min(BURST);
            let count = self.from.take(&mut claims[..room]).inspect_err(|_| self.stats.broken += 1)?;
            for claim in &claims[..count] {
                out.extend(self.accept(ledger, claim));
            }
            // Ours now: should this process die, all slots die with it.
            self.from.release(count);
            if count < room {
                break;
            }
        }
        Ok(out.len() - before)
    }

    /// Checks a claim; the slot is the host's from here on when it is a good one.
    fn accept(&mut self, ledger: &Ledger, claim: &Claim) -> Option<Returned> {
        match ledger.check(claim.slot, claim.generation, self.holder) {
            Ok(()) => {}
            Err(ClaimError::OutOfRange { .. }) => {
                self.stats.out_of_range += 1;
                return None;
            }
            Err(ClaimError::Stale { .. }) => {
                self.stats.stale += 1;
                return None;
            }
            Err(ClaimError::NotHolder { .. }) => {
                self.stats.not_held += 1;
                return None;
            }
        }
        ledger.grant(claim.slot, HOST);
        // One read of what the NF can write, then only the copy is used.
        let parked = unpark(self.region, claim.slot)?;
        let packet = sound(parked, claim);
        let action = Action::from_number(claim.action);
        let (Some(packet), Some(action)) = (packet, action) else {
            self.stats.malformed += 1;
            // It is a packet of ours all the same, and somebody has to free it.
            let packet = Packet {
                slot: claim.slot,
                generation: claim.generation,
                region: self.region,
                ..Packet::EMPTY
            };
            return Some(Returned { packet, action: Action::Drop, destination: 0 });
        };
        self.stats.returned += 1;
        Some(Returned { packet, action, destination: claim.destination })
    }

    /// Collects what a dead NF held. Afterwards it holds nothing, and the rings are of no more use.
    pub fn bury(&mut self, ledger: &Ledger) -> Estate {
        let mut estate = Estate::default();
        estate.returned.reserve(self.held() as usize + 1);
        // The downstream ring wins: what stands there came back. Where its index cannot be, nothing does.
        let _ = self.take_back(ledger, &mut estate.returned);
        let found = self.to.autopsy();
        for claim in self.to.untouched(found) {
            if ledger.check(claim.slot, claim.generation, self.holder).is_err() {
                continue;
            }
            if let Some(packet) = unpark(self.region, claim.slot).and_then(|parked| sound(parked, &claim)) {
                ledger.grant(claim.slot, HOST);
                estate.untouched.push(packet);
            }
        }
        self.stats.untouched += estate.untouched.len() as u64;
        for slot in ledger.held_by(self.holder) {
            ledger.grant(slot, HOST);
            let generation = ledger.generation(slot);
            estate.lost.push(Packet { slot, generation, region: self.region, ..Packet::EMPTY });
        }
        self.stats.lost += estate.lost.len() as u64;
        estate
    }
}

/// A descriptor that an NF left, when it can be one: what the host knows better is set, what it relies on is
/// checked, what cannot be is unset.
fn sound(parked: Packet, claim: &Claim) -> Option<Packet> {
    if usize::from(claim.data) + usize::from(claim.len) > BUF_BYTES {
        return None;
    }
    let header = |at: u16| if usize::from(at) > BUF_BYTES { NO_HEADER } else { at };
    Some(Packet {
        handle: u64::from(claim.slot) + 1,
        data: claim.data,
        mac: header(parked.mac),
        net: header(parked.net),
        trans: header(parked.trans),
        len: u32::from(claim.len),
        total: u32::from(claim.len),
        flags: parked.flags & (flag::PARTIAL_CHECKSUM | flag::GSO),
        next: 0,
        segments: 1,
        packet_type: parked.packet_type.min(PacketType::Outgoing as u8),
        reserved0: 0,
        generation: claim.generation,
        version: LAYOUT_VERSION,
        reserved1: 0,
        ..parked
    })
}
