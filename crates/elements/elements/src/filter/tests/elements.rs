//! `IPClassifier` and `IPFilter`: packets in, packets out; wrong configurations.

use crate::testing::{Exit, Rig, TestPacket, differential, dropped};
use etherparse::PacketBuilder;

const NONE: &str = "no-match";

/// An IP packet from etherparse, without a link header.
fn ip(src: [u8; 4], dst: [u8; 4], transport: &str, ports: (u16, u16)) -> TestPacket {
    let builder = PacketBuilder::ipv4(src, dst, 64);
    let mut bytes = vec![];
    match transport {
        "udp" => builder.udp(ports.0, ports.1).write(&mut bytes, &[1; 10]),
        "tcp" => builder.tcp(ports.0, ports.1, 1, 1000).write(&mut bytes, &[]),
        "syn" => builder.tcp(ports.0, ports.1, 1, 1000).syn().write(&mut bytes, &[]),
        "synack" => builder.tcp(ports.0, ports.1, 1, 1000).syn().ack(7).write(&mut bytes, &[]),
        _ => builder.icmpv4_echo_request(ports.0, ports.1).write(&mut bytes, &[1; 4]),
    }
    .expect("a packet");
    TestPacket::ip(&bytes)
}

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [192, 168, 1, 2];

/// The packet's fragment offset and flags, set.
fn fragment(mut packet: TestPacket, offset: u16) -> TestPacket {
    packet.bytes[6..8].copy_from_slice(&offset.to_be_bytes());
    packet
}

/// The packet with four bytes of options.
fn with_options(packet: &TestPacket) -> TestPacket {
    let mut bytes = packet.bytes.clone();
    bytes[0] = 0x46;
    bytes.splice(20..20, [1, 1, 1, 0]);
    TestPacket::ip(&bytes)
}

fn exits(rig: &mut Rig, packets: &[TestPacket]) -> Vec<Exit> {
    rig.push(0, packets).into_iter().map(|out| out.exit).collect()
}

#[test]
fn a_packet_leaves_by_the_first_pattern_that_it_matches() {
    let patterns = "dst tcp port 8000 or 8080, dst tcp port > 1023, tcp, -";
    let mut rig = Rig::new("IPClassifier", patterns, 1, 4);
    let port = |port| ip(A, B, "tcp", (1, port));
    let found =
        exits(&mut rig, &[port(8000), port(8080), port(8001), port(1023), ip(A, B, "udp", (1, 8080))]);
    assert_eq!(found, [0, 0, 1, 2, 3].map(Exit::Port));
    let patterns = "10.0.0.0/24 and syn, 10.0.0.0/24 and ack, 10.0.0.0/24 and tcp, -";
    let mut rig = Rig::new("IPClassifier", patterns, 1, 4);
    let packets = [
        ip(A, B, "synack", (1, 2)),
        ip(B, A, "syn", (1, 2)),
        ip(A, B, "tcp", (1, 2)),
        ip(B, B, "syn", (1, 2)),
    ];
    assert_eq!(exits(&mut rig, &packets), [0, 0, 2, 3].map(Exit::Port));
}

#[test]
fn what_matches_nothing_is_dropped() {
    let mut rig = Rig::new("IPClassifier", "tcp, udp", 1, 2);
    let out = rig.push_one(0, &ip(A, B, "icmp", (1, 2)));
    assert_eq!((out.exit, out.packet), (dropped(NONE), ip(A, B, "icmp", (1, 2))));
}

#[test]
fn a_layer_4_firewall_lets_one_udp_port_through() {
    let rules = "allow tcp, allow icmp, allow dst udp port 1234, deny all";
    let mut rig = Rig::new("IPFilter", rules, 1, 1);
    let packets = [
        ip(A, B, "tcp", (1, 2)),
        ip(A, B, "icmp", (1, 2)),
        ip(A, B, "udp", (9, 1234)),
        ip(A, B, "udp", (1234, 9)),
        fragment(ip(A, B, "udp", (9, 1234)), 0x2000),
        fragment(ip(A, B, "udp", (9, 1234)), 0x0001),
        with_options(&ip(A, B, "udp", (9, 1234))),
    ];
    let (yes, no) = (Exit::Port(0), dropped("denied"));
    let wanted = [yes.clone(), yes.clone(), yes.clone(), no.clone(), yes.clone(), no, yes];
    assert_eq!(exits(&mut rig, &packets), wanted);
    differential("IPFilter", rules, 1, 1);
}

#[test]
fn ports_flags_and_types_are_those_of_first_fragments_that_hold_them() {
    let patterns = "port 1, syn, icmp type echo, tcp win 1000, tcp[0:2] 1, -";
    let mut rig = Rig::new("IPClassifier", patterns, 1, 6);
    let tests = [("tcp", 1, 0), ("syn", 5, 1), ("icmp", 1, 2), ("tcp", 5, 3)];
    for (transport, port, output) in tests {
        let packet = ip(A, B, transport, (port, port));
        let wanted = [Exit::Port(output), Exit::Port(output), Exit::Port(5)];
        let later = [packet.clone(), fragment(packet.clone(), 0x2000), fragment(packet.clone(), 0x2001)];
        assert_eq!(exits(&mut rig, &later), wanted, "{transport}");
        // Cut off before the last byte that is looked at.
        let bytes = match transport {
            "icmp" => 0,
            "syn" => 13,
            "tcp" if port == 1 => 3,
            _ => 15,
        };
        let mut short = packet.clone();
        short.bytes.truncate(20 + bytes);
        assert_ne!(rig.push_one(0, &short).exit, Exit::Port(output), "{transport}");
        let mut enough = packet;
        enough.bytes.truncate(20 + bytes + 1);
        assert_eq!(rig.push_one(0, &enough).exit, Exit::Port(output), "{transport}");
    }
}

#[test]
fn tests_of_what_is_not_there_fail_and_their_opposites_hold() {
    let mut short = ip(A, B, "udp", (80, 80));
    short.bytes.truncate(22);
    let headless = TestPacket { net: None, trans: None, ..ip(A, B, "udp", (80, 80)) };
    let out = |rules: &str, packet: &TestPacket| Rig::new("IPFilter", rules, 1, 1).push_one(0, packet).exit;
    for packet in [&short, &headless] {
        for test in ["port 80", "port != 80", "src port >= 0", "icmp type 3", "ip[21] 0", "tcp opt 0"] {
            assert_eq!(out(&format!("allow {test}"), packet), dropped(NONE), "{test}");
            assert_eq!(out(&format!("allow not ({test})"), packet), Exit::Port(0), "not {test}");
        }
    }
    for test in ["udp", "src 10.0.0.1", "ip ttl >= 0", "ip unfrag", "src != 10.0.0.1"] {
        assert_eq!(out(&format!("allow {test}"), &headless), dropped(NONE), "{test}");
        assert_eq!(out(&format!("allow not {test}"), &headless), Exit::Port(0), "not {test}");
    }
    assert_eq!(out("allow all", &headless), Exit::Port(0));
}

/// Zwicky, Cooper, Chapman: Building Internet Firewalls, as Click's page has it.
const INTERIOR: &str = "
    // Spoof-1:
    deny src 10.0.0.0/8,
    // HTTP-2:
    allow src 192.168.1.2 && dst 10.0.0.0/8 && tcp && src port www && dst port > 1023 && ack,
    // SSH-3:
    allow dst 10.0.0.0/8 && tcp && dst port 22,
    // FTP-8:
    allow src 192.168.1.2 && dst 10.0.0.0/8 && tcp && src port > 1023 && dst port > 1023,
    // DNS-2:
    allow src 192.168.1.2 && dst 10.0.0.3 && udp && src port 53 && dst port 53,
    // Default-2:
    deny all";

#[test]
fn an_interior_router_filters_as_the_book_says() {
    let mut rig = Rig::new("IPFilter", INTERIOR, 1, 1);
    let tests = [
        (ip(A, A, "tcp", (80, 22)), false),
        (ip(B, A, "synack", (80, 5000)), true),
        (ip(B, A, "syn", (80, 5000)), false),
        (ip(B, A, "synack", (80, 1023)), false),
        (ip([1, 2, 3, 4], A, "syn", (80, 22)), true),
        (ip(B, A, "tcp", (1024, 1024)), true),
        (ip(B, A, "tcp", (1024, 1023)), false),
        (ip(B, [10, 0, 0, 3], "udp", (53, 53)), true),
        (ip(B, A, "udp", (53, 53)), false),
    ];
    for (packet, passes) in tests {
        let wanted = if passes { Exit::Port(0) } else { dropped("denied") };
        assert_eq!(rig.push_one(0, &packet).exit, wanted, "{:02x?}", packet.bytes);
    }
    differential("IPFilter", INTERIOR, 1, 1);
}

#[test]
fn actions_name_outputs() {
    let rules = "2 udp, allow tcp && syn, drop tcp, 1";
    let mut rig = Rig::new("IPFilter", rules, 1, 3);
    let packets = ["udp", "syn", "tcp", "icmp"].map(|transport| ip(A, B, transport, (1, 2)));
    assert_eq!(exits(&mut rig, &packets), [Exit::Port(2), Exit::Port(0), dropped("denied"), Exit::Port(1)]);
    let mut rig = Rig::new("IPFilter", "CACHING true, deny all", 1, 0);
    assert_eq!(rig.push_one(0, &packets[0]).exit, dropped("denied"));
    let mut rig = Rig::new("IPFilter", "", 1, 1);
    assert_eq!(rig.push_one(0, &packets[0]).exit, dropped(NONE));
}

#[test]
fn rules_are_read_from_a_file() {
    let folder = std::env::temp_dir().join(format!("millrace-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("firewall.rules");
    std::fs::write(&path, "# first\nallow tcp\n\n// then\ndeny udp\n").unwrap();
    let config = format!("file {}, allow all", path.display());
    let mut rig = Rig::new("IPFilter", &config, 1, 1);
    let packets = ["tcp", "udp", "icmp"].map(|transport| ip(A, B, transport, (1, 2)));
    assert_eq!(exits(&mut rig, &packets), [Exit::Port(0), dropped("denied"), Exit::Port(0)]);
    std::fs::write(&path, "allow tcp\nalow udp\ndeny prot 3\n").unwrap();
    let mistakes = Rig::try_new("IPFilter", &config, 1, 1).err().unwrap();
    let lines: Vec<&str> = mistakes.lines().collect();
    assert_eq!(lines.len(), 2, "{mistakes}");
    assert!(lines[0].contains("firewall.rules, line 2: `alow` is no action"), "{mistakes}");
    assert!(lines[1].contains("line 3: `prot` is no address"), "{mistakes}");
    std::fs::remove_dir_all(&folder).unwrap();
    let mistakes = Rig::try_new("IPFilter", &config, 1, 1).err().unwrap();
    assert!(mistakes.contains("cannot read"), "{mistakes}");
}

#[test]
fn the_steps_handler_lists_the_steps() {
    let mut rig = Rig::new("IPFilter", "allow dst udp port 1234, deny udp, allow all", 1, 1);
    let wanted = "\x200 ip.proto  0-16->[0]  17->step 1  18-255->[0]
 1 trans+4  0->[deny]  1->step 2
 2 l4.dport  0-1233->[deny]  1234->[0]  1235-65535->[deny]";
    assert_eq!(rig.read("steps"), wanted);
    // Rules that nothing gets to, and rules that say the same, leave no trace.
    let rules =
        "allow tcp && dst 10.0.0.0/32 && src 2.0.0.0/32, allow tcp && dst 10.0.0.0 && dst port 80, allow all";
    assert_eq!(Rig::new("IPFilter", rules, 1, 1).read("steps"), "all->[0]");
    assert_eq!(Rig::new("IPFilter", "allow false", 1, 1).read("steps"), "all->[X]");
}

#[test]
fn wrong_configurations_are_told_all_at_once() {
    let tests: &[(&str, &str, usize, &[&str])] = &[
        ("IPClassifier", "tcp, udp", 3, &["1: error: 2 patterns for 3 outputs; one pattern for each output"]),
        (
            "IPClassifier",
            "tcp prt 80, sorc 1.2.3.4, port 70000",
            3,
            &[
                "5: error: `prt` is no address, name or word of the language; did you mean `port`?",
                "13: error: `sorc` is no address, name or word of the language; did you mean `src`?",
                "32: error: the value is out of range; it lies between 0 and 65535",
            ],
        ),
        ("IPClassifier", "tcp, , udp", 3, &["5: error: the pattern is empty; `all` matches every packet"]),
        (
            "IPFilter",
            "alow tcp, 2 udp, tcp",
            2,
            &[
                "1: error: `alow` is no action; did you mean `allow`?",
                "11: error: there is no output 2; the outputs that are connected are 0 to 1",
                "18: error: `tcp` is no action; a rule starts with `allow`, `deny`, `drop` or the number of an output",
            ],
        ),
        ("IPFilter", "allow tcp", 0, &["1: error: `allow` sends to output 0, and no output is connected"]),
        ("IPFilter", "file", 1, &["1: error: `file` needs the name of a file"]),
    ];
    for (class, config, outputs, mistakes) in tests {
        let wanted: Vec<String> = mistakes.iter().map(|mistake| format!("test.click:1:{mistake}")).collect();
        let found = Rig::try_new(class, config, 1, *outputs).err().unwrap_or_default();
        assert_eq!(found.lines().collect::<Vec<_>>(), wanted, "{class}({config})");
    }
}

#[test]
fn evaluator_and_machine_code_agree() {
    for config in [
        "allow all",
        "deny ip frag, allow tcp opt syn, 1 icmp type echo || unreachable",
        "allow (tcp ? dst port 80 or 443 : udp and dst port 53-1234), 1 ip[0] & 15 > 5",
        "allow src 10.0.0.0/8 and not dst host & 255.0.0.255 = 192.0.0.1, 1 ip ttl <= 1, deny ip ect",
        "allow ether src host 2:0:0:0:0:0, 1 transp[4:4] > 0x1000000 or ip[20:2] & 0xf00f = 0x1001",
    ] {
        differential("IPFilter", config, 1, 2);
    }
}
