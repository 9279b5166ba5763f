//! `FTPPortMapper` in front of its rewriters: commands, mappings and sequence numbers.

use super::chain::{Chain, Declaration};
use super::{ACK, EXTERNAL, INSIDE, SYN, expect, seen, tcp, udp};
use crate::testing::{Exit, TestPacket, mistakes};
use etherparse::{Ipv4Header, PacketBuilder, TcpHeader, TcpOptionElement};

const SERVER: (&str, u16) = ("198.51.100.7", 21);
const NAT: Declaration = ("nat", "IPRewriter", "pattern 203.0.113.1 61024-65535# - - 0 1, drop", 2, 2);
const MAPPER: Declaration = ("ftp", "FTPPortMapper", "nat, nat, 0", 1, 1);

/// A segment with these numbers.
fn segment(
    from: super::End,
    to: super::End,
    numbers: (u32, u32),
    payload: &[u8],
    sack: &[(u32, u32)],
) -> TestPacket {
    let mut header = TcpHeader::new(from.1, to.1, numbers.0, 512);
    (header.ack, header.acknowledgment_number) = (true, numbers.1);
    if let [first, rest @ ..] = sack {
        let mut others = [None; 3];
        others.iter_mut().zip(rest).for_each(|(other, block)| *other = Some(*block));
        let options = [TcpOptionElement::Noop, TcpOptionElement::SelectiveAcknowledgement(*first, others)];
        header.set_options(&options).expect("fits");
    }
    let [src, dst] = [from.0, to.0].map(|address| address.parse::<std::net::Ipv4Addr>().unwrap().octets());
    let mut bytes = vec![];
    PacketBuilder::ipv4(src, dst, 64).tcp_header(header).write(&mut bytes, payload).expect("fits");
    TestPacket::ip(&bytes)
}

/// Sequence and acknowledgement number, selective acknowledgements, and payload.
fn numbers(packet: &TestPacket) -> (u32, u32, Vec<(u32, u32)>, String) {
    seen(&packet.bytes);
    let (ip, rest) = Ipv4Header::from_slice(&packet.bytes).expect("an IPv4 header");
    assert_eq!(usize::from(ip.total_len), packet.bytes.len());
    let (tcp, payload) = TcpHeader::from_slice(rest).expect("a TCP header");
    let blocks = tcp.options_iterator().filter_map(|option| match option {
        Ok(TcpOptionElement::SelectiveAcknowledgement(first, rest)) => {
            Some([Some(first)].into_iter().chain(rest).flatten().collect::<Vec<_>>())
        }
        _ => None,
    });
    let payload = String::from_utf8(payload.to_vec()).expect("text");
    (tcp.sequence_number, tcp.acknowledgment_number, blocks.flatten().collect(), payload)
}

/// A client's segment through mapper and rewriter.
fn client(chain: &mut Chain, numbers: (u32, u32), payload: &str) -> TestPacket {
    let out = chain.push("ftp", 0, &segment(INSIDE, SERVER, numbers, payload.as_bytes(), &[]));
    assert_eq!(out.exit, Exit::Port(0));
    let out = chain.push("nat", 0, &out.packet);
    assert_eq!(out.exit, Exit::Port(0));
    out.packet
}

fn open(chain: &mut Chain) {
    let out = chain.push("nat", 0, &tcp(INSIDE, SERVER, SYN, b""));
    expect(&out, 0, (EXTERNAL, 61024), SERVER);
}

#[test]
fn a_command_is_mapped_and_numbers_behind_it_move() {
    for (command, mapped) in [
        ("PORT 10,0,0,5,15,160\r\n", "PORT 203,0,113,1,238,97\r\n"),
        ("EPRT |1|10.0.0.5|4000|\r\n", "EPRT |1|203.0.113.1|61025|\r\n"),
    ] {
        let more = (mapped.len() - command.len()) as u32;
        let mut chain = Chain::new(&[MAPPER, NAT]);
        open(&mut chain);
        let length = command.len() as u32;
        let sent = client(&mut chain, (1001, 500), command);
        assert_eq!(numbers(&sent), (1001, 500, vec![], mapped.into()));
        assert_eq!(chain.read("ftp", "commands"), "1");
        // Sent again, it is the same again.
        assert_eq!(numbers(&client(&mut chain, (1001, 500), command)).3, mapped);
        let next = client(&mut chain, (1001 + length, 500), "LIST\r\n");
        assert_eq!(numbers(&next), (1001 + length + more, 500, vec![], "LIST\r\n".into()));

        // The server connects to what the command names, and acknowledges what it got.
        let data = segment(("198.51.100.7", 20), (EXTERNAL, 61025), (1, 0), b"", &[]);
        expect(&chain.push("nat", 1, &data), 1, ("198.51.100.7", 20), ("10.0.0.5", 4000));
        let all = 1001 + length + more;
        let blocks = [(all, all + 6), (all + 10, all + 20)];
        let answer = segment(SERVER, (EXTERNAL, 61024), (500, all), b"200 ok\r\n", &blocks);
        let back = chain.push("nat", 1, &answer);
        expect(&back, 1, SERVER, INSIDE);
        let all = 1001 + length;
        let blocks = vec![(all, all + 6), (all + 10, all + 20)];
        assert_eq!(numbers(&back.packet), (500, all, blocks, "200 ok\r\n".into()));
        // A second command: the changes add up.
        let second = client(&mut chain, (all + 6, 508), command);
        assert_eq!((numbers(&second).0, numbers(&second).3), (all + 6 + more, mapped.to_string()));
        let third = client(&mut chain, (all + 6 + length, 508), "QUIT\r\n");
        assert_eq!(numbers(&third).0, all + 6 + length + 2 * more);
        let table = chain.read("nat", "tcp_table");
        assert!(table.contains("[*0 1]") && !table.contains("255"), "{table}");
    }
}

#[test]
fn what_follows_a_command_and_what_pads_it_is_kept() {
    let mut chain = Chain::new(&[MAPPER, NAT]);
    open(&mut chain);
    let mut padded = segment(INSIDE, SERVER, (1001, 5), b"PORT 10,0,0,5,15,160\r\nNOOP\r\n", &[]);
    padded.bytes.extend([0xee; 9]);
    let out = chain.push("ftp", 0, &padded).packet;
    let out = chain.push("nat", 0, &out).packet;
    assert_eq!(numbers(&out).3, "PORT 203,0,113,1,238,97\r\nNOOP\r\n");
    // A command that gets shorter.
    let long = ("long", "IPRewriter", "pattern 9.9.9.9 7-9# - - 0 1, drop", 2, 2);
    let mut chain = Chain::new(&[("ftp", "FTPPortMapper", "long, long, 0", 1, 1), long]);
    chain.push("long", 0, &tcp(INSIDE, SERVER, SYN, b""));
    let out =
        chain.push("ftp", 0, &segment(INSIDE, SERVER, (1, 5), b"PORT 10,0,0,5,15,160\r\nX\r\n", &[])).packet;
    let out = chain.push("long", 0, &out).packet;
    assert_eq!(numbers(&out).3, "PORT 9,9,9,9,0,8\r\nX\r\n");
    let next = chain.push("ftp", 0, &segment(INSIDE, SERVER, (26, 5), b"Y\r\n", &[])).packet;
    assert_eq!(numbers(&chain.push("long", 0, &next).packet).0, 22);
}

#[test]
fn what_is_no_command_of_the_clients_passes() {
    let mut chain = Chain::new(&[MAPPER, NAT]);
    let command = segment(INSIDE, SERVER, (1, 1), b"PORT 10,0,0,5,15,160\r\n", &[]);
    assert_eq!(chain.push("ftp", 0, &command).packet.bytes, command.bytes, "an unknown connection");
    assert_eq!(chain.read("ftp", "unmapped"), "1");
    let own = ("ftp", "FTPPortMapper", "nat, nat, 0, OWN_ADDRESS true", 1, 1);
    let mut chain = Chain::new(&[own, NAT]);
    open(&mut chain);
    for packet in [
        segment(INSIDE, SERVER, (1, 1), b"PORT 10,0,0,6,15,160\r\n", &[]),
        segment(INSIDE, SERVER, (1, 1), b"LIST PORT\r\n", &[]),
        segment(INSIDE, SERVER, (1, 1), b"", &[]),
        tcp(INSIDE, SERVER, ACK, b"PORT"),
        udp(INSIDE, SERVER, b"PORT 10,0,0,5,15,160\r\n"),
        TestPacket::ip(&command.bytes[..30]),
        TestPacket::ip(b""),
    ] {
        let out = chain.push("ftp", 0, &packet);
        assert_eq!((out.exit, out.packet.bytes), (Exit::Port(0), packet.bytes));
    }
    assert_eq!((chain.read("ftp", "commands"), chain.read("ftp", "unmapped")), ("0".into(), "0".into()));
}

#[test]
fn a_full_range_leaves_the_command_and_the_next_refusal_alone() {
    let nat = ("nat", "TCPRewriter", "pattern 203.0.113.1 61024-61024# - - 0 1, drop", 2, 2);
    let data = ("data", "IPRewriter", "pattern 203.0.113.1 7-8# - - 0 0", 1, 1);
    let mut chain = Chain::new(&[("ftp", "FTPPortMapper", "nat, data, 0", 1, 1), nat, data]);
    open(&mut chain);
    let first = client(&mut chain, (1, 1), "PORT 10,0,0,5,15,160\r\n");
    assert_eq!(numbers(&first).3, "PORT 203,0,113,1,0,7\r\n");
    let second = client(&mut chain, (23, 1), "PORT 10,0,0,5,15,161\r\n");
    assert_eq!(numbers(&second).3, "PORT 203,0,113,1,0,8\r\n");
    let third = client(&mut chain, (45, 1), "PORT 10,0,0,5,15,162\r\n");
    assert_eq!(numbers(&third).3, "PORT 10,0,0,5,15,162\r\n");
    assert_eq!(chain.read("ftp", "unmapped"), "1");
    let other = tcp(("10.0.0.5", 4003), ("198.51.100.7", 20), SYN, b"");
    super::expect_drop(&chain.push("data", 0, &other), "port-exhausted");
}

#[test]
fn rewriters_that_keep_no_connections_are_refused() {
    let text = mistakes("FTPPortMapper", "nat, nat, x", 1, 1).join("\n");
    assert!(text.contains("no element `nat`") && text.contains("DATA_REWRITER_INPUT"), "{text}");
    let udp = ("nat", "UDPRewriter", "drop", 1, 1);
    let text = Chain::try_on(0, 1, &[udp, MAPPER]).err().expect("a mistake");
    assert!(text.contains("is a UDPRewriter"), "{text}");
}
