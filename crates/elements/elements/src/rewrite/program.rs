//! The program of a rewriter: parse the packet and make the key, find or make the mapping, rewrite.
//!
//! Reads are wide: one load of 8 bytes has version, header length, total length and fragment offset. Writes
//! take their values from the mapping's line: one store for both addresses, one for both ports, and for each
//! checksum one addition of the change that was computed when the mapping was made (RFC 1624).

use super::flavor::Flavor;
use super::flow::{ADDRESSES, Kind, LINE_BYTES, at};
use super::sequence::ADJUSTED;
use ir::expr::{self, anno, load, now_ns, record, select};
use ir::{BlockId, Builder, Expr, Value};
use packet::anno::{self, Anno};
use packet::field::{self, Base, Field};
use packet::view::protocol;

/// What the program depends on.
pub struct Lowering {
    /// The class.
    pub flavor: &'static Flavor,
    /// Set the destination address annotation.
    pub dst_anno: bool,
    /// The annotation that replies get from the mapping.
    pub reply_anno: Option<Anno>,
    /// For each input, the output to which packets without mapping are passed on.
    pub passes: Vec<Option<u8>>,
    /// Whether replies leave by an output that is wired to nothing.
    pub drops_replies: bool,
    /// Whether some mappings have more than their lines: an element changes payloads of connections in front of it, so
    /// that sequence numbers change, or mappings are numbered.
    pub adjusts: bool,
}

/// The first half of an IPv4 header's fixed part.
const IP_FRONT: Field = Field::bytes(Base::Net, 0, 8);
/// Version and fragment offset in [`IP_FRONT`], and their value in a first fragment of IPv4.
const VERSION_AND_OFFSET: u64 = 0xf000_0000_0000_1fff;
const FIRST_FRAGMENT: u64 = 0x4000_0000_0000_0000;
const VERSION: u64 = 0xf000_0000_0000_0000;
/// TCP data offset and flags.
const TCP_FRONT: Field = Field::bytes(Base::Trans, 12, 2);
const FIN: u64 = 1;
const SYN: u64 = 2;
const RST: u64 = 4;
const FIN_SYN_RST: u64 = 7;
/// Bytes of a TCP header up to the end of its checksum.
const TCP_CHECKED_BYTES: usize = 18;
const MIN_TRANSPORT_BYTES: usize = 8;
/// Packets after which a UDP flow may count as streaming.
pub(super) const STREAMING_PACKETS: u8 = 3;
/// Bits of what was seen of TCP in one direction: payload, a packet without SYN, FIN and RST, any packet, and SYN.
pub(super) const SEEN_PAYLOAD: u64 = 1;
pub(super) const SEEN_PLAIN: u64 = 2;
const SEEN_ANY: u64 = 4;
pub(super) const SEEN_SYN: u64 = 8;
/// State cell of an input that passes nothing on.
const NOWHERE: u64 = u64::MAX;

/// The slow paths.
const REFUSED: &str = "refused";
pub(super) const ADJUST: &str = "adjust";

/// The value of an input's cell: the output for packets without mapping.
pub fn pass_cell(output: Option<u8>) -> u64 {
    output.map_or(NOWHERE, u64::from)
}

struct Writer<'a> {
    f: &'a mut Builder,
    what: &'a Lowering,
    table: u16,
}

/// Writes the program.
pub fn build(what: &Lowering, f: &mut Builder) {
    f.name(what.flavor.class);
    let table = f.table("mappings", 2, LINE_BYTES);
    if what.flavor.kind != Kind::Address {
        f.record_delta(table, ADDRESSES);
    }
    let cells: Vec<u16> = what
        .passes
        .iter()
        .enumerate()
        .map(|(input, output)| f.cell(&format!("pass{input}"), pass_cell(*output)))
        .collect();
    let mut writer = Writer { f, what, table };
    for (input, cell) in cells.into_iter().enumerate() {
        if input > 0 {
            writer.f.next_entry();
        }
        writer.input(input, cell);
    }
}

impl Writer<'_> {
    fn input(&mut self, input: usize, cell: u16) {
        let no_header = self.pass_or_drop(cell, "no-ip-header");
        self.f.need(Base::Net, 20, no_header);
        let (key, fail) = match self.what.flavor.kind {
            Kind::Ports => self.ports_key(cell),
            Kind::Ping => self.ping_key(cell),
            Kind::Pair | Kind::Address => self.address_key(cell),
        };
        let mut args = vec![self.f.eval(input as u64)];
        if self.what.flavor.kind == Kind::Address {
            args.push(self.f.eval(load(field::IP_DST)));
        }
        if let Some(reply) = self.what.reply_anno {
            args.push(self.f.eval(anno(reply)));
        }
        let mapping = self.f.create(self.table, &key, &args, fail);
        self.rewrite_addresses(mapping);
        match self.what.flavor.kind {
            Kind::Ports => self.rewrite_ports(mapping),
            Kind::Ping => self.rewrite_ping(mapping),
            Kind::Pair | Kind::Address => self.mend_transport(mapping),
        }
    }

    /// A block that passes the packet on if the input does that, else drops it.
    fn pass_or_drop(&mut self, cell: u16, reason: &str) -> BlockId {
        let drop = self.f.drop_block(reason);
        self.pass_or(cell, drop)
    }

    fn pass_or(&mut self, cell: u16, els: BlockId) -> BlockId {
        self.f.aside(|f| f.emit_to(expr::cell(cell), els))
    }

    /// The block for packets without mapping.
    fn refused(&mut self, cell: u16) -> BlockId {
        let refused = self.f.slow_block(REFUSED);
        self.pass_or(cell, refused)
    }

    /// Continues with first fragments of IPv4 only.
    fn need_first_fragment(&mut self, cell: u16) {
        let front = self.f.eval(load(IP_FRONT));
        let (fragment, other) =
            (self.pass_or_drop(cell, "fragment"), self.pass_or_drop(cell, "no-ip-header"));
        let offset = front & (VERSION_AND_OFFSET & !VERSION);
        let odd = self.f.aside(|f| f.branch_to(offset, fragment, other));
        self.f.check((front & VERSION_AND_OFFSET).equals(FIRST_FRAGMENT), odd);
    }

    /// Continues with first fragments of the class's protocols; returns the protocol, and the block for
    /// others.
    fn need_protocol(&mut self, cell: u16) -> (Value, BlockId) {
        self.need_first_fragment(cell);
        let proto = self.f.eval(load(field::IP_PROTO));
        let other = self.pass_or_drop(cell, self.what.flavor.other_protocol);
        self.f.check(is_any_of(proto, self.what.flavor.protocols), other);
        let short = self.pass_or_drop(cell, "short-transport");
        self.f.need(Base::Trans, MIN_TRANSPORT_BYTES, short);
        (proto, other)
    }

    fn ports_key(&mut self, cell: u16) -> ([Value; 2], BlockId) {
        let (proto, _) = self.need_protocol(cell);
        let pair = self.f.eval(load(field::IP_PAIR));
        let rest = self.f.eval(load(field::L4_PORTS) << 16 | proto);
        ([pair, rest], self.refused(cell))
    }

    fn ping_key(&mut self, cell: u16) -> ([Value; 2], BlockId) {
        let (_, other) = self.need_protocol(cell);
        let kind = self.f.eval(load(field::ICMP_TYPE));
        let is_reply = self.f.eval(kind.equals(0));
        self.f.check(is_reply | kind.equals(8), other);
        let pair = self.f.eval(load(field::IP_PAIR));
        let id = self.f.eval(load(field::ICMP_ID));
        // Requests carry the identifier as source port, replies as destination port, and the mark.
        let rest = select(is_reply, id << 16 | 1 << 8, id << 32);
        let rest = self.f.eval(rest | u64::from(protocol::ICMP));
        ([pair, rest], self.refused(cell))
    }

    fn address_key(&mut self, cell: u16) -> ([Value; 2], BlockId) {
        let other = self.pass_or_drop(cell, "no-ip-header");
        self.f.check(load(field::IP_VERSION).equals(4), other);
        let mut key = load(field::IP_PAIR);
        if self.what.flavor.kind == Kind::Address {
            key = key & (0xffff_ffff << 32);
        }
        let key = [self.f.eval(key), self.f.eval(0)];
        (key, self.refused(cell))
    }

    /// A checksum after a change: one end-around carry is enough for two words.
    fn changed(&mut self, sum: impl Into<Expr>, delta: impl Into<Expr>) -> Value {
        let sum = self.f.eval((sum.into() ^ 0xffff) + delta);
        self.f.eval(((sum & 0xffff) + (sum >> 16)) ^ 0xffff)
    }

    fn rewrite_addresses(&mut self, mapping: Value) {
        let one_address = self.what.flavor.kind == Kind::Address;
        let mut pair = record(mapping, at::PAIR, 8);
        if one_address {
            pair = pair | (load(field::IP_PAIR) & record(mapping, at::KEEP_MASK, 8));
        }
        let pair = self.f.eval(pair);
        self.f.store(field::IP_PAIR, pair);
        let sum = self.changed(load(field::IP_SUM), record(mapping, at::IP_DELTA, 2));
        self.f.store(field::IP_SUM, sum);
        let is_reply = || record(mapping, at::IS_REPLY, 1);
        if self.what.dst_anno {
            let mut dst = pair & 0xffff_ffff;
            if one_address {
                // Only a changed destination is written to the annotation.
                dst = select(is_reply(), dst, anno(anno::DST_IP));
            }
            self.f.store_anno(anno::DST_IP, dst);
        }
        if let Some(reply) = self.what.reply_anno {
            let value = select(is_reply(), record(mapping, at::REPLY_ANNO, 1), anno(reply));
            self.f.store_anno(reply, value);
        }
        self.f.store_record(mapping, at::LAST_NS, 8, now_ns());
    }

    fn emit(&mut self, mapping: Value) {
        let adjusts = self.what.adjusts;
        if self.f.outputs() == 1 && !self.what.drops_replies && !adjusts {
            return self.f.emit(0);
        }
        let mut other = self.f.drop_block("no-such-output");
        let output = self.f.eval(record(mapping, at::OUTPUT, 1));
        if adjusts {
            let adjust = self.f.slow_block(ADJUST);
            other = self.f.aside(|f| f.branch_to(output.equals(u64::from(ADJUSTED)), adjust, other));
        }
        self.f.emit_to(output, other);
    }

    fn rewrite_ports(&mut self, mapping: Value) {
        self.f.store(field::L4_PORTS, record(mapping, at::PORTS, 4));
        let tcp = self.what.flavor.protocols.contains(&protocol::TCP);
        if !tcp || self.what.flavor.protocols.len() > 1 {
            let proto = self.f.eval(load(field::IP_PROTO));
            if tcp {
                let (yes, no) = self.f.branch(proto.equals(u64::from(protocol::TCP)));
                self.f.at(yes);
                self.finish_tcp(mapping);
                self.f.at(no);
            }
            self.mend_at_6(mapping, proto);
            self.count_seen(mapping);
            self.emit(mapping);
        } else {
            self.finish_tcp(mapping);
        }
    }

    fn count_seen(&mut self, mapping: Value) {
        let seen = (record(mapping, at::SEEN, 1) + 1).min(u64::from(STREAMING_PACKETS));
        self.f.store_record(mapping, at::SEEN, 1, seen);
    }

    /// Updates the checksum of UDP, or of DCCP or UDP-Lite, which have it at the same offset. UDP's 0 stays 0
    /// (no checksum), and no checksum becomes 0 (RFC 768).
    fn mend_at_6(&mut self, mapping: Value, proto: Value) {
        let old = self.f.eval(load(field::UDP_SUM));
        let sum = self.changed(old, record(mapping, at::L4_DELTA, 2));
        let has_one = match self.what.flavor.protocols {
            // Whatever comes here is UDP.
            [protocol::TCP, protocol::UDP] => old.into(),
            _ => proto.differs(u64::from(protocol::UDP)) | old,
        };
        self.f.store(field::UDP_SUM, select(has_one, select(sum, sum, 0xffff), old));
    }

    fn mend_tcp(&mut self, mapping: Value) {
        let sum = self.changed(load(field::TCP_SUM), record(mapping, at::L4_DELTA, 2));
        self.f.store(field::TCP_SUM, sum);
    }

    /// Ends the current block with the rewrite of TCP. Packets that end before the checksum are emitted as
    /// they are, as in Click.
    fn finish_tcp(&mut self, mapping: Value) {
        let short = self.f.block();
        self.f.need(Base::Trans, TCP_CHECKED_BYTES, short);
        self.mend_tcp(mapping);
        if self.what.flavor.has_tcp_timeouts {
            self.watch_tcp(mapping);
        } else {
            self.count_seen(mapping);
        }
        self.emit(mapping);
        self.f.at(short);
        self.emit(mapping);
    }

    /// Records payload, and SYN, FIN and RST, which few packets have.
    fn watch_tcp(&mut self, mapping: Value) {
        let f = &mut *self.f;
        let ip = f.eval(load(Field::bytes(Base::Net, 0, 4)));
        let tcp = f.eval(load(TCP_FRONT));
        let words = (ip >> 24 & 15) + (tcp >> 12);
        let payload = f.eval((words << 2).less_than(ip & 0xffff));
        let seen = |bits: Expr| record(mapping, at::SEEN, 1) | (payload | bits);
        let now = f.eval(now_ns());
        let open = f.eval(record(mapping, at::OPEN_NS, 8));
        let (rare, usual) = f.branch(tcp & FIN_SYN_RST);
        let after = f.block();

        f.at(usual);
        f.store_record(mapping, at::SEEN, 1, seen((SEEN_PLAIN | SEEN_ANY).into()));
        f.store_record(mapping, at::OPEN_NS, 8, select(payload, now, open));
        f.jump(after);

        // RST counts before FIN, and FIN before SYN and payload.
        f.at(rare);
        let syn = (tcp & SYN) << u64::from(SEEN_SYN.ilog2() - SYN.ilog2());
        f.store_record(mapping, at::SEEN, 1, seen(syn | SEEN_ANY));
        let reset = f.eval(tcp & RST);
        let closed = f.eval(tcp & (RST | FIN));
        f.store_record(mapping, at::RST_NS, 8, select(reset, now, record(mapping, at::RST_NS, 8)));
        let fin = f.eval(record(mapping, at::FIN_NS, 8));
        f.store_record(mapping, at::FIN_NS, 8, select(reset, fin, select(closed, now, fin)));
        f.store_record(mapping, at::OPEN_NS, 8, select(closed, open, now));
        f.jump(after);
        f.at(after);
    }

    fn rewrite_ping(&mut self, mapping: Value) {
        self.f.store(field::ICMP_ID, record(mapping, at::PORTS, 2));
        let old = self.f.eval(load(field::ICMP_SUM));
        let delta = self.f.eval(record(mapping, at::L4_DELTA, 2));
        let sum = self.changed(old, delta);
        // A message may be all zero, whose checksum is 0xffff; that is valid for all others too.
        self.f.store(field::ICMP_SUM, select(delta, select(sum, sum, 0xffff), old));
        self.emit(mapping);
    }

    /// Updates the checksums of TCP, UDP and related protocols for the addresses, in first fragments, which
    /// have them.
    fn mend_transport(&mut self, mapping: Value) {
        let done = self.f.block();
        self.f.leave_if(load(field::IP_FRAG), done);
        let proto = self.f.eval(load(field::IP_PROTO));
        let (tcp, other) = self.f.branch(proto.equals(u64::from(protocol::TCP)));
        self.f.at(tcp);
        self.f.need(Base::Trans, TCP_CHECKED_BYTES, done);
        self.mend_tcp(mapping);
        self.f.jump(done);
        self.f.at(other);
        self.f.check(is_any_of(proto, &[protocol::UDP, protocol::DCCP, protocol::UDP_LITE]), done);
        self.f.need(Base::Trans, MIN_TRANSPORT_BYTES, done);
        self.mend_at_6(mapping, proto);
        self.f.jump(done);
        self.f.at(done);
        self.emit(mapping);
    }
}

/// 1 if a value is in a list that is not empty.
fn is_any_of(value: Value, wanted: &[u8]) -> Expr {
    let one = |wanted: &u8| value.equals(u64::from(*wanted));
    wanted.iter().map(one).reduce(|any, one| any | one).unwrap_or(value.into())
}
