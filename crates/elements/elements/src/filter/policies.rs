//! Policies over frames: all of several expressions that a frame matches, by one decision graph.
//!
//! Frames that match the same expressions are one class, and the graph's decisions are these classes as sets:
//! bit `n` is expression `n`. Empty classes are left out, so that disjoint policies need no more classes than
//! there are policies.

use super::emit::emit;
use super::expr::Expr;
use super::filter_plan::{NO_MATCH, graph};
use super::formula::{Formula, IP_BYTES, TAGS, Var, not};
use super::graph::{Graph, To};
use ir::expr::load;
use ir::{BlockId, Builder};
use packet::access::Access;
use packet::field::{self, Base, Field};
use shm::Packet;
use shm::bytes::PacketBytes;
use shm::descriptor::NO_HEADER;
use std::collections::BTreeSet;

/// Most expressions.
pub const MOST: usize = 16;
/// Most classes of frames.
const MOST_CLASSES: usize = 128;

/// Expressions as one decision graph.
#[derive(Debug)]
pub struct Policies {
    graph: Graph,
}

/// There are too many expressions, or too many classes of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMany;

impl Policies {
    /// Builds the graph of expressions.
    ///
    /// # Errors
    /// When there are more classes of frames than a graph may have.
    pub fn new(expressions: &[Expr]) -> Result<Policies, TooMany> {
        if expressions.len() > MOST {
            return Err(TooMany);
        }
        let mut classes = vec![(Formula::Const(true), 0)];
        let mut whole = graph(classes.clone(), NO_MATCH, true);
        for (at, expression) in expressions.iter().enumerate() {
            let wanted = Formula::of_frame(expression);
            let split = |(class, set): &(Formula, u32)| {
                let both = |part: Formula| Formula::All(vec![class.clone(), part]);
                [(both(wanted.clone()), set | 1 << at), (both(not(wanted.clone())), *set)]
            };
            let parts: Vec<(Formula, u32)> = classes.iter().flat_map(split).collect();
            whole = graph(parts.clone(), NO_MATCH, true);
            let there = whole.leaves();
            classes = parts.into_iter().filter(|(_, set)| there.contains(set)).collect();
            if classes.len() > MOST_CLASSES {
                return Err(TooMany);
            }
        }
        Ok(Policies { graph: whole })
    }

    /// The sets that frames may match.
    pub fn sets(&self) -> BTreeSet<u32> {
        self.graph.leaves()
    }

    /// Marks a frame's headers, and ends the program with the block of its set.
    pub fn emit(&self, f: &mut Builder, leaf: impl FnMut(&mut Builder, u32) -> BlockId) {
        find_headers(f);
        emit(f, &self.graph, [0; 4], leaf);
    }

    /// Marks a frame's headers, and returns the set that it matches.
    pub fn find(&self, packet: &mut Packet) -> u32 {
        mark_headers(packet);
        let bytes = PacketBytes::new(packet);
        let start = |base: Base| {
            let at = match base {
                Base::Data | Base::Mac => packet.data(),
                Base::Net => packet.net,
                Base::Trans => packet.trans,
            };
            (at != NO_HEADER).then(|| usize::from(at.saturating_sub(packet.data())))
        };
        // Only headers in the first segment count, as in machine code.
        let reaches = |base: Base, most: u16| {
            start(base).is_some_and(|at| at + usize::from(most) <= packet.len() as usize)
        };
        let read = |field: Field| field.load(&bytes, start(field.base)?);
        let mut at = self.graph.root;
        loop {
            let node = match at {
                To::Leaf(set) => return set,
                To::Node(node) => &self.graph.nodes[node],
            };
            let value = match node.var {
                Var::Field(field) => read(field).unwrap_or(0),
                Var::Reach(base, most) => {
                    let first = base != Base::Trans || read(field::IP_FRAG) == Some(0);
                    u64::from(first && reaches(base, most))
                }
            };
            // Arms cover all values.
            let arm = node.arms.iter().find(|arm| value <= arm.last);
            at = arm.map_or(To::Leaf(0), |arm| arm.to);
        }
    }

    /// The steps, for people.
    pub fn describe(&self) -> String {
        self.graph.describe(|set| {
            let each = (0..MOST).filter(|at| set & 1 << at != 0).map(|at| format!("[{at}]"));
            let text: String = each.collect();
            if text.is_empty() { "[X]".into() } else { text }
        })
    }
}

const TYPE_IP: u64 = packet::view::ethernet::IPV4 as u64;
/// Version 4 with a header of 20 to 60 bytes: the first byte of every IPv4 packet.
const FIRST_BYTES: (u64, u64) = (0x45, 0x4f);
const FIRST_BYTE: Field = Field::bytes(Base::Net, 0, 1);
/// Offset of the network header, by the number of tags before it.
const NETWORK: [u16; 3] = [14, 18, 22];

/// Marks all headers of an IPv4 frame with up to two VLAN tags, and only the Ethernet header of others.
fn find_headers(f: &mut Builder) {
    f.set_base(Base::Mac, 0);
    f.clear_base(Base::Net);
    f.clear_base(Base::Trans);
    let (done, other) = (f.block(), f.block());
    for (tags, at) in NETWORK.into_iter().enumerate() {
        f.need(Base::Data, usize::from(at), done);
        let (ip, tagged) = (f.block(), f.block());
        let mut ways = vec![(TYPE_IP, ip)];
        if tags + 1 < NETWORK.len() {
            ways.extend(TAGS.map(|tag| (tag, tagged)));
        }
        f.switch(load(Field::bytes(Base::Data, at - 2, 2)), ways, done);
        f.at(ip);
        let net = f.eval(u64::from(at));
        f.set_base(Base::Net, net);
        f.need(Base::Net, usize::from(IP_BYTES), other);
        f.check(load(FIRST_BYTE).within(FIRST_BYTES.0, FIRST_BYTES.1), other);
        f.set_base(Base::Trans, (load(field::IP_HL) << 2) + net);
        f.jump(done);
        f.at(tagged);
    }
    f.at(other);
    f.clear_base(Base::Net);
    f.jump(done);
    f.at(done);
}

/// The same for a descriptor.
fn mark_headers(packet: &mut Packet) {
    (packet.mac, packet.net, packet.trans) = (packet.data(), NO_HEADER, NO_HEADER);
    let bytes = PacketBytes::new(packet);
    let there = |end: u16| u32::from(end) <= packet.len();
    for at in NETWORK {
        let kind = bytes.u16(usize::from(at - 2)).filter(|_| there(at)).map(u64::from);
        match kind {
            Some(TYPE_IP) => {
                let first = bytes.u8(usize::from(at)).filter(|_| there(at + IP_BYTES)).map(u64::from);
                let Some(first) = first.filter(|byte| (FIRST_BYTES.0..=FIRST_BYTES.1).contains(byte)) else {
                    return;
                };
                packet.net = packet.data() + at;
                packet.trans = packet.net + 4 * (first as u16 & 15);
                return;
            }
            Some(kind) if TAGS.contains(&kind) => {}
            _ => return,
        }
    }
}
