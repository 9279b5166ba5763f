//! The router of the examples: offline, under damaged frames, and between two kernels.

use crate::bad_input::any_frames;
use crate::cable::{PATIENCE, connect, echo, echo_tcp, ended, exchange, started};
use crate::captures::{self, frames};
use crate::namespaces::{Host, icmp_socket, inside};
use crate::packets::Ipv4;
use crate::program::Folder;
use etherparse::Icmpv4Type;
use etherparse::icmpv4::TimeExceededCode;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

const ROUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 254), Ipv4Addr::new(192, 0, 2, 1)];

fn written(folder: &Folder, name: &str) -> Vec<Ipv4> {
    frames(&folder.path(name)).iter().filter_map(|frame| Ipv4::read(frame)).collect()
}

#[test]
fn an_office_reaches_the_internet() {
    let folder = Folder::with_examples(&["captures", "router"]);
    let accounts = folder.millrace(&["run", "router/chain.toml", "--json"]).sound().accounts();
    accounts.assert_balanced();
    let office: Vec<Ipv4> = frames(&folder.path("captures/office.pcap"))
        .iter()
        .filter(|frame| frame[12..14] == [8, 0])
        .filter_map(|frame| Ipv4::read(frame))
        .collect();
    let internet = written(&folder, "router/internet.pcap");
    // In order, with one hop less, to the neighbour that answered ARP; redirects for senders there come
    // from the router itself.
    let (redirects, forwarded): (Vec<Ipv4>, Vec<Ipv4>) =
        internet.into_iter().partition(|packet| ROUTER.contains(&packet.source));
    let expected: Vec<Ipv4> = office
        .iter()
        .filter(|packet| packet.destination.octets()[0] != 10)
        .map(|packet| Ipv4 { ttl: packet.ttl - 1, destination_mac: [2, 0, 0, 0, 1, 2], ..packet.clone() })
        .collect();
    assert!(expected.len() > 1_000);
    assert_eq!(forwarded, expected);
    assert!(redirects.iter().all(|packet| matches!(packet.icmp, Some(Icmpv4Type::Redirect(_)))));
    // What is for the office itself turns round, and its senders are told of the shorter way.
    let back = written(&folder, "router/back.pcap");
    let (redirects, turned): (Vec<&Ipv4>, Vec<&Ipv4>) =
        back.iter().partition(|packet| ROUTER.contains(&packet.source));
    let expected = office.iter().filter(|packet| packet.destination.octets()[0] == 10);
    assert_eq!(turned.len(), expected.count());
    assert!(redirects.iter().all(|packet| matches!(packet.icmp, Some(Icmpv4Type::Redirect(_)))));
    assert!(!redirects.is_empty());
}

#[test]
fn frames_of_any_content_are_routed_or_counted() {
    let folder = Folder::with_examples(&["router"]);
    std::fs::create_dir(folder.path("captures")).expect("a folder");
    let input = any_frames(500);
    captures::write(&folder.path("captures/office.pcap"), input.iter().map(Vec::as_slice));
    for engine in ["native", "evaluator"] {
        let run = folder.millrace(&["run", "router/chain.toml", "--json", "--engine", engine]).sound();
        let accounts = run.accounts();
        accounts.assert_balanced();
        assert_eq!(accounts.received, input.len() as u64);
        let written = ["router/internet.pcap", "router/back.pcap"].map(|name| frames(&folder.path(name)));
        assert_eq!(written.iter().map(Vec::len).sum::<usize>() as u64, accounts.sent);
        assert!(accounts.sent > 50, "{}", accounts.sent);
        let longest = written.iter().flatten().map(Vec::len).max().expect("some");
        assert!(longest <= 1514, "a frame of {longest} bytes");
    }
}

/// Two hosts, the router of the examples between them.
fn hosts() -> (Host, Host, Folder) {
    let inside = Host::new("inside", "eth0", 1, "10.0.0.2/16");
    let outside = Host::new("outside", "eth1", 2, "192.0.2.2/24");
    inside.route_by("10.0.0.254");
    outside.route_by("192.0.2.1");
    (inside, outside, Folder::with_examples(&["router", "napt"]))
}

/// An ICMP echo request, and what comes back: source, type and code.
pub fn ping(socket: &UdpSocket, to: Ipv4Addr, payload: usize) -> (Ipv4Addr, Icmpv4Type) {
    let header = etherparse::IcmpEchoHeader { id: 77, seq: 1 };
    let payload = vec![0x5a; payload];
    let message = etherparse::Icmpv4Header::with_checksum(Icmpv4Type::EchoRequest(header), &payload);
    let bytes = [&message.to_bytes()[..], &payload].concat();
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket.send_to(&bytes, SocketAddr::from((to, 0))).expect("sent");
    let mut buffer = vec![0; 65_536];
    let len = socket.recv(&mut buffer).expect("an answer");
    let packet = etherparse::SlicedPacket::from_ip(&buffer[..len]).expect("IP");
    let Some(etherparse::NetSlice::Ipv4(ip)) = &packet.net else { panic!("no IPv4: {packet:?}") };
    let Some(etherparse::TransportSlice::Icmpv4(icmp)) = &packet.transport else { panic!("{packet:?}") };
    if let Icmpv4Type::EchoReply(echo) = icmp.icmp_type() {
        assert!(echo == header && icmp.payload() == payload, "{echo:?}");
    }
    (ip.header().source_addr(), icmp.icmp_type())
}

#[test]
fn two_kernels_talk_through_the_router() {
    if !inside("router::two_kernels_talk_through_the_router") {
        return;
    }
    let (inside, outside, folder) = hosts();
    for host in [&inside, &outside] {
        host.shell("ethtool -K eth0 tx off");
    }
    let at = echo(&outside, "192.0.2.2:7");
    let chain = "router/devices.toml";
    let run = started(&folder, &[chain, "-D", "router.MTU1=600"], &inside, at);

    // Pings to the router's own addresses and through it.
    let socket = inside.within(icmp_socket);
    for to in [ROUTER[0], ROUTER[1], Ipv4Addr::new(192, 0, 2, 2)] {
        let (from, answer) = ping(&socket, to, 56);
        assert!(from == to && matches!(answer, Icmpv4Type::EchoReply(_)), "{from} {answer:?}");
    }
    // A packet whose time is over.
    socket.set_ttl(1).expect("set");
    let (from, answer) = ping(&socket, Ipv4Addr::new(192, 0, 2, 2), 56);
    let expired = Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit);
    assert_eq!((from, answer), (ROUTER[0], expired));

    // Datagrams too long for the far network: fragmented by the router where the kernel allows it, else
    // refused with an error, after which the kernel makes shorter ones.
    let udp = inside.within(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
    udp.set_read_timeout(Some(std::time::Duration::from_millis(300))).expect("a timeout");
    let long: Vec<u8> = (0..1400u32).map(|at| (at * 3) as u8).collect();
    let (mut buffer, mut tries) = ([0; 2000], 0);
    let got = loop {
        tries += 1;
        assert!(tries < 60, "datagrams of 1,400 bytes never arrive");
        let sent = udp.send_to(&long, at);
        match sent.and_then(|_| udp.recv(&mut buffer)) {
            Ok(len) => break len,
            Err(_) => continue,
        }
    };
    assert!(buffer[..got] == long);

    let (at, _) = echo_tcp(&outside, "192.0.2.2:7");
    let bulk: Vec<u8> = (0..300_000u32).map(|at| (at / 7) as u8).collect();
    exchange(&mut connect(&inside, at, PATIENCE), &bulk).expect("there and back");

    let accounts = ended(run).sound().accounts();
    let fragmented = accounts.element("router/fragment1");
    assert!(fragmented.outputs[1] > 0, "no packet was too long: {fragmented:?}");
}

/// A port that nobody listens on: the far kernel's error comes back through the router.
#[test]
fn errors_of_kernels_come_back() {
    if !inside("router::errors_of_kernels_come_back") {
        return;
    }
    let (inside, outside, folder) = hosts();
    let at = echo(&outside, "192.0.2.2:7");
    for chain in ["router/devices.toml", "napt/devices.toml"] {
        let run = started(&folder, &[chain], &inside, at);
        let udp = inside.within(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
        udp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        udp.connect("192.0.2.2:9").expect("connected");
        udp.send(b"nobody there?").expect("sent");
        let error = udp.recv(&mut [0; 100]).expect_err("nobody listens");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{chain}");
        ended(run).sound();
    }
}
