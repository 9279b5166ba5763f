//! Next hops over the socket: the NF looks one up, the host receives the request and answers, and the NF
//! knows it.

use crate::host::Host;
use nf::message::{Change, FromNf, InterfaceFacts, NeighbourState, NextHop, OwnAddress, ToNf};
use nf::{Link, Neighbour, Options};
use std::net::IpAddr;
use std::time::{Duration, Instant};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A host with an L3 interface behind `wan`.
fn start() -> (Host, Link) {
    let own = [("192.0.2.1", 24), ("fd00::1", 64)].map(|(own, len)| OwnAddress { ip: ip(own), len });
    let station = InterfaceFacts { mac: "02:00:00:00:09:01".into(), addresses: own.to_vec() };
    Host::beside(Options::new("test"), &["lan", "wan"], vec![None, Some(station)])
}

/// The next request of the NF, which receives packets meanwhile.
fn heard(host: &Host, link: &mut Link) -> FromNf {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        link.receive(&mut vec![]);
        match host.socket.receive::<FromNf>(Duration::from_millis(1)).expect("it lives") {
            Some((FromNf::Ready, _)) | None => assert!(Instant::now() < end, "it asks for nothing"),
            Some((message, _)) => return message,
        }
    }
}

fn say(host: &Host, hop: NextHop, state: NeighbourState) {
    host.socket.send(&ToNf::Neighbours { changes: vec![Change { hop, state }] }, &[]).expect("sent");
}

/// Waits until a neighbour has the expected state.
fn until(link: &mut Link, hop: NextHop, expected: Neighbour) {
    let before = link.neighbour_changes();
    for _ in 0..5000 {
        link.receive(&mut vec![]);
        link.wait();
        if link.neighbour(hop.interface.into(), hop.address) == expected {
            assert!(link.neighbour_changes() > before);
            return;
        }
    }
    panic!("{:?} is not {expected:?}", link.neighbour(hop.interface.into(), hop.address));
}

#[test]
fn an_nf_asks_for_next_hops_and_is_told() {
    let (host, mut link) = start();
    let station = link.l3_interface(1).cloned().expect("a station");
    assert_eq!((station.mac.as_str(), station.addresses.len()), ("02:00:00:00:09:01", 2));
    assert_eq!((link.l3_interface(0), link.l3_interface(2)), (None, None));
    assert_eq!(link.neighbour(0, ip("192.0.2.2")), Neighbour::Unreachable);

    let hops = ["192.0.2.2", "fd00::2"].map(|next| NextHop { interface: 1, address: ip(next) });
    for hop in hops {
        assert_eq!(link.neighbour(1, hop.address), Neighbour::Resolving);
    }
    assert_eq!(heard(&host, &mut link), FromNf::Resolve { hops: hops.to_vec() });
    let mac = |last: u8| nf::headers::MacAddr([2, 0, 0, 0, 1, last]);
    for hop in hops {
        say(&host, hop, NeighbourState::Known(mac(2).to_string()));
        until(&mut link, hop, Neighbour::Known(mac(2)));
    }
    // Within a batch the state does not change, even if the host answers meanwhile.
    say(&host, hops[0], NeighbourState::Known(mac(3).to_string()));
    assert_eq!(link.neighbour(1, hops[0].address), Neighbour::Known(mac(2)));
    until(&mut link, hops[0], Neighbour::Known(mac(3)));
    say(&host, hops[0], NeighbourState::Unreachable);
    until(&mut link, hops[0], Neighbour::Unreachable);
    // A removed neighbour is requested again, but only after a lookup.
    say(&host, hops[1], NeighbourState::Gone);
    until(&mut link, hops[1], Neighbour::Resolving);
    assert_eq!(heard(&host, &mut link), FromNf::Resolve { hops: vec![hops[1]] });
    // A refusal is valid for a second.
    say(&host, hops[1], NeighbourState::Refused);
    until(&mut link, hops[1], Neighbour::Unreachable);
    let began = Instant::now();
    until(&mut link, hops[1], Neighbour::Resolving);
    assert!(began.elapsed() > Duration::from_millis(500));
    link.close();
    host.assert_settled();
}

#[test]
fn asking_for_many_takes_few_messages() {
    let (host, mut link) = start();
    let began = Instant::now();
    let (mut asked, mut messages) = (0, 0);
    for number in 0..500u16 {
        let [high, low] = number.to_be_bytes();
        link.neighbour(1, IpAddr::from([198, 18, high, low]));
        link.receive(&mut vec![]);
    }
    while asked < 500 {
        let FromNf::Resolve { hops } = heard(&host, &mut link) else { panic!("something else") };
        (asked, messages) = (asked + hops.len(), messages + 1);
    }
    // At most 64 in a message, and one message in 5 ms.
    let most = began.elapsed().as_millis() / 5 + 1;
    assert!(messages >= 8 && messages <= most.max(8), "{messages} messages in {:?}", began.elapsed());
    link.close();
    host.assert_settled();
}
