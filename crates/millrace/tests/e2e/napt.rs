//! The NAPT of the examples between two kernels.

use crate::cable::{PATIENCE, connect, echo, echo_tcp, ended, exchange, started};
use crate::namespaces::{Host, icmp_socket, inside};
use crate::program::Folder;
use crate::router::ping;
use etherparse::Icmpv4Type;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};

#[test]
fn a_kernel_inside_is_seen_by_its_outside_address() {
    if !inside("napt::a_kernel_inside_is_seen_by_its_outside_address") {
        return;
    }
    let inside = Host::new("inside", "eth0", 1, "10.0.0.2/16");
    let outside = Host::new("outside", "eth1", 2, "192.0.2.2/24");
    inside.route_by("10.0.0.254");
    for host in [&inside, &outside] {
        host.shell("ethtool -K eth0 tx off");
    }
    let folder = Folder::with_examples(&["napt"]);
    let external = Ipv4Addr::new(192, 0, 2, 1);
    let run = started(&folder, &["napt/devices.toml"], &inside, echo(&outside, "192.0.2.2:7"));

    // UDP: the far end sees the external address, a port for each socket, and its answers come back.
    let server = outside.within(|| UdpSocket::bind("192.0.2.2:1000").expect("a socket"));
    server.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let client = inside.within(|| UdpSocket::bind("0.0.0.0:0").expect("a socket"));
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        client.connect("192.0.2.2:1000").expect("connected");
        let mut buffer = [0; 100];
        for text in [&b"first"[..], b"second"] {
            client.send(text).expect("sent");
            let (len, from) = server.recv_from(&mut buffer).expect("it arrives");
            assert_eq!((&buffer[..len], from.ip()), (text, external.into()));
            seen.insert(from.port());
            server.send_to(b"answer", from).expect("sent");
            assert_eq!(client.recv(&mut buffer).expect("it comes back"), 6);
        }
    }
    assert_eq!(seen.len(), 20, "one port for each socket");

    // Nobody outside gets in who was not asked.
    let stranger = outside.within(|| UdpSocket::bind("192.0.2.2:1001").expect("a socket"));
    for port in &seen {
        stranger.send_to(b"let me in", (external, *port)).expect("sent");
    }

    // TCP, with much to say in both directions.
    let (at, told) = echo_tcp(&outside, "192.0.2.2:7");
    let bulk: Vec<u8> = (0..500_000u32).map(|at| (at / 11) as u8).collect();
    let mut streams: Vec<_> = (0..3).map(|_| connect(&inside, at, PATIENCE)).collect();
    for stream in &mut streams {
        exchange(stream, &bulk).expect("there and back");
        assert_eq!(told.recv_timeout(PATIENCE).expect("connected").ip(), external);
    }
    drop(streams);

    // Pings of the inside get through, of the outside the NAPT answers itself.
    let (from, answer) = ping(&inside.within(icmp_socket), Ipv4Addr::new(192, 0, 2, 2), 56);
    assert!(from == Ipv4Addr::new(192, 0, 2, 2) && matches!(answer, Icmpv4Type::EchoReply(_)), "{answer:?}");
    let socket = outside.within(icmp_socket);
    let (from, answer) = ping(&socket, external, 56);
    assert!(from == external && matches!(answer, Icmpv4Type::EchoReply(_)), "{from} {answer:?}");

    let accounts = ended(run).sound().accounts();
    let unknown = accounts.element("napt/unknown");
    assert!(unknown.input >= 20, "strangers are dropped: {unknown:?}");
}
