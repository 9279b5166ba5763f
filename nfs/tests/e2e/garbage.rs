//! Frames with every kind of damage: no NF ends, loses a packet, or sends a packet with a wrong checksum that
//! the NF itself computed.

use crate::c;
use crate::frames::{arp, icmp_error, later_fragment, ping, solicitation, tcp, udp};
use crate::run::{Frame, Setup, millrace, shipped};
use std::path::Path;

/// A generator of numbers (xorshift), the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end.max(1)
    }
}

fn damaged(count: usize) -> Vec<Frame> {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let whole = [
        udp("10.0.0.1:1000", "192.0.2.10:80", b"hello malware"),
        udp("198.51.100.2:50000", "198.51.100.1:4789", &[&[8, 0, 0, 0, 0, 0, 42, 0][..], &[7; 60]].concat()),
        tcp("10.0.0.1:1000", "192.0.2.10:80", "S", b""),
        tcp("192.0.2.10:80", "198.51.100.7:2000", "S.", b"attack"),
        udp("[fd00::1]:1", "[fd01::2]:2", b"payload"),
        ping("10.0.0.1", "192.0.2.10", 7),
        icmp_error("10.0.0.1", "198.51.100.7", &udp("198.51.100.7:2000", "192.0.2.1:2", b"payload")),
        arp("10.0.0.1", "10.0.0.254"),
        solicitation("fd00::1", "fd00::fe"),
        later_fragment("10.0.0.1", "192.0.2.10"),
    ];
    let mut frames = vec![];
    while frames.len() < count {
        let mut frame = whole[numbers.below(whole.len())].clone();
        for _ in 0..numbers.below(4) {
            // Most changes are in the headers.
            let within = if numbers.below(4) == 0 { frame.len() } else { frame.len().min(60) };
            let at = numbers.below(within);
            frame[at] = if numbers.below(2) == 0 {
                numbers.below(256) as u8
            } else {
                frame[at] ^ (1 << numbers.below(8))
            };
        }
        match numbers.below(6) {
            0 => frame.truncate(1 + numbers.below(frame.len())),
            1 => frame.extend(vec![0; numbers.below(200)]),
            _ => {}
        }
        frames.push(frame);
    }
    frames
}

#[track_caller]
fn survives(program: &Path, config: &str) {
    let frames = damaged(3000);
    let (one, other) = frames.split_at(1500);
    let setup = Setup::of(program, &["lan", "wan"], config).input("lan", one).input("wan", other);
    let outcome = setup.run();
    assert_eq!((outcome.code, outcome.restarts), (Some(0), 0), "{}: {outcome:?}", program.display());
}

#[test]
fn every_nf_survives_damaged_frames() {
    let l3 = "[interface.lan]\nmac = \"02:00:00:00:00:02\"\naddress = \"10.0.0.254\"\naddress6 = \"fd00::fe\"
        [interface.wan]\nmac = \"02:00:00:00:00:02\"\naddress = \"192.0.2.254\"
        [[route]]\nto = \"10.0.0.0/8\"\ninterface = \"lan\"\nmac = \"02:00:00:00:00:05\"
        [[route]]\nto = \"fd00::/8\"\ninterface = \"wan\"\nmac = \"02:00:00:00:00:05\"";
    let vxlan = "vni = 42\nlocal = \"198.51.100.1\"\nlocal-mac = \"02:00:00:00:00:11\"
        remote = \"198.51.100.2\"\nremote-mac = \"02:00:00:00:00:22\"";
    let balancer =
        "address = \"192.0.2.10\"\nport = 80\nprotocol = \"udp\"\n[[backend]]\naddress = \"10.0.0.1\"";
    for (nf, config) in [
        ("monitor", "top = 5"),
        ("l2fwd", ""),
        ("l3fwd", l3),
        ("firewall", "default = \"allow\"\n[[rule]]\naction = \"deny\"\nto = \"10.0.0.0/8\""),
        ("napt", "external = \"198.51.100.7\"\nports = \"2000-2100\""),
        ("load-balancer", balancer),
        ("scanner", "patterns = [\"malware\", \"attack\"]"),
        ("rate-limiter", "rate-bps = 1_000_000\nmode = \"shape\"\nmost-delay-ms = 20"),
        ("syn-filter", "protect = [\"192.0.2.0/24\"]"),
        ("arp-responder", "[[address]]\nip = \"10.0.0.0/8\"\nmac = \"02:00:00:00:00:fe\""),
        ("vxlan", vxlan),
    ] {
        survives(&shipped(nf), config);
    }
    for (nf, config) in [
        ("monitor", ""),
        ("l2fwd", ""),
        ("firewall", "default allow\ndeny tcp any any 80"),
        ("scanner", "malware\nattack"),
    ] {
        if let Some(program) = c::program(nf) {
            survives(&program, config);
        }
    }
}

#[test]
fn what_c_does_wrong_is_an_error_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/misuse.c");
    let Some(program) = c::build(&source, folder.path()) else { return };
    let frames: Vec<Frame> =
        (1..500).map(|port| udp(&format!("10.0.0.1:{port}"), "10.0.0.2:2", b"x")).collect();
    let outcome = Setup::of(&program, &["lan", "wan"], "").input("lan", &frames).run().sound();
    assert_eq!(outcome.counter("failures"), 0, "{outcome:?}");
    assert!(outcome.restarts == 0 && !outcome.out("wan").is_empty());
}

#[test]
fn an_nf_that_dies_with_packets_in_hand_loses_no_slot() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/dies.c");
    let Some(program) = c::build(&source, folder.path()) else { return };
    let chain = format!(
        "links = [\"in -> [0]nf[1] -> out\"]
        [ports]
        in = {{ traffic = {{ flows = 10, size = \"64\", rate-pps = 20000 }} }}
        out = {{ discard = true }}
        [nf.nf]
        program = \"{}\"",
        program.display()
    );
    std::fs::write(folder.path().join("chain.toml"), chain).expect("written");
    let mut run = std::process::Command::new(millrace());
    run.args(["run", "chain.toml", "--for", "2", "--json", "-H", "nf/process.restarts"]);
    let output = run.current_dir(folder.path()).output().expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("accounts");
    let restarts = json["handlers"]["nf/process.restarts"].as_str().and_then(|text| text.trim().parse().ok());
    assert!(restarts.unwrap_or(0) >= 2, "{json}");
    assert_eq!((json["imbalance"].as_i64(), json["slots_lost"].as_u64()), (Some(0), Some(0)), "{json}");
    assert!(json["sent"].as_u64().unwrap_or(0) > 200, "{json}");
}
