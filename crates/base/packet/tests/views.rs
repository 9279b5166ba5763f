//! Views on known frames: exact values, exact errors, and no byte read twice.

use std::cell::RefCell;
use std::net::{Ipv4Addr, Ipv6Addr};

use packet::checksum::{self, Validity};
use packet::view::{Arp, Ethernet, Icmp, Icmp6, Ipv4, Ipv6, Tcp, Udp, VlanTag, icmp, ipv4, nd, tcp, vlan};
use packet::{Access, Error, Header, MacAddr, parse};

/// A frame that was made without this crate, checksums included.
fn seed(name: &str) -> Vec<u8> {
    let path = testkit::workspace::root().join("fuzz/seeds/packet_views").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Counts how often each byte is read, as a peer that changes bytes between reads would.
struct Watched {
    bytes: Vec<u8>,
    reads: RefCell<Vec<u32>>,
}

impl Watched {
    fn new(bytes: Vec<u8>) -> Watched {
        let reads = RefCell::new(vec![0; bytes.len()]);
        Watched { bytes, reads }
    }

    fn assert_read_once(&self, what: &str) {
        let reads = self.reads.replace(vec![0; self.bytes.len()]);
        assert!(reads.iter().all(|count| *count <= 1), "{what} reads a byte twice: {reads:?}");
    }
}

impl Access for Watched {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn copy_out(&self, offset: usize, out: &mut [u8]) -> bool {
        let read = self.bytes.copy_out(offset, out);
        if read {
            self.reads.borrow_mut()[offset..offset + out.len()].iter_mut().for_each(|count| *count += 1);
        }
        read
    }

    fn copy_in(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.bytes.copy_in(offset, bytes)
    }
}

#[test]
fn checks_and_parse_read_no_byte_twice() {
    let names = [
        "ipv4-tcp-options",
        "ipv4-udp",
        "ipv4-record-route-icmp-echo",
        "ipv4-icmp-unreachable",
        "qinq-ipv6-extensions-udp",
        "ipv6-auth-tcp",
        "ipv6-neighbour-solicitation",
        "ipv6-packet-too-big",
        "vlan-arp-request",
    ];
    for name in names {
        let frame = Watched::new(seed(name));
        let layers = parse::frame(&frame, 0);
        assert_eq!(frame.reads.borrow()[12], 1, "reads are counted");
        frame.assert_read_once(&format!("parse of {name}"));
        let end = layers.end;
        let _ = Ethernet::at(0).check(&frame);
        frame.assert_read_once("Ethernet");
        let net = layers.net.unwrap();
        if layers.is_ipv4() {
            let facts = Ipv4::at(net).check(&frame).unwrap();
            assert!(facts.check_sum().is_ok() && facts.options().iter().all(|option| option.is_ok()));
            frame.assert_read_once("IPv4, its checksum and its options");
        } else if layers.is_ipv6() {
            let _ = Ipv6::at(net).check(&frame);
            frame.assert_read_once("IPv6");
        } else {
            let _ = Arp::at(net).check(&frame);
            frame.assert_read_once("ARP");
        }
        let Some(trans) = layers.trans else { continue };
        let _ = Tcp::at(trans).check(&frame, end);
        frame.assert_read_once("TCP");
        let _ = Udp::at(trans).check(&frame, end);
        frame.assert_read_once("UDP");
        let _ = checksum::verify_udp(&frame, trans, end - trans, checksum::Sum::ZERO);
        frame.assert_read_once("UDP checksum");
        let _ = nd::Neighbor::check(&frame, trans, end);
        frame.assert_read_once("neighbour discovery");
        let _ = Icmp::at(trans).embedded(&frame, end).map(|_| frame.assert_read_once("ICMP error"));
        let _ = frame.reads.replace(vec![0; frame.bytes.len()]);
        let _ = Icmp6::at(trans).embedded(&frame, end).map(|_| frame.assert_read_once("ICMPv6 error"));
    }
}

#[test]
fn tcp_over_ipv4_reads_as_made() {
    let frame = seed("ipv4-tcp-options");
    let ip = Ipv4::at(14).check(&frame).unwrap();
    assert_eq!((ip.header_len, ip.total_len, ip.ttl, ip.protocol), (20, 65, 64, 6));
    assert_eq!((ip.src, ip.dst), (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 7)));
    assert_eq!(ip.check_sum(), Ok(()));
    let segment = Tcp::at(ip.payload).check(&frame, ip.end).unwrap();
    assert_eq!((segment.src_port, segment.dst_port, segment.seq, segment.ack), (1234, 80, 1, 2));
    assert_eq!((segment.flags, segment.window), (tcp::SYN | tcp::ACK, 4096));
    assert_eq!(&frame[segment.payload..ip.end], b"hello");
    let options: Vec<_> =
        segment.options.iter().map(|option| tcp::TcpOption::from(option.unwrap())).collect();
    assert_eq!(
        options,
        [
            tcp::TcpOption::Mss(1460),
            tcp::TcpOption::SackPermitted,
            tcp::TcpOption::Timestamps(1, 2),
            tcp::TcpOption::Nop,
            tcp::TcpOption::WindowScale(7)
        ]
    );
}

#[test]
fn each_wrong_ipv4_header_has_its_error() {
    let good = seed("ipv4-udp");
    let have_bytes = good.len() - 14;
    let truncated =
        |need_bytes, have_bytes| Error::Truncated { header: Header::Ipv4, need_bytes, have_bytes };
    let changed = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[14 + at] = byte;
        Ipv4::at(14).check(&frame).map(|facts| facts.check_sum())
    };
    assert_eq!(changed(0, 0x65), Err(Error::BadVersion { header: Header::Ipv4, found: 6 }));
    assert_eq!(changed(0, 0x44), Err(Error::HeaderTooShort { header: Header::Ipv4, found_bytes: 16 }));
    assert_eq!(changed(0, 0x4f), Err(truncated(60, have_bytes)));
    assert_eq!(changed(3, 19), Err(Error::BadLength { header: Header::Ipv4, found_bytes: 19 }));
    assert_eq!(changed(3, 200), Err(truncated(200, have_bytes)));
    assert_eq!(changed(8, 63), Ok(Err(Error::BadChecksum { header: Header::Ipv4 })));
    assert_eq!(Ipv4::at(14).check(&good[..33]), Err(truncated(20, 19)));
    assert_eq!(Ipv4::at(usize::MAX).check(&good), Err(truncated(20, 0)));
}

#[test]
fn each_wrong_transport_header_has_its_error() {
    let good = seed("ipv4-udp");
    let (at, end) = (34, 34 + 16);
    let length = |bytes: u16| {
        let mut frame = good.clone();
        assert!(Udp::at(at).set_len(&mut frame, bytes));
        Udp::at(at).check(&frame, end).map(|facts| facts.len)
    };
    assert_eq!(length(16), Ok(16));
    assert_eq!(length(8), Ok(8), "IP may carry more than UDP says");
    assert_eq!(length(7), Err(Error::BadLength { header: Header::Udp, found_bytes: 7 }));
    assert_eq!(length(17), Err(Error::Truncated { header: Header::Udp, need_bytes: 17, have_bytes: 16 }));
    let mut segment = vec![0; 24];
    let words = |segment: &mut Vec<u8>, words| {
        assert!(Tcp::at(0).set_header_words(segment, words));
        Tcp::at(0).check(segment, usize::MAX).map(|facts| facts.header_len)
    };
    assert_eq!(words(&mut segment, 6), Ok(24));
    assert_eq!(words(&mut segment, 4), Err(Error::HeaderTooShort { header: Header::Tcp, found_bytes: 16 }));
    let have = Error::Truncated { header: Header::Tcp, need_bytes: 28, have_bytes: 24 };
    assert_eq!(words(&mut segment, 7), Err(have));
}

#[test]
fn options_end_at_the_first_bad_length() {
    let frame = seed("ipv4-record-route-icmp-echo");
    let facts = Ipv4::at(14).check(&frame).unwrap();
    let read: Vec<_> =
        facts.options().iter().map(|option| option.map(|o| (o.kind, o.at, o.data.len()))).collect();
    // Kind 1 behind the seven bytes of record route is its padding.
    assert_eq!(read, [Ok((ipv4::RECORD_ROUTE, 0, 5)), Ok((1, 7, 0)), Ok((ipv4::ROUTER_ALERT, 8, 2))]);
    for bad in [0, 1, 7] {
        let mut frame = frame.clone();
        frame[14 + 20 + 9] = bad;
        let facts = Ipv4::at(14).check(&frame).unwrap();
        let options = facts.options();
        let last = options.iter().last().unwrap();
        let kind = ipv4::ROUTER_ALERT;
        assert_eq!(last, Err(Error::BadOption { header: Header::Ipv4, kind, at_bytes: 8 }), "length {bad}");
    }
}

#[test]
fn an_icmp_error_shows_the_packet_inside() {
    let frame = seed("ipv4-icmp-unreachable");
    let message = Icmp::at(34).check(&frame, frame.len()).unwrap();
    assert_eq!((message.kind, message.code), (icmp::UNREACHABLE, icmp::FRAGMENTATION_NEEDED));
    assert!(icmp::is_error(message.kind) && !icmp::has_id(message.kind));
    assert_eq!(Icmp::at(34).mtu(&frame), Some(1400));
    let inner = Icmp::at(34).embedded(&frame, frame.len()).unwrap();
    assert_eq!((inner.net, inner.trans, inner.payload_bytes), (42, Some(62), 8));
    assert_eq!((inner.ip.src, inner.ip.total_len), (Ipv4Addr::new(192, 0, 2, 7), 528));
    assert!(inner.ip.check_sum().is_ok());
    assert_eq!(Udp::at(62).src_port(&frame), Some(5353));
    // A message that ends inside the inner header has no packet inside.
    assert!(matches!(Icmp::at(34).embedded(&frame, 61), Err(Error::Truncated { .. })));
    assert_eq!(Icmp::at(34).embedded(&frame, 62).map(|inner| inner.trans), Ok(None));
    let len = frame.len() - 34;
    assert_eq!(checksum::verify_icmp(&frame, 34, len), Validity::Good);
    // Options of the inner header that lie behind the message's end are not read.
    let mut with_options = frame.clone();
    assert!(Ipv4::at(42).set_header_words(&mut with_options, 7));
    assert!(Icmp::at(34).embedded(&with_options, 70).is_ok());
    let truncated = Error::Truncated { header: Header::Ipv4, need_bytes: 28, have_bytes: 27 };
    assert_eq!(Icmp::at(34).embedded(&with_options, 69), Err(truncated));

    let frame = seed("ipv6-packet-too-big");
    assert_eq!(Icmp6::at(54).word(&frame), Some(1280));
    let inner = Icmp6::at(54).embedded(&frame, frame.len()).unwrap();
    assert_eq!((inner.net, inner.trans, inner.ip.next_header), (62, Some(102), 17));
}

#[test]
fn neighbour_messages_are_read_and_written() {
    let frame = seed("ipv6-neighbour-solicitation");
    let ip = Ipv6::at(14).check(&frame).unwrap();
    assert_eq!(ip.hop_limit, nd::HOP_LIMIT);
    let len = ip.end - ip.payload;
    let pseudo = checksum::pseudo_ipv6(ip.src, ip.dst, ip.next_header, len as u32);
    assert_eq!(checksum::verify_icmp6(&frame, ip.payload, len, pseudo), Validity::Good);
    let solicitation = nd::Neighbor::check(&frame, ip.payload, ip.end).unwrap();
    let target: Ipv6Addr = "fe80::2".parse().unwrap();
    assert_eq!(solicitation.target, target);
    assert_eq!(solicitation.link_addr, Some(MacAddr([2, 0, 0, 0, 0, 2])));
    assert!(!solicitation.is_advertisement);
    assert_eq!(ip.dst, nd::solicited_node(target));
    assert_eq!(nd::multicast_mac(ip.dst).to_string(), "33:33:ff:00:00:02");
    let mut written = vec![0; frame.len()];
    assert!(solicitation.write(&mut written, ip.payload, ip.src, ip.dst));
    assert_eq!(written[ip.payload..], frame[ip.payload..], "checksum and all");
    assert!(!solicitation.write(&mut written, ip.payload + 1, ip.src, ip.dst));

    let mut bad = frame.clone();
    bad[ip.payload + 25] = 0;
    let zero = Error::BadOption { header: Header::Icmp6, kind: 1, at_bytes: 0 };
    assert_eq!(nd::Neighbor::check(&bad, ip.payload, ip.end), Err(zero));
    bad[ip.payload + 8] = 0xff;
    assert!(matches!(nd::Neighbor::check(&bad, ip.payload, ip.end), Err(Error::BadField { .. })));
}

#[test]
fn arp_and_tags_read_as_made() {
    let frame = seed("vlan-arp-request");
    let stack = vlan::walk(&frame, 14, Ethernet::at(0).ethertype(&frame).unwrap()).unwrap();
    assert_eq!((stack.tci, stack.count, stack.payload, stack.ethertype), ([100, 0], 1, 18, 0x0806));
    let request = Arp::at(18).check(&frame).unwrap();
    assert_eq!((request.op, request.sender_ip), (1, Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!((request.target_mac, request.target_ip), (MacAddr::ZERO, Ipv4Addr::new(10, 0, 0, 2)));
    let mut other = frame.clone();
    assert!(Arp::at(18).set_hlen(&mut other, 8));
    let error = Error::BadField { header: Header::Arp, field: "hardware address length", found: 8 };
    assert_eq!(Arp::at(18).check(&other), Err(error));

    let mut frame = seed("qinq-ipv6-extensions-udp");
    let stack = vlan::walk(&frame, 14, 0x88a8).unwrap();
    assert_eq!((stack.tci, stack.count, stack.ethertype), ([0x2064, 0x00c8], 2, 0x86dd));
    assert!(VlanTag::at(14).set_id(&mut frame, 0x0abc) && VlanTag::at(14).set_dei(&mut frame, true));
    assert_eq!(frame[14..16], [0x3a, 0xbc]);
}

#[test]
fn every_error_has_a_reason_that_is_listed() {
    let header = Header::Ipv4;
    let errors = [
        Error::Truncated { header, need_bytes: 20, have_bytes: 3 },
        Error::BadVersion { header, found: 5 },
        Error::HeaderTooShort { header, found_bytes: 4 },
        Error::BadLength { header, found_bytes: 4 },
        Error::BadChecksum { header },
        Error::BadOption { header, kind: 7, at_bytes: 0 },
        Error::BadField { header, field: "x", found: 1 },
        Error::TooMany { header, limit: 2 },
        Error::CsumBeyondEnd { start_bytes: 1, offset_bytes: 2, len_bytes: 3 },
        Error::CsumOddOffset { offset_bytes: 1 },
    ];
    assert_eq!(errors.map(Error::reason), Error::REASONS);
    assert_eq!(errors[0].to_string(), "IPv4: 20 bytes needed, 3 there");
}
