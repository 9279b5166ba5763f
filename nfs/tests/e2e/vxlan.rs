//! The VXLAN gateway.

use crate::frames::{arp, later_fragment, see, tcp, udp};
use crate::run::{Frame, Setup};

const CONFIG: &str = "
vni = 42
local = \"198.51.100.1\"
local-mac = \"02:00:00:00:00:11\"
remote = \"198.51.100.2\"
remote-mac = \"02:00:00:00:00:22\"
";

/// A frame as the other end of the tunnel encapsulates it.
fn wrapped(from: &str, to: &str, vni: u32, flags: u8, frame: &[u8]) -> Frame {
    let mut payload = vec![flags, 0, 0, 0];
    payload.extend((vni << 8).to_be_bytes());
    payload.extend(frame);
    udp(from, to, &payload)
}

#[test]
fn frames_are_wrapped_up() {
    let fits = udp("10.0.0.1:1", "10.0.0.2:2", &[7; 1500 - 50 - 28]);
    let frames = [
        arp("10.0.0.1", "10.0.0.2"),
        udp("10.0.0.1:1", "10.0.0.2:2", b"x"),
        udp("10.0.0.1:1", "10.0.0.2:2", b"y"),
        udp("10.0.0.1:3", "10.0.0.2:2", b"z"),
        fits,
        udp("10.0.0.1:1", "10.0.0.2:2", &[7; 1500 - 50 - 27]),
    ];
    let outcome = Setup::new("vxlan", &["lan", "wan"], CONFIG).input("lan", &frames).run().sound();
    assert_eq!((outcome.out("wan").len(), outcome.drops()), (5, vec![("too-big", 1)]));
    let mut ports = vec![];
    for (inner, outer) in frames.iter().zip(outcome.out("wan")) {
        let seen = see(outer);
        let (source, port) = seen.ports.expect("UDP");
        assert_eq!(
            (seen.src.to_string(), seen.dst.to_string(), port),
            ("198.51.100.1".into(), "198.51.100.2".into(), 4789)
        );
        assert_eq!((seen.from_mac[5], seen.to_mac[5], source >= 49_152), (0x11, 0x22, true));
        assert_eq!(seen.payload, [&[8, 0, 0, 0, 0, 0, 42, 0], inner.as_slice()].concat());
        assert_eq!(outer[20..22], [0x40, 0], "not to be fragmented");
        ports.push(source);
    }
    assert!(ports[1] == ports[2] && ports[1] != ports[3], "a flow has one source port: {ports:?}");
}

#[test]
fn frames_are_unwrapped() {
    let inner = tcp("10.0.0.2:1", "10.0.0.1:2", "S", b"");
    let (here, there) = ("198.51.100.1:4789", "198.51.100.2:50000");
    let good = wrapped(there, here, 42, 8, &inner);
    let mut padded = good.clone();
    padded.extend([0; 7]);
    let mut no_sum = good.clone();
    no_sum[40..42].copy_from_slice(&[0, 0]);
    let mut bad_sum = good.clone();
    bad_sum[41] ^= 1;
    let frames = [
        good,
        padded,
        no_sum,
        bad_sum,
        wrapped(there, here, 43, 8, &inner),
        wrapped(there, here, 42, 0, &inner),
        wrapped(there, here, 42, 8, &inner[..13]),
        wrapped("198.51.100.3:1", here, 42, 8, &inner),
        wrapped(there, "198.51.100.9:4789", 42, 8, &inner),
        wrapped(there, "198.51.100.1:4790", 42, 8, &inner),
        later_fragment("198.51.100.2", "198.51.100.1"),
        arp("198.51.100.2", "198.51.100.1"),
    ];
    let outcome = Setup::new("vxlan", &["lan", "wan"], CONFIG).input("wan", &frames).run().sound();
    assert_eq!(outcome.out("lan"), [inner.clone(), inner.clone(), inner]);
    assert_eq!(
        outcome.drops(),
        [("fragment", 1), ("malformed", 3), ("not-vxlan", 2), ("other-end", 2), ("other-vni", 1)]
    );
}

#[test]
fn its_mistakes_are_told() {
    Setup::new("vxlan", &["lan", "wan"], "vni = 16777216\nlocal = \"x\"\nmtu = 1\n").refused(&[
        "config:1: `vni`: 16777216 is no network identifier",
        "config:1: the configuration needs `remote-mac`",
        "config:2: `local`: `x` is not an IPv4 address",
        "config:3: `mtu`: 1 is not a whole number from 68 to 9000",
    ]);
}
