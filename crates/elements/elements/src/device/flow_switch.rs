//! `FlowSwitch`: all packets of a flow leave by the same output.

use crate::instance_switch::buckets::mixed;
use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, StateScope, Work};
use packet::access::Access;
use packet::{FlowKey, parse as layers};
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "FlowSwitch",
    summary: "spreads flows over the outputs",
    page: "\
# FlowSwitch([keyword SYMMETRIC])

Chooses the output of each frame by a hash of its flow: addresses, protocol and ports of IPv4 and IPv6, behind up to
two VLAN tags and eight extension headers. All fragments of a packet leave by one output. Frames without IP are hashed
by their Ethernet addresses and type.

- **ports**: 1 input, 1 or more outputs, push
- **arguments**: `SYMMETRIC` (bool, default false): whether both directions of a flow leave by one output
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::None,
    make,
};

/// The same in every run and on every worker, so that a flow keeps its output.
const SEED: u64 = 0x6d69_6c6c_7261_6365;

struct FlowSwitch {
    symmetric: bool,
    outputs: usize,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    cx.opaque(|args| {
        Some(FlowSwitch { symmetric: args.keyword("SYMMETRIC", parse::bool).unwrap_or(false), outputs })
    })
}

impl FlowSwitch {
    fn hash<A: Access + ?Sized>(&self, frame: &A) -> u64 {
        if let Some(key) = FlowKey::of(frame, &layers::frame(frame, 0)) {
            let is_forth = (key.src, key.src_port) <= (key.dst, key.dst_port);
            return key.table_hash(if self.symmetric || is_forth { SEED } else { !SEED });
        }
        let number = |at: usize, len: usize| {
            let bytes = (at..at + len).map(|at| u64::from(frame.u8(at).unwrap_or(0)));
            bytes.fold(0, |number, byte| number << 8 | byte)
        };
        let (to, from, kind) = (number(0, 6), number(6, 6), number(12, 2));
        let ends = if self.symmetric { (to.min(from), to.max(from)) } else { (to, from) };
        mixed(mixed(ends.0 ^ SEED) ^ ends.1 ^ kind << 48)
    }
}

impl Opaque for FlowSwitch {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let hash = self.hash(&batch.bytes(index));
            batch.emit(index, ((u128::from(hash) * self.outputs as u128) >> 64) as usize);
        }
    }
}

impl Element for FlowSwitch {
    element::facts!(writes: false);
}
