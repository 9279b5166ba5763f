//! `Peel`: takes tags and tunnels off frames.
//!
//! A frame goes in, a frame comes out: where what is inside has no Ethernet header, the outer one's addresses stay and
//! its type becomes that of what is inside.

use click::config::Names;
use diag::{Diagnostic, Spanned, did_you_mean};
use element::class::{Class, StateScope};
use element::configure::{Configure, Shape};
use element::element::Element;
use element::handler::{Handlers, Row};
use ir::program::{BinOp, Value};
use ir::verify::VerifyError;
use ir::{BlockId, Builder, Inst, Term, Verified};
use packet::field::{Base, Field};

/// The class.
pub const CLASS: Class = Class {
    name: "Peel",
    summary: "takes tags and tunnel headers off frames",
    page: "\
# Peel(LAYER_1, LAYER_2, ... [, keyword STRICT])

Takes layers off the front of each Ethernet frame, in that order. Each is looked for right behind the Ethernet header
that is outermost then; a frame without it stays as it is and is looked at for the next layer.

| layer | what is taken off |
|---|---|
| `vlan` | the outermost VLAN tag (types 0x8100, 0x88a8, 0x9100) |
| `qinq` | two VLAN tags, where there are two |
| `mpls` | all labels, up to 8; behind them stands IPv4 or IPv6 |
| `gre` | IPv4 or IPv6 and GRE, version 0 (RFC 2784, 2890) |
| `vxlan` | the frame around a frame sent to UDP port 4789 (RFC 7348) |
| `geneve` | what is around a packet sent to UDP port 6081, options included (RFC 8926) |

What is inside of GRE, Geneve and MPLS may be a packet without Ethernet header. It gets the addresses of the outer
frame.

- **ports**: 1 input, 1 or 2 outputs, push; with STRICT, frames that lack a layer leave by the second
- **arguments**: `LAYER_i`: up to 8; `STRICT` (bool, default false): whether every layer must be there
- **annotations**: sets the MAC header; takes network and transport header away where something was taken off; sets
  `VLAN_TCI` to the last tag that was taken off
- **handlers**: `peeled` (read): layers that were taken off, by name, a line each
- **drop reasons**: `truncated`: the frame ends inside of the layer; `malformed`: its header contradicts itself;
  `fragment`: a fragment of a packet that is a tunnel's; `unknown-payload`: labels in front of something that is not
  IP; `no-layer`: STRICT, and the second output is not wired
",
    ports: "1/1-2",
    processing: "h/h",
    flow: "x/x",
    state: StateScope::PerWorker,
    make,
};

/// Most layers of one element.
const MOST: usize = 8;
/// Most labels that are taken off at once.
const MOST_LABELS: u16 = 8;
/// Bytes of an Ethernet header.
const ETHER: u16 = 14;
const TYPE: Field = data(12, 2);
const TYPE_IP: u64 = 0x0800;
const TYPE_IP6: u64 = 0x86dd;
const TYPE_MPLS: [u64; 2] = [0x8847, 0x8848];
/// A bridged Ethernet frame, inside of GRE and Geneve.
const TYPE_ETHER: u64 = 0x6558;
const TAGS: [u64; 3] = [0x8100, 0x88a8, 0x9100];
const GRE: u64 = 47;
const UDP: u64 = 17;
const VXLAN_PORT: u64 = 4789;
const GENEVE_PORT: u64 = 6081;

/// Bytes of the frame.
const fn data(at: u16, len: u8) -> Field {
    Field::bytes(Base::Data, at, len)
}

/// Bytes of what an IP header carries.
const fn trans(at: u16, len: u8) -> Field {
    Field::bytes(Base::Trans, at, len)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layer {
    Vlan,
    Qinq,
    Mpls,
    Gre,
    Vxlan,
    Geneve,
}

const LAYERS: [(&str, Layer); 6] = [
    ("vlan", Layer::Vlan),
    ("qinq", Layer::Qinq),
    ("mpls", Layer::Mpls),
    ("gre", Layer::Gre),
    ("vxlan", Layer::Vxlan),
    ("geneve", Layer::Geneve),
];

fn layer(text: &Spanned, _names: &dyn Names) -> Result<Layer, Diagnostic> {
    let found = LAYERS.iter().find(|(name, _)| *name == text.as_str()).map(|(_, layer)| *layer);
    found.ok_or_else(|| {
        let known = || LAYERS.iter().map(|(name, _)| *name);
        let help = did_you_mean(text.as_str(), known());
        let help =
            help.unwrap_or_else(|| format!("the layers are {}", known().collect::<Vec<_>>().join(", ")));
        Diagnostic::error(text.span, format!("nothing here can peel `{text}`")).help(help)
    })
}

struct Peel {
    layers: Vec<Layer>,
    strict: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<Box<dyn Element>> {
    let mut args = cx.args();
    let strict = args.keyword("STRICT", click::config::parse::bool).unwrap_or(false);
    let given = args.rest();
    if !args.finish() {
        return None;
    }
    if given.is_empty() || given.len() > MOST {
        let message = format!("{} layers to peel off", given.len());
        cx.error(cx.config.span, message).help(format!("name 1 to {MOST} layers"));
        return None;
    }
    let mut layers = vec![];
    for text in &given {
        match layer(text, cx.names) {
            Ok(layer) => layers.push(layer),
            Err(mistake) => cx.diags.push(mistake),
        }
    }
    (layers.len() == given.len()).then(|| Box::new(Peel { layers, strict }) as Box<dyn Element>)
}

/// The ways out of the search for a layer.
#[derive(Clone, Copy)]
struct Ways {
    /// The frame has not that layer.
    without: BlockId,
    truncated: BlockId,
    malformed: BlockId,
    fragment: BlockId,
    unknown: BlockId,
    /// The layer was taken off.
    done: BlockId,
}

impl Element for Peel {
    fn lower(&self, shape: Shape) -> Option<Result<Verified, VerifyError>> {
        let mut f = Builder::new("Peel", shape.outputs);
        let truncated = f.drop_block("truncated");
        let malformed = f.drop_block("malformed");
        let fragment = f.drop_block("fragment");
        let unknown = f.drop_block("unknown-payload");
        let lacks = self.strict.then(|| f.bad_block(1, "no-layer"));
        let start = f.constant(0);
        f.act(Inst::SetBase(Base::Mac, start));
        for (at, layer) in self.layers.iter().enumerate() {
            let cell = f.cell(&format!("peeled{at}"), 0);
            let (done, next) = (f.block(), f.block());
            let ways = Ways { without: lacks.unwrap_or(next), truncated, malformed, fragment, unknown, done };
            f.need(Base::Data, usize::from(ETHER), ways.without);
            match layer {
                Layer::Vlan => untag(&mut f, 1, ways),
                Layer::Qinq => untag(&mut f, 2, ways),
                Layer::Mpls => unlabel(&mut f, ways),
                Layer::Gre | Layer::Vxlan | Layer::Geneve => untunnel(&mut f, *layer, ways),
            }
            f.at(done);
            let one = f.constant(1);
            f.act(Inst::CellAdd(cell, one));
            let start = f.constant(0);
            f.act(Inst::SetBase(Base::Mac, start));
            f.act(Inst::ClearBase(Base::Net));
            f.act(Inst::ClearBase(Base::Trans));
            f.jump(next);
            f.at(next);
        }
        f.emit(0);
        Some(f.finish())
    }

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(self, HANDLERS)
    }
}

/// Whether a value is one of some.
fn is_one_of(f: &mut Builder, value: Value, of: &[u64]) -> Value {
    let mut found = f.constant(0);
    for one in of {
        let same = f.bin_const(BinOp::Eq, value, *one);
        found = f.bin(BinOp::Or, found, same);
    }
    found
}

/// Takes bytes off behind the addresses, which move on, and gives the frame a type where one is known.
fn shorten(f: &mut Builder, by: Value, ethertype: Option<Value>, ways: Ways) {
    let (front, back) = (f.load(data(0, 8)), f.load(data(8, 4)));
    f.act(Inst::Pull(by));
    f.need(Base::Data, usize::from(ETHER), ways.truncated);
    f.store(data(0, 8), front);
    f.store(data(8, 4), back);
    if let Some(ethertype) = ethertype {
        f.store(TYPE, ethertype);
    }
    f.jump(ways.done);
}

/// VLAN tags.
fn untag(f: &mut Builder, tags: u16, ways: Ways) {
    let mut tci = None;
    for tag in 0..tags {
        let ethertype = f.load(data(12 + 4 * tag, 2));
        let is_tag = is_one_of(f, ethertype, &TAGS);
        f.check(is_tag, ways.without);
        f.need(Base::Data, usize::from(ETHER + 4 * (tag + 1)), ways.truncated);
        tci = Some(f.load(data(14 + 4 * tag, 2)));
    }
    if let Some(tci) = tci {
        f.store_anno(packet::anno::VLAN_TCI, tci);
    }
    let by = f.constant(u64::from(4 * tags));
    shorten(f, by, None, ways);
}

/// MPLS labels (RFC 3032). What is behind the last one shows by its first four bits (RFC 4928).
fn unlabel(f: &mut Builder, ways: Ways) {
    let ethertype = f.load(TYPE);
    let is_mpls = is_one_of(f, ethertype, &TYPE_MPLS);
    f.check(is_mpls, ways.without);
    for label in 0..MOST_LABELS {
        let at = ETHER + 4 * label;
        f.need(Base::Data, usize::from(at + 4), ways.truncated);
        let bottom = f.load(Field::new(Base::Data, at * 8 + 23, 1));
        let (last, further) = f.branch(bottom);
        f.at(last);
        f.need(Base::Data, usize::from(at + 5), ways.truncated);
        let version = f.load(Field::new(Base::Data, (at + 4) * 8, 4));
        let (four, other, six) = (f.block(), f.block(), f.block());
        let is_four = f.bin_const(BinOp::Eq, version, 4);
        f.end(Term::Branch(is_four, four, other));
        f.at(other);
        let is_six = f.bin_const(BinOp::Eq, version, 6);
        f.end(Term::Branch(is_six, six, ways.unknown));
        for (block, kind) in [(four, TYPE_IP), (six, TYPE_IP6)] {
            f.at(block);
            let (by, kind) = (f.constant(u64::from(4 * (label + 1))), f.constant(kind));
            shorten(f, by, Some(kind), ways);
        }
        f.at(further);
    }
    f.jump(ways.malformed);
}

/// What an IP header carries of a tunnel.
struct Carried {
    /// Bytes of it by the IP header's word.
    bytes: Value,
    /// Bytes from the frame's start to it.
    at: Value,
}

/// GRE, VXLAN and Geneve over IPv4 and IPv6.
fn untunnel(f: &mut Builder, layer: Layer, ways: Ways) {
    let protocol = if layer == Layer::Gre { GRE } else { UDP };
    let (four, six, other) = (f.block(), f.block(), f.block());
    // Both versions come to the same tunnel, with what their headers say of it.
    let inside = f.block();
    let carried = Carried { bytes: f.param(inside), at: f.param(inside) };
    let is_later = f.param(inside);
    let ethertype = f.load(TYPE);
    let is_four = f.bin_const(BinOp::Eq, ethertype, TYPE_IP);
    f.end(Term::Branch(is_four, four, other));
    f.at(other);
    let is_six = f.bin_const(BinOp::Eq, ethertype, TYPE_IP6);
    f.end(Term::Branch(is_six, six, ways.without));

    f.at(four);
    f.need(Base::Data, usize::from(ETHER + 20), ways.without);
    let found = f.load(data(ETHER + 9, 1));
    let is_carried = f.bin_const(BinOp::Eq, found, protocol);
    f.check(is_carried, ways.without);
    let first = f.load(data(ETHER, 1));
    let above = f.bin_const(BinOp::Sub, first, 0x45);
    let is_sane = f.bin_const(BinOp::Le, above, 10);
    f.check(is_sane, ways.malformed);
    let words = f.bin_const(BinOp::And, first, 15);
    let header = f.bin_const(BinOp::Shl, words, 2);
    let total = f.load(data(ETHER + 2, 2));
    let fits = f.bin(BinOp::Le, header, total);
    f.check(fits, ways.malformed);
    // All of it, also where it lies in several segments.
    let there = f.value(Inst::Len);
    let there = f.bin_const(BinOp::Sub, there, u64::from(ETHER));
    let is_whole = f.bin(BinOp::Le, total, there);
    f.check(is_whole, ways.truncated);
    let bytes = f.bin(BinOp::Sub, total, header);
    let at = f.bin_const(BinOp::Add, header, u64::from(ETHER));
    // More fragments, and where this one belongs.
    let offset = f.load(data(ETHER + 6, 2));
    let part = f.bin_const(BinOp::And, offset, 0x3fff);
    f.end(Term::Jump(inside, vec![bytes, at, part]));

    f.at(six);
    f.need(Base::Data, usize::from(ETHER + 40), ways.without);
    let found = f.load(data(ETHER + 6, 1));
    let is_carried = f.bin_const(BinOp::Eq, found, protocol);
    f.check(is_carried, ways.without);
    let version = f.load(Field::new(Base::Data, ETHER * 8, 4));
    let is_sane = f.bin_const(BinOp::Eq, version, 6);
    f.check(is_sane, ways.malformed);
    let bytes = f.load(data(ETHER + 4, 2));
    let there = f.value(Inst::Len);
    let there = f.bin_const(BinOp::Sub, there, u64::from(ETHER + 40));
    let is_whole = f.bin(BinOp::Le, bytes, there);
    f.check(is_whole, ways.truncated);
    let at = f.constant(u64::from(ETHER + 40));
    let none = f.constant(0);
    f.end(Term::Jump(inside, vec![bytes, at, none]));

    f.at(inside);
    f.act(Inst::SetBase(Base::Trans, carried.at));
    match layer {
        Layer::Gre => {
            f.leave_if(is_later, ways.fragment);
            gre(f, &carried, ways);
        }
        _ => {
            // Only a first fragment shows to whom it goes.
            let offset = f.bin_const(BinOp::And, is_later, 0x1fff);
            f.leave_if(offset, ways.without);
            let wanted = if layer == Layer::Vxlan { VXLAN_PORT } else { GENEVE_PORT };
            enough(f, &carried, 4, ways.without, ways.without);
            let port = f.load(trans(2, 2));
            let is_sent = f.bin_const(BinOp::Eq, port, wanted);
            f.check(is_sent, ways.without);
            f.leave_if(is_later, ways.fragment);
            enough(f, &carried, 16, ways.malformed, ways.truncated);
            let length = f.load(trans(4, 2));
            let fits = f.bin(BinOp::Le, length, carried.bytes);
            f.check(fits, ways.malformed);
            let least = f.constant(16);
            let holds = f.bin(BinOp::Le, least, length);
            f.check(holds, ways.malformed);
            if layer == Layer::Vxlan { vxlan(f, &carried, ways) } else { geneve(f, &carried, ways) }
        }
    }
}

/// Goes on where the IP header announces so many bytes, else to `short`, and they are there, else to `els`.
fn enough(f: &mut Builder, carried: &Carried, bytes: u16, short: BlockId, els: BlockId) {
    let least = f.constant(u64::from(bytes));
    let announced = f.bin(BinOp::Le, least, carried.bytes);
    f.check(announced, short);
    f.need(Base::Trans, usize::from(bytes), els);
}

/// Takes off the outer frame up to so many bytes into what it carries: what is inside begins there. `kind` says
/// what it is.
fn uncover(f: &mut Builder, carried: &Carried, header: Value, kind: Value, ways: Ways) {
    let fits = f.bin(BinOp::Le, header, carried.bytes);
    f.check(fits, ways.malformed);
    let is_frame = f.bin_const(BinOp::Eq, kind, TYPE_ETHER);
    let (frame, packet) = f.branch(is_frame);
    let to = f.bin(BinOp::Add, carried.at, header);
    f.at(frame);
    let end = f.bin_const(BinOp::Add, header, u64::from(ETHER));
    let holds = f.bin(BinOp::Le, end, carried.bytes);
    f.check(holds, ways.malformed);
    f.act(Inst::Pull(to));
    f.need(Base::Data, usize::from(ETHER), ways.truncated);
    f.jump(ways.done);
    f.at(packet);
    let by = f.bin_const(BinOp::Sub, to, u64::from(ETHER));
    shorten_known(f, by, kind, ways);
}

/// As [`shorten`], in a block where the outer Ethernet header is not known to be there any more.
fn shorten_known(f: &mut Builder, by: Value, ethertype: Value, ways: Ways) {
    f.need(Base::Data, usize::from(ETHER), ways.truncated);
    shorten(f, by, Some(ethertype), ways);
}

fn gre(f: &mut Builder, carried: &Carried, ways: Ways) {
    enough(f, carried, 4, ways.malformed, ways.truncated);
    let flags = f.load(trans(0, 2));
    // Bits that are to be zero: routing and recursion of old, and the version (RFC 2784, section 2.3).
    let strange = f.bin_const(BinOp::And, flags, 0x4fff);
    f.leave_if(strange, ways.malformed);
    let mut header = f.constant(4);
    for bit in [15, 13, 12] {
        let is_set = f.bin_const(BinOp::Shr, flags, bit);
        let is_set = f.bin_const(BinOp::And, is_set, 1);
        let more = f.bin_const(BinOp::Shl, is_set, 2);
        header = f.bin(BinOp::Add, header, more);
    }
    let kind = f.load(trans(2, 2));
    uncover(f, carried, header, kind, ways);
}

fn vxlan(f: &mut Builder, carried: &Carried, ways: Ways) {
    let flags = f.load(trans(8, 1));
    let is_valid = f.bin_const(BinOp::And, flags, 8);
    f.check(is_valid, ways.malformed);
    let (header, kind) = (f.constant(16), f.constant(TYPE_ETHER));
    uncover(f, carried, header, kind, ways);
}

fn geneve(f: &mut Builder, carried: &Carried, ways: Ways) {
    let first = f.load(trans(8, 1));
    let version = f.bin_const(BinOp::Shr, first, 6);
    f.leave_if(version, ways.malformed);
    let words = f.bin_const(BinOp::And, first, 63);
    let options = f.bin_const(BinOp::Shl, words, 2);
    let header = f.bin_const(BinOp::Add, options, 16);
    let kind = f.load(trans(10, 2));
    uncover(f, carried, header, kind, ways);
}

const HANDLERS: &[Row<Peel>] = &[Row::named("peeled", |peel, cells| {
    let name = |layer: &Layer| LAYERS.iter().find(|(_, known)| known == layer).map_or("", |(name, _)| name);
    let lines = peel.layers.iter().zip(cells).map(|(layer, count)| format!("{} {count}", name(layer)));
    Some(lines.collect::<Vec<_>>().join("\n"))
})];
