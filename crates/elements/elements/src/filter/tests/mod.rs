//! Tests of the folder, and what they share: expressions at random, and headers of test packets.

mod bytes;
mod elements;
mod golden;
mod language;
mod listing;
mod lists;
mod lowering;

use super::expr::{
    Carrier, Compare, Direction, Expr, HeaderField, Headers, Layer, PortProtocol, Relation, Six, Test, Values,
};
use crate::testing::{TestPacket, random_frames};
use click::config::{Ip6Prefix, NameTable, Names};
use diag::{Diagnostics, SourceMap, Spanned};
use proptest::prelude::*;

/// Names that the tests know.
fn names() -> NameTable {
    let mut names = NameTable::new();
    let mut diags = Diagnostics::new();
    let info = Spanned::derived(
        "INTERNALNET 10.0.0.0/8, BASTION 10.0.1.2, gate 10.0.2.1/24 0:1:2:3:4:5",
        diag::Span::NONE,
    );
    names.address_info("info", &info, &mut diags);
    assert!(diags.is_empty());
    names
}

/// Parses an expression; its canonical text, or its mistakes.
fn read(text: &str) -> Result<Expr, String> {
    let names = names();
    let mut map = SourceMap::new();
    let source = map.add("f", text);
    let spanned = Spanned::verbatim(text, map.whole(source));
    let mut diags = Diagnostics::new();
    let scoped: &dyn Names = &names.scoped("x");
    let pattern = super::expr::parse(&spanned, scoped, &mut diags);
    match pattern {
        Some(pattern) => Ok(pattern.expr),
        None => Err(diags.render_short(&map)),
    }
}

/// The headers of a test packet, where they lie in its bytes.
fn headers(packet: &TestPacket) -> Headers<'_> {
    let from = |at: Option<i32>| {
        let at = at.and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| packet.bytes.get(at..)).unwrap_or_default()
    };
    Headers { mac: from(packet.mac), net: from(packet.net), trans: from(packet.trans) }
}

/// IP packets at random, with an Ethernet header before them or without; some have no header
/// annotations.
fn packets(seed: u64, count: usize) -> Vec<TestPacket> {
    let frames = random_frames(seed, count);
    let packets = frames.iter().enumerate().map(|(at, frame)| {
        let header = 4 * frame.get(14).map_or(5, |first| i32::from(first & 15));
        let net = frame.get(12..14) == Some([8, 0].as_slice());
        match at % 16 {
            0 => TestPacket::frame(frame),
            _ if net => TestPacket { net: Some(14), trans: Some(14 + header), ..TestPacket::frame(frame) },
            _ => TestPacket::frame(frame),
        }
    });
    packets.collect()
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Src), Just(Direction::Dst), Just(Direction::Either), Just(Direction::Both)]
}

/// Comparisons with values that `random_frames` likes to make, and others.
fn compare(max: u64, liked: &'static [u64]) -> impl Strategy<Value = Compare> {
    let value = prop_oneof![4 => proptest::sample::select(liked), 1 => 0..=max];
    let relation = prop_oneof![
        3 => Just(Relation::Equal),
        1 => Just(Relation::NotEqual),
        1 => Just(Relation::Less),
        1 => Just(Relation::LessEqual),
        1 => Just(Relation::Greater),
        1 => Just(Relation::GreaterEqual)
    ];
    let mask = prop_oneof![3 => Just(None), 1 => (1..=max).prop_map(Some)];
    (value.clone(), value, relation, mask, any::<bool>()).prop_map(|(a, b, relation, mask, range)| {
        let equality = matches!(relation, Relation::Equal | Relation::NotEqual);
        let values = match range && equality {
            true => Values::Range(a.min(b), a.max(b)),
            false => Values::One(a),
        };
        Compare { mask, relation, values }
    })
}

fn host() -> impl Strategy<Value = Test> {
    let address = prop_oneof![
        (0u32..3, 0u32..4).prop_map(|(c, d)| 0x0a00_0000 | c << 8 | d),
        (proptest::sample::select(&[10u32, 192, 204, 224, 255][..]), 0u32..3, 0u32..4)
            .prop_map(|(a, c, d)| a << 24 | 168 << 16 | c << 8 | d),
    ];
    let mask = prop_oneof![
        Just(u32::MAX),
        (0u32..=32).prop_map(|len| u32::MAX.checked_shl(32 - len).unwrap_or(0)),
        any::<u32>().prop_filter("some bits", |mask| *mask != 0),
    ];
    (direction(), address, mask, any::<bool>()).prop_map(|(direction, address, mask, negated)| Test::Host {
        direction,
        address: address & mask,
        mask,
        negated,
    })
}

fn ether() -> impl Strategy<Value = Test> {
    let mask = prop_oneof![Just(0xffff_ffff_ffffu64), 1..=0xffff_ffff_ffffu64];
    let address = prop_oneof![Just(0xffff_ffff_ffffu64), Just(0x0200_0102_0001), 0..=0xffff_ffff_ffffu64];
    (direction(), address, mask, any::<bool>()).prop_map(|(direction, address, mask, negated)| Test::Ether {
        direction,
        address: address & mask,
        mask,
        negated,
    })
}

fn field() -> impl Strategy<Value = Test> {
    let carrier = prop_oneof![
        2 => Just(Carrier::Ip),
        1 => Just(Carrier::Transport),
        1 => Just(Carrier::TcpUdp),
        1 => Just(Carrier::Protocol(6)),
        1 => Just(Carrier::Protocol(1)),
        1 => Just(Carrier::Protocol(47))
    ];
    let bytes = (carrier, 0u16..30, 1u8..=4).prop_flat_map(|(carrier, at, len)| {
        let field = HeaderField { carrier, bit: at * 8, width: len * 8 };
        compare(field.max_value(), &[0, 1, 2, 8, 0x10, 0x40, 0x45, 0x50])
            .prop_map(move |compare| Test::Field(field, compare))
    });
    let named =
        proptest::sample::select(&[(0u16, 4u8), (4, 4), (8, 6), (8, 8), (16, 16), (32, 16), (64, 8)][..]);
    let named = named.prop_flat_map(|(bit, width)| {
        let field = HeaderField { carrier: Carrier::Ip, bit, width };
        compare(field.max_value(), &[0, 1, 4, 5, 6, 7, 15])
            .prop_map(move |compare| Test::Field(field, compare))
    });
    let transport = prop_oneof![Just((1u8, 0u16, 8u8)), Just((6, 112, 16))];
    let transport = transport.prop_flat_map(|(protocol, bit, width)| {
        let field = HeaderField { carrier: Carrier::Protocol(protocol), bit, width };
        compare(field.max_value(), &[0, 3, 8, 11, 12]).prop_map(move |compare| Test::Field(field, compare))
    });
    prop_oneof![bytes, named, transport]
}

fn layer() -> impl Strategy<Value = Test> {
    use Layer::{Arp, EtherType, Geneve, Mpls, Qinq, Vlan, Vxlan};
    let layer = proptest::sample::select(&[Vlan, Vlan, Qinq, Mpls, Arp, EtherType, Vxlan, Geneve][..]);
    layer.prop_flat_map(|layer| {
        let largest = layer.number().map_or(1, |(largest, _)| largest);
        let number = (compare(largest, &[0, 1, 5, 100, 0x800, 0x806]), any::<bool>());
        number.prop_map(move |(number, given)| {
            let given = layer == EtherType || (given && layer != Arp);
            Test::Layer(layer, given.then_some(number))
        })
    })
}

fn six() -> impl Strategy<Value = Test> {
    let address = (0u128..3, 0u128..4).prop_map(|(net, host)| 0x2001_0db8 << 96 | net << 64 | host);
    let bits = prop_oneof![Just(128u8), 0u8..=128];
    let host = (direction(), address, bits, any::<bool>()).prop_map(|(direction, address, bits, negated)| {
        Six::Host { direction, address: address & Ip6Prefix::mask(bits), bits, negated }
    });
    let protocol =
        prop_oneof![Just(PortProtocol::TcpUdp), Just(PortProtocol::One(6)), Just(PortProtocol::One(17))];
    let port = (direction(), protocol, compare(0xffff, &[53, 80, 443]))
        .prop_map(|(direction, protocol, compare)| Six::Port { direction, protocol, compare });
    let proto = compare(255, &[0, 6, 17, 44, 58]).prop_map(Six::Proto);
    prop_oneof![1 => Just(Six::Any), 3 => host, 2 => port, 1 => proto].prop_map(Test::Six)
}

fn test() -> impl Strategy<Value = Test> {
    let protocol = prop_oneof![
        2 => Just(PortProtocol::TcpUdp),
        1 => Just(PortProtocol::One(6)),
        1 => Just(PortProtocol::One(17)),
        1 => Just(PortProtocol::One(33))
    ];
    let port = (direction(), protocol, compare(0xffff, &[53, 80, 443, 1234, 20_053, 40_053, 60_053]));
    prop_oneof![
        4 => host(),
        1 => ether(),
        2 => compare(255, &[1, 6, 17, 47]).prop_map(Test::Proto),
        1 => Just(Test::TcpUdp),
        1 => any::<bool>().prop_map(Test::Fragment),
        4 => port.prop_map(|(direction, protocol, compare)| Test::Port { direction, protocol, compare }),
        2 => proptest::sample::select(&[0u8, 2, 4, 16, 18, 32, 255][..]).prop_map(Test::TcpFlags),
        2 => field(),
        2 => layer(),
        2 => six(),
    ]
}

/// Expressions as the parser makes them.
fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![10 => test().prop_map(Expr::Test), 1 => Just(Expr::True), 1 => Just(Expr::False)];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Expr::Not(Box::new(inner))),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Expr::All),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Expr::Any),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| Expr::If(Box::new([a, b, c]))),
        ]
    })
}
