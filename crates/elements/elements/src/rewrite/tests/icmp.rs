//! `ICMPRewriter`: errors in both directions.

use super::chain::Chain;
use super::{ACK, EXTERNAL, INSIDE, REMOTE, echo, expect_drop, seen, tcp, udp};
use crate::testing::{Exit, Out, Rig, TestPacket};
use etherparse::{Icmpv4Header, Icmpv4Type, PacketBuilder, icmpv4};
use packet::anno;

const NAT: super::chain::Declaration =
    ("nat", "IPRewriter", "pattern 203.0.113.1 1024-65535# - - 0 1, drop, REPLY_ANNO PAINT", 2, 2);
const ERRORS: super::chain::Declaration = ("errors", "ICMPRewriter", "nat pings, REPLY_ANNO PAINT", 1, 2);
const PINGS: super::chain::Declaration =
    ("pings", "ICMPPingRewriter", "pattern 203.0.113.1 1024-65535# - - 0 1, drop", 2, 2);
const ROUTER: &str = "192.0.2.254";

/// An ICMP error from a router about a packet, of which it quotes so many bytes.
fn error(from: &str, to: &str, kind: Icmpv4Type, about: &[u8], quoted: usize) -> TestPacket {
    let (from, to): (std::net::Ipv4Addr, std::net::Ipv4Addr) = (from.parse().unwrap(), to.parse().unwrap());
    let builder = PacketBuilder::ipv4(from.octets(), to.octets(), 64).icmpv4(kind);
    let mut bytes = vec![];
    builder.write(&mut bytes, &about[..quoted.min(about.len())]).expect("fits");
    TestPacket::ip(&bytes)
}

fn unreachable() -> Icmpv4Type {
    Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Port)
}

/// What an error quotes; its own checksums are right.
fn quoted(out: &Out) -> Vec<u8> {
    seen(&out.packet.bytes);
    let (_, payload) = Icmpv4Header::from_slice(&out.packet.bytes[20..]).expect("an ICMP header");
    payload.to_vec()
}

#[test]
fn an_error_from_outside_reaches_who_sent_the_packet() {
    for about in [udp(INSIDE, REMOTE, b"payload"), tcp(INSIDE, REMOTE, ACK, b"payload")] {
        for quote in [28, 38, 1000] {
            let mut chain = Chain::new(&[ERRORS, PINGS, NAT]);
            let sent = chain.push("nat", 0, &about.clone().with_anno(anno::PAINT, 5)).packet;
            for kind in [
                unreachable(),
                Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit),
                Icmpv4Type::ParameterProblem(icmpv4::ParameterProblemHeader::PointerIndicatesError(1)),
            ] {
                let out = chain.push("errors", 0, &error(ROUTER, EXTERNAL, kind, &sent.bytes, quote));
                assert_eq!(out.exit, Exit::Port(0));
                assert_eq!(
                    (seen(&out.packet.bytes).0.as_str(), seen(&out.packet.bytes).2.as_str()),
                    (ROUTER, INSIDE.0)
                );
                // What is quoted is bit by bit what the host had sent.
                let end = quote.min(about.bytes.len());
                assert_eq!(quoted(&out), about.bytes[..end], "{quote} bytes");
                let dst = u64::from(u32::from_be_bytes([10, 0, 0, 5]));
                assert_eq!((out.packet.anno(anno::DST_IP), out.packet.anno(anno::PAINT)), (dst, 5));
            }
        }
    }
}

#[test]
fn an_error_from_inside_hides_the_inside() {
    let mut chain = Chain::new(&[NAT, PINGS, ERRORS]);
    chain.push("nat", 0, &udp(INSIDE, REMOTE, b"q"));
    let answer = udp(REMOTE, (EXTERNAL, 1024), b"an answer");
    let inside = chain.push("nat", 1, &answer).packet;
    for from in [INSIDE.0, "10.0.0.254"] {
        let out = chain.push("errors", 0, &error(from, REMOTE.0, unreachable(), &inside.bytes, 1000));
        assert_eq!(out.exit, Exit::Port(0));
        let (src, _, dst, _) = seen(&out.packet.bytes);
        assert_eq!((src.as_str(), dst.as_str()), (EXTERNAL, REMOTE.0));
        assert_eq!(quoted(&out), answer.bytes);
    }
}

#[test]
fn errors_about_pings_are_translated() {
    let mut chain = Chain::new(&[NAT, PINGS, ERRORS]);
    let request = echo(INSIDE.0, REMOTE.0, 77, false, b"are you there");
    let sent = chain.push("pings", 0, &request).packet;
    let out = chain.push("errors", 0, &error(ROUTER, EXTERNAL, unreachable(), &sent.bytes, 1000));
    assert_eq!((out.exit.clone(), quoted(&out)), (Exit::Port(0), request.bytes));
    let answer = echo(REMOTE.0, EXTERNAL, 1024, true, b"yes");
    let inside = chain.push("pings", 1, &answer).packet;
    let out = chain.push("errors", 0, &error(INSIDE.0, REMOTE.0, unreachable(), &inside.bytes, 1000));
    assert_eq!((out.exit.clone(), quoted(&out)), (Exit::Port(0), answer.bytes));
    assert_eq!(seen(&out.packet.bytes).0, EXTERNAL);
}

#[test]
fn basic_nat_and_no_checksum_are_handled() {
    let basic = ("nat", "IPAddrRewriter", "pattern 203.0.113.1 - 0 1", 1, 2);
    let mut chain = Chain::new(&[basic, ("errors", "ICMPRewriter", "nat", 1, 1)]);
    let mut about = udp(INSIDE, REMOTE, b"no checksum");
    about.bytes[26..28].fill(0);
    let sent = chain.push("nat", 0, &about).packet;
    let out = chain.push("errors", 0, &error(ROUTER, EXTERNAL, unreachable(), &sent.bytes, 1000));
    assert_eq!(quoted(&out), about.bytes);
    // A later fragment has no ports, and needs none here.
    let mut about = udp(INSIDE, REMOTE, b"later fragment");
    about.bytes[7] = 8;
    let sum = {
        let (mut header, _) = etherparse::Ipv4Header::from_slice(&about.bytes).unwrap();
        header.header_checksum = header.calc_header_checksum();
        header.header_checksum
    };
    about.bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    let sent = chain.push("nat", 0, &about).packet;
    let out = chain.push("errors", 0, &error(ROUTER, EXTERNAL, unreachable(), &sent.bytes, 1000));
    assert_eq!(quoted(&out), about.bytes);
}

#[test]
fn a_port_offset_separates_what_goes_in_from_what_goes_out() {
    let mut chain = Chain::new(&[NAT, ("errors", "ICMPRewriter", "nat:1", 1, 3)]);
    let sent = chain.push("nat", 0, &udp(INSIDE, REMOTE, b"")).packet;
    let out = chain.push("errors", 0, &error(ROUTER, EXTERNAL, unreachable(), &sent.bytes, 1000));
    assert_eq!(out.exit, Exit::Port(2), "as replies: output 1 of the rewriter, behind 1");
    let inside = chain.push("nat", 1, &udp(REMOTE, (EXTERNAL, 1024), b"")).packet;
    let out = chain.push("errors", 0, &error(INSIDE.0, REMOTE.0, unreachable(), &inside.bytes, 1000));
    assert_eq!(out.exit, Exit::Port(1));
}

#[test]
fn what_is_not_rewritten_goes_to_the_second_output_or_is_dropped() {
    let about = udp(INSIDE, REMOTE, b"");
    let unmapped = error(ROUTER, EXTERNAL, unreachable(), &about.bytes, 1000);
    let ping = echo(ROUTER, EXTERNAL, 1, false, b"");
    let short = error(ROUTER, EXTERNAL, unreachable(), &about.bytes, 19);
    for (packet, reason) in [(&unmapped, "unmapped"), (&ping, "not-an-error"), (&short, "cut-off")] {
        let mut one = Chain::new(&[NAT, ("errors", "ICMPRewriter", "nat", 1, 1)]);
        expect_drop(&one.push("errors", 0, packet), reason);
        let mut two = Chain::new(&[NAT, ("errors", "ICMPRewriter", "nat", 1, 2)]);
        let out = two.push("errors", 0, packet);
        assert_eq!((out.exit, &out.packet), (Exit::Port(1), packet));
    }
    let mut chain = Chain::new(&[NAT, ("errors", "ICMPRewriter", "nat", 1, 2)]);
    expect_drop(&chain.push("errors", 0, &about), "not-icmp");
    expect_drop(&chain.push("errors", 0, &TestPacket::frame(&[0; 60])), "no-ip-header");
    let mut cut = unmapped.clone();
    cut.bytes.truncate(24);
    assert_eq!(chain.push("errors", 0, &cut).exit, Exit::Port(1));
}

#[test]
fn random_packets_pass_without_harm() {
    let mut chain = Chain::new(&[NAT, PINGS, ERRORS]);
    for packet in crate::testing::random_packets(3, 600) {
        chain.push("nat", 0, &packet);
        chain.push("errors", 0, &packet);
    }
}

#[test]
fn mistakes_are_reported() {
    let mistakes = |config| Chain::try_on(0, 1, &[NAT, ("e", "ICMPRewriter", config, 1, 1)]).err().unwrap();
    assert!(mistakes("nobody").contains("nobody is not an IP rewriter"));
    assert!(mistakes("e").contains("e is not an IP rewriter"));
    assert!(mistakes("nat:x").contains("nat:x is not an IP rewriter"));
    assert!(mistakes("nat:1").contains("the port offset needs more than 1 outputs"));
    assert!(mistakes("").contains("required argument MAPS"));
    assert!(mistakes("\"\"").contains("not an IP rewriter"));
    assert!(Rig::try_new("ICMPRewriter", "nat", 1, 1).is_err());
}
