//! The bytes that a packet is known to have: after each header, and as headroom in front.
//!
//! The analysis keeps two facts about bytes. *Accessible*: a test has once shown that the bytes are there.
//! Cutting the packet's tail does not remove them from its slot. *In the packet*: the bytes are between the
//! header and the current end of the first segment. Only bytes in the packet can be pulled for certain, and
//! only pulled bytes become headroom.
//!
//! All numbers are lower bounds. The caller reports tests ([`Extent::need`], [`Extent::free`]);
//! [`Extent::pass`] derives the effect of an instruction, [`Extent::after`] that of a block's end.

use crate::program::{BlockId, Inst, Program, Term, Value};
use packet::field::Base;

/// Greater distances are not kept.
const FAR: i32 = 1 << 16;

/// The known extent of a packet at one point of a program; by default nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extent {
    accessible: [u32; 4],
    in_packet: [u32; 4],
    /// How far each other base is behind the packet's first byte, where that is known: what a test shows to be behind that
    /// is behind the base, too.
    behind_data: [Option<i32>; 4],
    room: u32,
}

impl Extent {
    /// Bytes from a base that may be accessed.
    pub fn accessible(&self, base: Base) -> u32 {
        self.accessible[base as usize]
    }

    /// Bytes from a base to the end of the first segment, at least.
    pub fn in_packet(&self, base: Base) -> u32 {
        self.in_packet[base as usize]
    }

    /// Headroom, at least.
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Records that a test has shown that many bytes from a base to be in the first segment.
    pub fn need(&mut self, base: Base, bytes: u16) {
        for known in [&mut self.accessible, &mut self.in_packet] {
            known[base as usize] = known[base as usize].max(u32::from(bytes));
            for (other, behind) in known.iter_mut().zip(self.behind_data).filter(|_| base == Base::Data) {
                let there = behind.map(|behind| i32::from(bytes) - behind);
                *other = (*other).max(there.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0));
            }
        }
    }

    /// The packet's first byte moves, by a distance that may be known.
    fn move_data(&mut self, by: Option<i32>) {
        for behind in &mut self.behind_data {
            *behind =
                behind.zip(by).and_then(|(behind, by)| behind.checked_sub(by)).filter(|at| at.abs() < FAR);
        }
    }

    /// Records that a test has shown that much headroom to be free.
    pub fn free(&mut self, bytes: u16) {
        self.room = self.room.max(u32::from(bytes));
    }

    /// Keeps only the facts that hold on another path, too.
    pub fn meet(&mut self, other: &Extent) {
        let all = self.accessible.iter_mut().chain(&mut self.in_packet);
        for (mine, theirs) in all.zip(other.accessible.iter().chain(&other.in_packet)) {
            *mine = (*mine).min(*theirs);
        }
        for (mine, theirs) in self.behind_data.iter_mut().zip(other.behind_data) {
            *mine = mine.filter(|mine| theirs == Some(*mine));
        }
        self.room = self.room.min(other.room);
    }

    /// Updates the facts for an instruction; `number` returns the values that are known.
    pub fn pass(&mut self, inst: Inst, number: impl Fn(Value) -> Option<u64>) {
        match inst {
            Inst::SetBase(base, by) => self.set_base(base, number(by)),
            Inst::ClearBase(base) => self.clear_base(base),
            Inst::Pull(by) => self.pull(number(by)),
            Inst::Push(bytes) => self.push(bytes),
            Inst::Take(most) => self.take(number(most)),
            _ => {}
        }
    }

    /// The facts at a successor of a block, by its index: the first successor of a test has what it tests.
    #[must_use]
    pub fn after(mut self, term: &Term, successor: usize) -> Extent {
        match term {
            Term::Need { base, bytes, .. } if successor == 0 => self.need(*base, *bytes),
            Term::Room { bytes, .. } if successor == 0 => self.free(*bytes),
            _ => {}
        }
        self
    }

    /// A base is set after the packet's first byte, at that distance where it is known.
    pub fn set_base(&mut self, base: Base, by: Option<u64>) {
        for known in [&mut self.accessible, &mut self.in_packet] {
            known[base as usize] = by.map_or(0, |by| less(known[Base::Data as usize], by));
        }
        self.behind_data[base as usize] = by.and_then(|by| i32::try_from(by).ok()).filter(|by| *by < FAR);
    }

    /// A base is no longer set.
    pub fn clear_base(&mut self, base: Base) {
        self.behind_data[base as usize] = None;
        (self.accessible[base as usize], self.in_packet[base as usize]) = (0, 0);
    }

    /// Bytes are removed from the front, at most those that are in the packet. The packet's end does not
    /// move.
    pub fn pull(&mut self, by: Option<u64>) {
        let data = Base::Data as usize;
        let whole = by.filter(|by| u64::from(self.in_packet[data]) >= *by).map(|by| by as u32);
        self.room = self.room.saturating_add(whole.unwrap_or(0));
        for known in [&mut self.accessible, &mut self.in_packet] {
            known[data] = by.map_or(0, |by| less(known[data], by));
        }
        // Of a shorter packet less is removed.
        self.move_data(whole.and_then(|by| i32::try_from(by).ok()));
    }

    /// Bytes are added before the front, in free headroom.
    pub fn push(&mut self, bytes: u16) {
        self.room = self.room.saturating_sub(bytes.into());
        for known in [&mut self.accessible, &mut self.in_packet] {
            known[Base::Data as usize] = known[Base::Data as usize].saturating_add(bytes.into());
        }
        self.move_data(Some(-i32::from(bytes)));
    }

    /// The packet's tail is cut: at most that many bytes remain, where the number is known.
    pub fn take(&mut self, most: Option<u64>) {
        let data = Base::Data as usize;
        let left = most.map_or(0, |most| u64::from(self.in_packet[data]).min(most) as u32);
        self.in_packet = [0; 4];
        self.in_packet[data] = left;
    }
}

/// The facts at the start of each block of an order, in which each precedes its successors; `number` returns
/// the values that are known.
pub fn at_blocks(program: &Program, order: &[BlockId], number: impl Fn(Value) -> Option<u64>) -> Vec<Extent> {
    let mut at: Vec<Option<Extent>> = vec![None; program.blocks.len()];
    program.entries.iter().for_each(|entry| at[entry.index()] = Some(Extent::default()));
    for id in order {
        let mut extent = at[id.index()].unwrap_or_default();
        let block = program.block(*id);
        block.insts.iter().for_each(|(_, inst)| extent.pass(*inst, &number));
        for (which, to) in block.term.successors().into_iter().enumerate() {
            let there = extent.after(&block.term, which);
            at[to.index()].get_or_insert(there).meet(&there);
        }
    }
    at.into_iter().map(Option::unwrap_or_default).collect()
}

fn less(bytes: u32, by: u64) -> u32 {
    u64::from(bytes).saturating_sub(by) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{EvalState, Exit, run};
    use crate::{Builder, Value};
    use proptest::prelude::*;
    use shm::descriptor::{BUF_BYTES, NO_HEADER, Packet};

    const BASES: [Base; 4] = [Base::Data, Base::Mac, Base::Net, Base::Trans];

    /// A program of one path with the steps, and the extent at its end. It pushes only where it may.
    fn program(steps: &[(u8, u8, u8)]) -> (crate::Verified, Extent) {
        let mut f = Builder::new("Path", 1);
        let (refused, mut extent) = (f.drop_block("refused"), Extent::default());
        let hash = f.value(Inst::FlowHash);
        let unknown = f.eval(hash & 63);
        for &(kind, which, number) in steps {
            let base = BASES[usize::from(which) % 4];
            let is_known = which < 200;
            let value: Value = if is_known { f.eval(u64::from(number)) } else { unknown };
            let bytes = u16::from(number.max(1));
            let inst = match kind % 7 {
                0 | 1 => {
                    f.need(base, usize::from(bytes), refused);
                    extent.need(base, bytes);
                    continue;
                }
                2 => {
                    f.room(usize::from(bytes), refused);
                    extent.free(bytes);
                    continue;
                }
                3 if base != Base::Data => Inst::SetBase(base, value),
                4 if base != Base::Data && is_known => Inst::ClearBase(base),
                5 => Inst::Take(value),
                6 if extent.room() > 0 => Inst::Push(bytes.min(extent.room() as u16)),
                _ => Inst::Pull(value),
            };
            f.act(inst);
            extent.pass(inst, |_| is_known.then_some(u64::from(number)));
        }
        f.emit(0);
        (f.finish().expect("what is known is enough"), extent)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]
        #[test]
        fn what_is_known_of_a_packet_is_so(
            steps in prop::collection::vec((any::<u8>(), any::<u8>(), 0u8..60), 0..14),
            (data, len, rest) in (0u16..80, 0u32..120, prop::option::of(1u32..40)),
            (headers, hash) in (any::<[Option<u8>; 3]>(), any::<u8>()),
        ) {
            let (program, extent) = program(&steps);
            let mut packet = Packet::detached(data, len).expect("it fits");
            prop_assert!(packet.set_rest(rest.unwrap_or(0)));
            let header = |at: Option<u8>| at.map_or(NO_HEADER, |at| data + u16::from(at % 90));
            [packet.mac, packet.net, packet.trans] = headers.map(header);
            packet.flow_hash = hash.into();
            let mut buffer = vec![0u8; BUF_BYTES];
            let mut state = EvalState { cells: &mut [], tables: &mut (), now_ns: 0 };
            let exit = run(&program, 0, &mut packet, buffer.as_mut_slice(), &mut state);
            let exit = exit.map_err(|error| TestCaseError::fail(error.to_string()))?;
            if exit != Exit::Emit(0) {
                return Ok(());
            }
            prop_assert!(u32::from(packet.data()) >= extent.room(), "{:?} {:?}", packet.data(), extent);
            let end = u32::from(packet.data()) + packet.len();
            for (base, at) in BASES.into_iter().zip([packet.data(), packet.mac, packet.net, packet.trans]) {
                let (accessible, in_packet) = (extent.accessible(base), extent.in_packet(base));
                prop_assert!(in_packet <= accessible);
                // Bytes that were never in the packet, or are after its end, are not accessible.
                let first_end = u32::from(data) + len;
                prop_assert!(accessible == 0 || u32::from(at) + accessible <= first_end, "{base:?} {extent:?}");
                prop_assert!(in_packet == 0 || u32::from(at) + in_packet <= end, "{base:?} {extent:?}");
            }
        }
    }
}
