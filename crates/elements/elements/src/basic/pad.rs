//! `Pad`: lengthens packets.

use crate::program::Program;
use click::config::parse;
use element::{BoxElement, Class, Configure, PortCodes, StateScope, Work, random};
use ir::Builder;
use ir::expr::{anno, packet_len};
use packet::Access;
use packet::anno::EXTRA_LENGTH;
use shm::Packet;
use shm::bytes::PacketBytesMut;

/// The class.
pub const CLASS: Class = Class {
    name: "Pad",
    summary: "extends packet length",
    page: "\
# Pad([LENGTH, keywords ZERO, RANDOM, MAXLENGTH, VERBOSE])

Appends bytes to packets: up to LENGTH, or without LENGTH as many as the extra length annotation says. Longer
packets stay as they are.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LENGTH` (0 to 65535, default 0: the annotation says how many bytes); `MAXLENGTH` (default 0: no
  limit): bytes that a padded packet has at most; `RANDOM` (default false): the new bytes are random numbers,
  which are the same in every run, else they are 0. `ZERO` and `VERBOSE` have no effect
- **annotations**: sets `EXTRA_LENGTH` to 0
- **drop reasons**: `no-room`: no slot is free for the bytes, or the packet would be longer than 65535 bytes
- **difference**: new bytes are never left as they were: with `ZERO false` they are 0, too
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make,
};

struct Padding {
    /// 0: as many bytes as the annotation says.
    length: u16,
    /// 0 for no limit.
    most: u16,
    /// The state of the sequence of random bytes, if they are random.
    random: Option<u64>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let seed = random::seed(cx);
    cx.transparent(|args| {
        let length = args.positional("LENGTH", parse::u16).unwrap_or(0);
        let _ = args.keyword("ZERO", parse::bool);
        let random = args.keyword("RANDOM", parse::bool).unwrap_or(false);
        let most = args.keyword("MAXLENGTH", parse::u16).unwrap_or(0);
        let _ = args.keyword("VERBOSE", parse::bool);
        let padding = Padding { length, most, random: random.then_some(seed) };
        let program = Program::with_state("Pad", &[], padding, Padding::build);
        Some(program.with_slow_path(&["no-room"], true, |padding, batch, work| {
            batch.emit_if(0, |packet| padding.pad(packet, work));
        }))
    })
}

impl Padding {
    fn build(&self, f: &mut Builder) {
        let short = f.slow_block("short");
        if self.length > 0 {
            f.check(packet_len().at_least(u64::from(self.length)), short);
            f.store_anno(EXTRA_LENGTH, 0);
        } else {
            f.leave_if(anno(EXTRA_LENGTH), short);
        }
        f.emit(0);
    }

    fn pad(&mut self, packet: &mut Packet, work: &mut Work<'_>) -> bool {
        let length = packet.total() as usize;
        let wanted = match self.length {
            0 => length.saturating_add(EXTRA_LENGTH.load(&packet.anno) as usize),
            wanted => usize::from(wanted),
        };
        let most = if self.most == 0 { usize::MAX } else { usize::from(self.most) };
        let more = wanted.min(most).saturating_sub(length);
        EXTRA_LENGTH.store(&mut packet.anno, 0);
        if more > usize::from(u16::MAX) || !shm::chain::grow(work.pool(), packet, more) {
            return false;
        }
        if let Some(state) = &mut self.random {
            let mut bytes = PacketBytesMut::new(packet);
            return (length..length + more).all(|at| bytes.put_u8(at, random::next_below(state, 256) as u8));
        }
        true
    }
}
