//! `Resize`: changes packets at both ends.

use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::Packet;
use shm::burst::Batch;
use shm::descriptor::BUF_BYTES;

/// The class.
pub const CLASS: Class = Class {
    name: "Resize",
    summary: "adjusts packet length",
    page: "\
# Resize([HEAD, TAIL])

Adds HEAD bytes to the front of each packet and TAIL bytes to its end, or removes bytes if the number is negative.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `HEAD` (-65535 to 2240, default 0): new bytes at the front are those that were removed there, if there
  are any, else undefined; `TAIL` (-65535 to 65535, default 0): new bytes at the end are 0. If more bytes are to be
  removed than there are, none is left
- **handlers**: `head`, `tail` (read)
- **drop reasons**: `no-room`: no slot is free for the bytes, the packet fills its buffer, or would be longer than 65535
  bytes
- **difference**: of a packet in several segments no more than the first segment is removed at the front. Click leaves
  new bytes at the end as they were
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make,
};

struct Resize {
    head: i64,
    tail: i64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    const MOST: i64 = u16::MAX as i64;
    cx.opaque(|args| {
        let head = args.positional("HEAD", parse::int_in(-MOST..=BUF_BYTES as i64)).unwrap_or(0);
        let tail = args.positional("TAIL", parse::int_in(-MOST..=MOST)).unwrap_or(0);
        Some(Resize { head, tail })
    })
}

impl Resize {
    fn resize(&self, packet: &mut Packet, work: &mut Work<'_>) -> bool {
        let [head, tail] = [self.head, self.tail].map(|bytes| bytes.unsigned_abs() as usize);
        if self.head > 0 {
            let pushed =
                shm::chain::unshare(work.pool(), packet) && packet.make_headroom(head) && packet.push(head);
            if !pushed {
                return false;
            }
        } else if !packet.pull(head.min(packet.len() as usize)) {
            return false;
        }
        if self.tail > 0 {
            let fits = packet.total() as usize + tail <= usize::from(u16::MAX);
            return fits && shm::chain::grow(work.pool(), packet, tail);
        }
        packet.take(tail.min(packet.total() as usize))
    }
}

impl Opaque for Resize {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        batch.emit_if(0, |packet| self.resize(packet, work));
    }
}

impl Element for Resize {
    element::facts!(reasons: &["no-room"], handlers: HANDLERS);
}

const HANDLERS: &[Row<Resize>] = &[
    Row::read("head", |resize, _| Some(resize.head.to_string())),
    Row::read("tail", |resize, _| Some(resize.tail.to_string())),
];
