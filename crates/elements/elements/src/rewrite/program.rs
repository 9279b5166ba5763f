//! What a rewriter does to a packet, as a program: parse and make the key, find or make the mapping,
//! rewrite.
//!
//! Reading is wide: the first 8 bytes of the IP header tell version, header length, total length and
//! fragment offset. Writing is what the mapping's line holds: both addresses by one store, both ports by
//! one store, and each checksum by one addition of the change that was worked out when the mapping was
//! made (RFC 1624).

use super::flow::{Kind, LINE_BYTES, at};
use ir::verify::VerifyError;
use ir::{BinOp, BlockId, Builder, Inst, Term, Value, Verified};
use packet::anno::{self, Anno};
use packet::field::{self, Base, Field};
use packet::view::protocol;

/// What a class does.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// Name of the class.
    pub class: &'static str,
    /// Which packets are of one flow.
    pub kind: Kind,
    /// Protocols whose ports are rewritten.
    pub protocols: &'static [u8],
    /// The drop reason for other protocols.
    pub other_protocol: &'static str,
    /// Whether TCP is watched for payload and its end.
    pub watch_tcp: bool,
    /// Set the destination address annotation.
    pub dst_anno: bool,
    /// The annotation that replies get from the mapping.
    pub reply_anno: Option<Anno>,
    /// For each input, the output to which packets without mapping are passed on.
    pub passes: Vec<Option<u8>>,
}

/// The first half of an IPv4 header's fixed part.
const IP_FRONT: Field = Field::bytes(Base::Net, 0, 8);
/// Version and fragment offset in [`IP_FRONT`], and what they are in a first fragment of IPv4.
const VERSION_AND_OFFSET: u64 = 0xf000_0000_0000_1fff;
const FIRST_FRAGMENT: u64 = 0x4000_0000_0000_0000;
const VERSION: u64 = 0xf000_0000_0000_0000;
/// TCP data offset and flags.
const TCP_FRONT: Field = Field::bytes(Base::Trans, 12, 2);
const FIN: u64 = 1;
const RST: u64 = 4;
const FIN_SYN_RST: u64 = 7;
/// Bytes of a TCP header up to the end of its checksum.
const TCP_CHECKED_BYTES: usize = 18;
const MIN_TRANSPORT_BYTES: usize = 8;
/// Packets after which a UDP flow may count as streaming.
const STREAMING_PACKETS: u64 = 3;
/// State cell of an input that passes nothing on.
const NOWHERE: u64 = u64::MAX;

/// The value of an input's cell: where it passes packets without mapping.
pub fn pass_cell(output: Option<u8>) -> u64 {
    output.map_or(NOWHERE, u64::from)
}

struct Writer<'a> {
    f: Builder,
    what: &'a Lowering,
    table: u16,
    slow: u16,
}

/// Writes the program.
///
/// # Errors
/// When it does not verify.
pub fn lower(what: &Lowering, outputs: usize) -> Result<Verified, VerifyError> {
    let mut f = Builder::new(what.class, outputs);
    let table = f.table("mappings", 2, LINE_BYTES);
    let slow = f.slow_path("refused");
    let cells: Vec<u16> = what
        .passes
        .iter()
        .enumerate()
        .map(|(input, output)| f.cell(&format!("pass{input}"), pass_cell(*output)))
        .collect();
    let mut writer = Writer { f, what, table, slow };
    for (input, cell) in cells.into_iter().enumerate() {
        if input > 0 {
            writer.f.next_entry();
        }
        writer.input(input, cell);
    }
    writer.f.finish()
}

impl Writer<'_> {
    fn input(&mut self, input: usize, cell: u16) {
        let no_header = self.pass_or_drop(cell, "no-ip-header");
        self.f.need(Base::Net, 20, no_header);
        let (key, fail) = match self.what.kind {
            Kind::Ports => self.ports_key(cell),
            Kind::Ping => self.ping_key(cell),
            Kind::Pair | Kind::Address => self.address_key(cell),
        };
        let mut args = vec![self.f.constant(input as u64)];
        if self.what.kind == Kind::Address {
            args.push(self.f.load(field::IP_DST));
        }
        if let Some(anno) = self.what.reply_anno {
            args.push(self.f.load_anno(anno));
        }
        let record = self.f.create(self.table, &key, &args, fail);
        self.rewrite_addresses(record);
        match self.what.kind {
            Kind::Ports => self.rewrite_ports(record),
            Kind::Ping => self.rewrite_ping(record),
            Kind::Pair | Kind::Address => self.mend_transport(record),
        }
    }

    /// A block that passes the packet on where the input does that, else drops it.
    fn pass_or_drop(&mut self, cell: u16, reason: &str) -> BlockId {
        let drop = self.f.drop_block(reason);
        self.pass_or(cell, drop)
    }

    fn pass_or(&mut self, cell: u16, els: BlockId) -> BlockId {
        let (block, here) = (self.f.block(), self.f.here());
        self.f.at(block);
        let output = self.f.value(Inst::CellLoad(cell));
        self.f.end(Term::EmitTo(output, els));
        self.f.at(here);
        block
    }

    /// Where packets without mapping go.
    fn refused(&mut self, cell: u16) -> BlockId {
        let (block, here) = (self.f.block(), self.f.here());
        self.f.at(block);
        self.f.end(Term::Slow(self.slow));
        self.f.at(here);
        self.pass_or(cell, block)
    }

    /// Goes on with first fragments of IPv4 only.
    fn need_first_fragment(&mut self, cell: u16) {
        let front = self.f.load(IP_FRONT);
        let told = self.f.bin_const(BinOp::And, front, VERSION_AND_OFFSET);
        let good = self.f.bin_const(BinOp::Eq, told, FIRST_FRAGMENT);
        let odd = self.f.block();
        self.f.check(good, odd);
        let here = self.f.here();
        self.f.at(odd);
        let offset = self.f.bin_const(BinOp::And, front, VERSION_AND_OFFSET & !VERSION);
        let (fragment, other) =
            (self.pass_or_drop(cell, "fragment"), self.pass_or_drop(cell, "no-ip-header"));
        self.f.end(Term::Branch(offset, fragment, other));
        self.f.at(here);
    }

    fn is_any_of(&mut self, value: Value, wanted: &[u8]) -> Value {
        let mut any = None;
        for &one in wanted {
            let is = self.f.bin_const(BinOp::Eq, value, u64::from(one));
            any = Some(any.map_or(is, |any| self.f.bin(BinOp::Or, any, is)));
        }
        any.unwrap_or(value)
    }

    fn ports_key(&mut self, cell: u16) -> ([Value; 2], BlockId) {
        self.need_first_fragment(cell);
        let proto = self.f.load(field::IP_PROTO);
        let known = self.is_any_of(proto, self.what.protocols);
        let other = self.pass_or_drop(cell, self.what.other_protocol);
        self.f.check(known, other);
        let short = self.pass_or_drop(cell, "short-transport");
        self.f.need(Base::Trans, MIN_TRANSPORT_BYTES, short);
        let pair = self.f.load(field::IP_PAIR);
        let ports = self.f.load(field::L4_PORTS);
        let ports = self.f.bin_const(BinOp::Shl, ports, 16);
        let rest = self.f.bin(BinOp::Or, ports, proto);
        ([pair, rest], self.refused(cell))
    }

    fn ping_key(&mut self, cell: u16) -> ([Value; 2], BlockId) {
        self.need_first_fragment(cell);
        let proto = self.f.load(field::IP_PROTO);
        let known = self.is_any_of(proto, self.what.protocols);
        let other = self.pass_or_drop(cell, self.what.other_protocol);
        self.f.check(known, other);
        let short = self.pass_or_drop(cell, "short-transport");
        self.f.need(Base::Trans, MIN_TRANSPORT_BYTES, short);
        let kind = self.f.load(field::ICMP_TYPE);
        let is_reply = self.f.bin_const(BinOp::Eq, kind, 0);
        let is_request = self.f.bin_const(BinOp::Eq, kind, 8);
        let is_echo = self.f.bin(BinOp::Or, is_reply, is_request);
        self.f.check(is_echo, other);
        let pair = self.f.load(field::IP_PAIR);
        let id = self.f.load(field::ICMP_ID);
        // Requests carry the identifier as source port, replies as destination port, and the mark.
        let request = self.f.bin_const(BinOp::Shl, id, 32);
        let reply = self.f.bin_const(BinOp::Shl, id, 16);
        let reply = self.f.bin_const(BinOp::Or, reply, 1 << 8);
        let rest = self.f.value(Inst::Select(is_reply, reply, request));
        let rest = self.f.bin_const(BinOp::Or, rest, u64::from(protocol::ICMP));
        ([pair, rest], self.refused(cell))
    }

    fn address_key(&mut self, cell: u16) -> ([Value; 2], BlockId) {
        let version = self.f.load(field::IP_VERSION);
        let good = self.f.bin_const(BinOp::Eq, version, 4);
        let other = self.pass_or_drop(cell, "no-ip-header");
        self.f.check(good, other);
        let mut key = self.f.load(field::IP_PAIR);
        if self.what.kind == Kind::Address {
            key = self.f.bin_const(BinOp::And, key, 0xffff_ffff << 32);
        }
        let zero = self.f.constant(0);
        ([key, zero], self.refused(cell))
    }

    fn field_of(&mut self, record: Value, at: u16, bytes: u8) -> Value {
        self.f.value(Inst::RecLoad(record, at, bytes))
    }

    fn put(&mut self, record: Value, at: u16, bytes: u8, value: Value) {
        self.f.act(Inst::RecStore(record, at, bytes, value));
    }

    /// A checksum after a change: one end-around carry is enough for two words.
    fn changed(&mut self, sum: Value, delta: Value) -> Value {
        let sum = self.f.bin_const(BinOp::Xor, sum, 0xffff);
        let sum = self.f.bin(BinOp::Add, sum, delta);
        let low = self.f.bin_const(BinOp::And, sum, 0xffff);
        let carry = self.f.bin_const(BinOp::Shr, sum, 16);
        let sum = self.f.bin(BinOp::Add, low, carry);
        self.f.bin_const(BinOp::Xor, sum, 0xffff)
    }

    fn rewrite_addresses(&mut self, record: Value) {
        let mut pair = self.field_of(record, at::PAIR, 8);
        let one_address = self.what.kind == Kind::Address;
        if one_address {
            let (old, keep) = (self.f.load(field::IP_PAIR), self.field_of(record, at::KEEP_MASK, 8));
            let kept = self.f.bin(BinOp::And, old, keep);
            pair = self.f.bin(BinOp::Or, pair, kept);
        }
        self.f.store(field::IP_PAIR, pair);
        let (sum, delta) = (self.f.load(field::IP_SUM), self.field_of(record, at::IP_DELTA, 2));
        let sum = self.changed(sum, delta);
        self.f.store(field::IP_SUM, sum);
        if self.what.dst_anno {
            let mut dst = self.f.bin_const(BinOp::And, pair, 0xffff_ffff);
            if one_address {
                // Only who changes the destination sets the annotation.
                let (is_reply, old) =
                    (self.field_of(record, at::IS_REPLY, 1), self.f.load_anno(anno::DST_IP));
                dst = self.f.value(Inst::Select(is_reply, dst, old));
            }
            self.f.store_anno(anno::DST_IP, dst);
        }
        if let Some(anno) = self.what.reply_anno {
            let (is_reply, old) = (self.field_of(record, at::IS_REPLY, 1), self.f.load_anno(anno));
            let value = self.field_of(record, at::REPLY_ANNO, 1);
            let value = self.f.value(Inst::Select(is_reply, value, old));
            self.f.store_anno(anno, value);
        }
        let now = self.f.value(Inst::Now);
        self.put(record, at::LAST_NS, 8, now);
    }

    fn emit(&mut self, record: Value) {
        if self.f.outputs() == 1 {
            return self.f.emit(0);
        }
        let output = self.field_of(record, at::OUTPUT, 1);
        let nowhere = self.f.drop_block("no-such-output");
        self.f.end(Term::EmitTo(output, nowhere));
    }

    fn rewrite_ports(&mut self, record: Value) {
        let ports = self.field_of(record, at::PORTS, 4);
        self.f.store(field::L4_PORTS, ports);
        let tcp = self.what.protocols.contains(&protocol::TCP);
        if !tcp || self.what.protocols.len() > 1 {
            let proto = self.f.load(field::IP_PROTO);
            if tcp {
                let is_tcp = self.f.bin_const(BinOp::Eq, proto, u64::from(protocol::TCP));
                let (yes, no) = self.f.branch(is_tcp);
                self.f.at(yes);
                self.finish_tcp(record);
                self.f.at(no);
            }
            self.mend_at_6(record, proto);
            self.count_seen(record);
            self.emit(record);
        } else {
            self.finish_tcp(record);
        }
    }

    fn count_seen(&mut self, record: Value) {
        let seen = self.field_of(record, at::SEEN, 1);
        let seen = self.f.bin_const(BinOp::Add, seen, 1);
        let seen = self.f.bin_const(BinOp::Min, seen, STREAMING_PACKETS);
        self.put(record, at::SEEN, 1, seen);
    }

    /// Mends the checksum of UDP, or of DCCP or UDP-Lite, which have it in the same place. UDP's 0 stays
    /// 0 (no checksum), and none becomes 0 (RFC 768).
    fn mend_at_6(&mut self, record: Value, proto: Value) {
        let (old, delta) = (self.f.load(field::UDP_SUM), self.field_of(record, at::L4_DELTA, 2));
        let sum = self.changed(old, delta);
        let ones = self.f.constant(0xffff);
        let sum = self.f.value(Inst::Select(sum, sum, ones));
        let sum = match self.what.protocols {
            // Whatever comes here is UDP.
            [protocol::TCP, protocol::UDP] => self.f.value(Inst::Select(old, sum, old)),
            _ => {
                let not_udp = self.f.bin_const(BinOp::Ne, proto, u64::from(protocol::UDP));
                let has_one = self.f.bin(BinOp::Or, not_udp, old);
                self.f.value(Inst::Select(has_one, sum, old))
            }
        };
        self.f.store(field::UDP_SUM, sum);
    }

    fn mend_tcp(&mut self, record: Value) {
        let (old, delta) = (self.f.load(field::TCP_SUM), self.field_of(record, at::L4_DELTA, 2));
        let sum = self.changed(old, delta);
        self.f.store(field::TCP_SUM, sum);
    }

    /// Ends the current block with what is done to TCP. Headers cut off before their checksum are sent
    /// on as they are, as in Click.
    fn finish_tcp(&mut self, record: Value) {
        let short = self.f.block();
        self.f.need(Base::Trans, TCP_CHECKED_BYTES, short);
        self.mend_tcp(record);
        if self.what.watch_tcp {
            self.watch_tcp(record);
        } else {
            self.count_seen(record);
        }
        self.emit(record);
        self.f.at(short);
        self.emit(record);
    }

    /// Notes payload, and SYN, FIN and RST, which few packets have.
    fn watch_tcp(&mut self, record: Value) {
        let ip = self.f.load(Field::bytes(Base::Net, 0, 4));
        let tcp = self.f.load(TCP_FRONT);
        let ip_words = self.f.bin_const(BinOp::Shr, ip, 24);
        let ip_words = self.f.bin_const(BinOp::And, ip_words, 15);
        let tcp_words = self.f.bin_const(BinOp::Shr, tcp, 12);
        let words = self.f.bin(BinOp::Add, ip_words, tcp_words);
        let header = self.f.bin_const(BinOp::Shl, words, 2);
        let length = self.f.bin_const(BinOp::And, ip, 0xffff);
        let payload = self.f.bin(BinOp::Lt, header, length);
        let seen = self.field_of(record, at::SEEN, 1);
        let seen = self.f.bin(BinOp::Or, seen, payload);
        self.put(record, at::SEEN, 1, seen);
        let now = self.f.value(Inst::Now);
        let open = self.field_of(record, at::OPEN_NS, 8);
        let signs = self.f.bin_const(BinOp::And, tcp, FIN_SYN_RST);
        let (rare, usual) = self.f.branch(signs);
        let after = self.f.block();

        self.f.at(usual);
        let opened = self.f.value(Inst::Select(payload, now, open));
        self.put(record, at::OPEN_NS, 8, opened);
        self.f.jump(after);

        // RST counts before FIN, and FIN before SYN and payload.
        self.f.at(rare);
        let reset = self.f.bin_const(BinOp::And, tcp, RST);
        let closed = self.f.bin_const(BinOp::And, tcp, RST | FIN);
        let rst = self.field_of(record, at::RST_NS, 8);
        let rst = self.f.value(Inst::Select(reset, now, rst));
        self.put(record, at::RST_NS, 8, rst);
        let fin = self.field_of(record, at::FIN_NS, 8);
        let finished = self.f.value(Inst::Select(closed, now, fin));
        let fin = self.f.value(Inst::Select(reset, fin, finished));
        self.put(record, at::FIN_NS, 8, fin);
        let opened = self.f.value(Inst::Select(closed, open, now));
        self.put(record, at::OPEN_NS, 8, opened);
        self.f.jump(after);
        self.f.at(after);
    }

    fn rewrite_ping(&mut self, record: Value) {
        let id = self.field_of(record, at::PORTS, 2);
        self.f.store(field::ICMP_ID, id);
        let (old, delta) = (self.f.load(field::ICMP_SUM), self.field_of(record, at::L4_DELTA, 2));
        let sum = self.changed(old, delta);
        // A message may be all zero, whose checksum is 0xffff; that is valid for all others too.
        let ones = self.f.constant(0xffff);
        let changed = self.f.value(Inst::Select(sum, sum, ones));
        let sum = self.f.value(Inst::Select(delta, changed, old));
        self.f.store(field::ICMP_SUM, sum);
        self.emit(record);
    }

    /// Addresses are under the checksums of TCP, UDP and their kin: of first fragments, which hold them.
    fn mend_transport(&mut self, record: Value) {
        let done = self.f.block();
        let offset = self.f.load(field::IP_FRAG);
        self.f.leave_if(offset, done);
        let proto = self.f.load(field::IP_PROTO);
        let is_tcp = self.f.bin_const(BinOp::Eq, proto, u64::from(protocol::TCP));
        let (tcp, other) = self.f.branch(is_tcp);
        self.f.at(tcp);
        self.f.need(Base::Trans, TCP_CHECKED_BYTES, done);
        self.mend_tcp(record);
        self.f.jump(done);
        self.f.at(other);
        let at_6 = self.is_any_of(proto, &[protocol::UDP, protocol::DCCP, protocol::UDP_LITE]);
        self.f.check(at_6, done);
        self.f.need(Base::Trans, MIN_TRANSPORT_BYTES, done);
        self.mend_at_6(record, proto);
        self.f.jump(done);
        self.f.at(done);
        self.emit(record);
    }
}
