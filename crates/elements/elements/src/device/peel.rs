//! `Peel`: removes tags and tunnel headers from frames.
//!
//! The result is always a frame: if the inner packet has no Ethernet header, it keeps the outer one with the
//! type changed.

use click::config::{Args, Names};
use diag::{Diagnostic, Spanned, did_you_mean};
use element::{Class, Element, PortCodes, Row, StateScope, Transparent};
use ir::expr::{load, packet_len};
use ir::{BlockId, Builder, Expr, Value};
use packet::field::{Base, Field};
use packet::view::ethernet::{IPV4, IPV6, MPLS, MPLS_UPSTREAM, QINQ, QINQ_OLD, VLAN};
use packet::view::protocol;

/// The class.
pub const CLASS: Class = Class {
    name: "Peel",
    summary: "takes tags and tunnel headers off frames",
    page: "\
# Peel(LAYER_1, LAYER_2, ... [, keyword STRICT])

Removes layers from the front of each Ethernet frame, in that order. Each must follow the Ethernet header that is
then the outermost; a frame without the layer stays as it is, and is checked for the next layer.

| layer | what is removed |
|---|---|
| `vlan` | the outermost VLAN tag (types 0x8100, 0x88a8, 0x9100) |
| `qinq` | two VLAN tags, where there are two |
| `mpls` | all labels, up to 8, in front of IPv4 or IPv6 |
| `gre` | IPv4 or IPv6 and GRE, version 0 (RFC 2784, 2890) |
| `vxlan` | the frame around a frame sent to UDP port 4789 (RFC 7348) |
| `geneve` | the headers around a packet sent to UDP port 6081, options included (RFC 8926) |

GRE, Geneve and MPLS may carry a packet without Ethernet header, which gets the addresses of the outer frame.

- **ports**: 1 input, 1 or 2 outputs, push; with STRICT, frames that lack a layer leave by the second
- **arguments**: `LAYER_i`: up to 8; `STRICT` (bool, default false): whether every layer must be there
- **annotations**: sets the MAC header; clears the network and transport header if a layer was removed; sets
  `VLAN_TCI` to the last tag that was removed
- **handlers**: `peeled` (read): layers that were removed, by name, a line each
- **drop reasons**: `truncated`: the frame ends inside of the layer; `malformed`: its header contradicts itself;
  `fragment`: a fragment of a tunnel's packet; `unknown-payload`: labels in front of other payload than
  IP; `no-layer`: STRICT, and the second output is not wired
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::PerWorker,
    make: |cx| cx.transparent(make),
};

/// Most layers of one element.
const MOST: usize = 8;
/// Most labels that are removed at once.
const MOST_LABELS: u16 = 8;
/// Bytes of an Ethernet header.
const ETHER: u16 = 14;
const TYPE: Field = data(12, 2);
/// A bridged Ethernet frame, inside of GRE and Geneve.
const TYPE_ETHER: u64 = 0x6558;
const VXLAN_PORT: u64 = 4789;
const GENEVE_PORT: u64 = 6081;

/// Bytes of the frame.
const fn data(at: u16, len: u8) -> Field {
    Field::bytes(Base::Data, at, len)
}

/// Bytes of an IP header's payload.
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

fn make(args: &mut Args<'_>) -> Option<Peel> {
    let strict = args.keyword("STRICT", click::config::parse::bool).unwrap_or(false);
    let given = args.rest();
    if given.is_empty() || given.len() > MOST {
        let (span, message) = (args.span(), format!("{} layers to peel off", given.len()));
        args.error(span, message).help(format!("name 1 to {MOST} layers"));
        return None;
    }
    let layers = given.iter().filter_map(|text| args.read(text, layer)).collect();
    Some(Peel { layers, strict })
}

/// Where the search for a layer ends.
#[derive(Clone, Copy)]
struct Exits {
    /// The frame does not have the layer.
    without: BlockId,
    truncated: BlockId,
    malformed: BlockId,
    fragment: BlockId,
    unknown: BlockId,
    /// The layer was removed.
    done: BlockId,
}

impl Transparent for Peel {
    fn build(&self, f: &mut Builder) {
        f.name("Peel");
        let [truncated, malformed, fragment, unknown] =
            ["truncated", "malformed", "fragment", "unknown-payload"].map(|reason| f.drop_block(reason));
        let lacks = self.strict.then(|| f.bad_block(1, "no-layer"));
        f.set_base(Base::Mac, 0);
        for (at, layer) in self.layers.iter().enumerate() {
            let cell = f.cell(&format!("peeled{at}"), 0);
            let (done, next) = (f.block(), f.block());
            let exits =
                Exits { without: lacks.unwrap_or(next), truncated, malformed, fragment, unknown, done };
            f.need(Base::Data, usize::from(ETHER), exits.without);
            match layer {
                Layer::Vlan => untag(f, 1, exits),
                Layer::Qinq => untag(f, 2, exits),
                Layer::Mpls => unlabel(f, exits),
                Layer::Gre | Layer::Vxlan | Layer::Geneve => untunnel(f, *layer, exits),
            }
            f.at(done);
            f.add_to_cell(cell, 1);
            f.set_base(Base::Mac, 0);
            f.clear_base(Base::Net);
            f.clear_base(Base::Trans);
            f.jump(next);
            f.at(next);
        }
        f.emit(0);
    }
}

impl Element for Peel {
    element::facts!(handlers: HANDLERS);
}

/// Whether a value is one of a list.
fn is_one_of(value: Value, of: &[u16]) -> Expr {
    of.iter().fold(Expr::from(0), |found, one| found | value.equals(u64::from(*one)))
}

/// Removes bytes behind the addresses, which move back, and sets the frame's type if one is given.
fn shorten(f: &mut Builder, by: impl Into<Expr>, ethertype: Option<Expr>, exits: Exits) {
    let (front, back) = (f.eval(load(data(0, 8))), f.eval(load(data(8, 4))));
    f.pull(by);
    f.need(Base::Data, usize::from(ETHER), exits.truncated);
    f.store(data(0, 8), front);
    f.store(data(8, 4), back);
    if let Some(ethertype) = ethertype {
        f.store(TYPE, ethertype);
    }
    f.jump(exits.done);
}

/// VLAN tags.
fn untag(f: &mut Builder, tags: u16, exits: Exits) {
    for tag in 0..tags {
        let ethertype = f.eval(load(data(12 + 4 * tag, 2)));
        f.check(is_one_of(ethertype, &[VLAN, QINQ, QINQ_OLD]), exits.without);
        f.need(Base::Data, usize::from(ETHER + 4 * (tag + 1)), exits.truncated);
    }
    // Of the innermost tag.
    f.store_anno(packet::anno::VLAN_TCI, load(data(10 + 4 * tags, 2)));
    shorten(f, u64::from(4 * tags), None, exits);
}

/// Removes MPLS labels (RFC 3032). The first four bits behind the last one tell the payload (RFC 4928).
fn unlabel(f: &mut Builder, exits: Exits) {
    let ethertype = f.eval(load(TYPE));
    f.check(is_one_of(ethertype, &[MPLS, MPLS_UPSTREAM]), exits.without);
    for label in 0..MOST_LABELS {
        let at = ETHER + 4 * label;
        f.need(Base::Data, usize::from(at + 4), exits.truncated);
        let (last, further) = f.branch(load(Field::new(Base::Data, at * 8 + 23, 1)));
        f.at(last);
        f.need(Base::Data, usize::from(at + 5), exits.truncated);
        let version = f.eval(load(Field::new(Base::Data, (at + 4) * 8, 4)));
        let [four, six] = [IPV4, IPV6]
            .map(u64::from)
            .map(|kind| f.aside(|f| shorten(f, u64::from(4 * (label + 1)), Some(kind.into()), exits)));
        f.leave_if(version.equals(4), four);
        f.branch_to(version.equals(6), six, exits.unknown);
        f.at(further);
    }
    f.jump(exits.malformed);
}

/// The payload of the outer IP header.
struct Carried {
    /// Its length, as the IP header gives it.
    bytes: Value,
    /// Its offset in the frame.
    at: Value,
}

/// GRE, VXLAN and Geneve over IPv4 and IPv6.
fn untunnel(f: &mut Builder, layer: Layer, exits: Exits) {
    let protocol = u64::from(if layer == Layer::Gre { protocol::GRE } else { protocol::UDP });
    let (four, six) = (f.block(), f.block());
    // Both versions continue at the same block, with the values from their headers.
    let inside = f.block();
    let carried = Carried { bytes: f.param(inside), at: f.param(inside) };
    let is_later = f.param(inside);
    let ethertype = f.eval(load(TYPE));
    f.leave_if(ethertype.equals(u64::from(IPV4)), four);
    f.branch_to(ethertype.equals(u64::from(IPV6)), six, exits.without);

    f.at(four);
    f.need(Base::Data, usize::from(ETHER + 20), exits.without);
    f.check(load(data(ETHER + 9, 1)).equals(protocol), exits.without);
    let first = f.eval(load(data(ETHER, 1)));
    f.check(first.within(0x45, 0x4f), exits.malformed);
    let header = f.eval((first & 15) << 2);
    let total = f.eval(load(data(ETHER + 2, 2)));
    f.check(header.at_most(total), exits.malformed);
    // The whole packet, also if it lies in several segments.
    f.check(total.at_most(packet_len() - u64::from(ETHER)), exits.truncated);
    // More fragments, and the fragment offset.
    let part = load(data(ETHER + 6, 2)) & 0x3fff;
    f.jump_with(inside, [total - header, header + u64::from(ETHER), part]);

    f.at(six);
    f.need(Base::Data, usize::from(ETHER + 40), exits.without);
    f.check(load(data(ETHER + 6, 1)).equals(protocol), exits.without);
    f.check(load(Field::new(Base::Data, ETHER * 8, 4)).equals(6), exits.malformed);
    let bytes = f.eval(load(data(ETHER + 4, 2)));
    f.check(bytes.at_most(packet_len() - u64::from(ETHER + 40)), exits.truncated);
    f.jump_with(inside, [bytes.into(), Expr::from(u64::from(ETHER + 40)), Expr::from(0)]);

    f.at(inside);
    f.set_base(Base::Trans, carried.at);
    match layer {
        Layer::Gre => {
            f.leave_if(is_later, exits.fragment);
            gre(f, &carried, exits);
        }
        _ => {
            // Only a first fragment has the destination port.
            f.leave_if(is_later & 0x1fff, exits.without);
            let wanted = if layer == Layer::Vxlan { VXLAN_PORT } else { GENEVE_PORT };
            enough(f, &carried, 4, exits.without, exits.without);
            f.check(load(trans(2, 2)).equals(wanted), exits.without);
            f.leave_if(is_later, exits.fragment);
            enough(f, &carried, 16, exits.malformed, exits.truncated);
            let length = f.eval(load(trans(4, 2)));
            f.check(length.at_most(carried.bytes), exits.malformed);
            f.check(length.at_least(16), exits.malformed);
            if layer == Layer::Vxlan { vxlan(f, &carried, exits) } else { geneve(f, &carried, exits) }
        }
    }
}

/// Continues if the payload has so many bytes, else at `short`, and if they are in the packet, else at `els`.
fn enough(f: &mut Builder, carried: &Carried, bytes: u16, short: BlockId, els: BlockId) {
    f.check(carried.bytes.at_least(u64::from(bytes)), short);
    f.need(Base::Trans, usize::from(bytes), els);
}

/// Removes the outer frame with `header` bytes of its payload. The inner packet begins there; `kind` is its
/// EtherType.
fn uncover(f: &mut Builder, carried: &Carried, header: impl Into<Expr>, kind: impl Into<Expr>, exits: Exits) {
    let (header, kind) = (f.eval(header), f.eval(kind));
    f.check(header.at_most(carried.bytes), exits.malformed);
    let to = f.eval(carried.at + header);
    let (frame, packet) = f.branch(kind.equals(TYPE_ETHER));
    f.at(frame);
    f.check((header + u64::from(ETHER)).at_most(carried.bytes), exits.malformed);
    f.pull(to);
    f.need(Base::Data, usize::from(ETHER), exits.truncated);
    f.jump(exits.done);
    f.at(packet);
    // After the branch the outer Ethernet header must be shown to be there again.
    f.need(Base::Data, usize::from(ETHER), exits.truncated);
    shorten(f, to - u64::from(ETHER), Some(kind.into()), exits);
}

fn gre(f: &mut Builder, carried: &Carried, exits: Exits) {
    enough(f, carried, 4, exits.malformed, exits.truncated);
    let flags = f.eval(load(trans(0, 2)));
    // Bits that must be zero: the obsolete routing and recursion bits, and the version (RFC 2784, section
    // 2.3).
    f.leave_if(flags & 0x4fff, exits.malformed);
    let optional = |header, bit: u64| header + (((flags >> bit) & 1) << 2);
    let header = [15, 13, 12].into_iter().fold(Expr::from(4), optional);
    uncover(f, carried, header, load(trans(2, 2)), exits);
}

fn vxlan(f: &mut Builder, carried: &Carried, exits: Exits) {
    f.check(load(trans(8, 1)) & 8, exits.malformed);
    uncover(f, carried, 16, TYPE_ETHER, exits);
}

fn geneve(f: &mut Builder, carried: &Carried, exits: Exits) {
    let first = f.eval(load(trans(8, 1)));
    f.leave_if(first >> 6, exits.malformed);
    uncover(f, carried, ((first & 63) << 2) + 16, load(trans(10, 2)), exits);
}

const HANDLERS: &[Row<Peel>] = &[Row::named("peeled", |peel, cells| {
    let name = |layer: &Layer| LAYERS.iter().find(|(_, known)| known == layer).map_or("", |(name, _)| name);
    let lines = peel.layers.iter().zip(cells).map(|(layer, count)| format!("{} {count}", name(layer)));
    Some(lines.collect::<Vec<_>>().join("\n"))
})];
