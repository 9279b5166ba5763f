use crate::testing::{Exit, Rig, TestPacket, differential, random_packets};
use packet::anno;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const CLASSES: [&str; 6] = [
    "StaticIPLookup",
    "LinearIPLookup",
    "SortedIPLookup",
    "RadixIPLookup",
    "DirectIPLookup",
    "RangeIPLookup",
];
/// The example of Click's page.
const EXAMPLE: &str = "18.26.4.24/32 0, 18.26.4.255/32 0, 18.26.4.0/32 0, 18.26.4/24 1, 0/0 18.26.4.1 1";

fn to(address: [u8; 4]) -> TestPacket {
    TestPacket::frame(&[0; 60]).with_anno(anno::DST_IP, u64::from(u32::from_be_bytes(address)))
}

fn push(rig: &mut Rig, address: [u8; 4]) -> (Exit, [u8; 4]) {
    let out = rig.push_one(0, &to(address));
    (out.exit, (out.packet.anno(anno::DST_IP) as u32).to_be_bytes())
}

#[test]
fn the_longest_prefix_decides_output_and_next_hop() {
    for class in CLASSES {
        let mut rig = Rig::new(class, EXAMPLE, 1, 2);
        assert_eq!(push(&mut rig, [18, 26, 4, 24]), (Exit::Port(0), [18, 26, 4, 24]), "{class}");
        assert_eq!(push(&mut rig, [18, 26, 4, 25]), (Exit::Port(1), [18, 26, 4, 25]));
        assert_eq!(push(&mut rig, [18, 26, 4, 255]), (Exit::Port(0), [18, 26, 4, 255]));
        assert_eq!(push(&mut rig, [1, 2, 3, 4]), (Exit::Port(1), [18, 26, 4, 1]));
    }
}

#[test]
fn a_packet_without_a_route_is_dropped() {
    let mut rig = Rig::new("RadixIPLookup", "10.0.0.0/8 0", 1, 1);
    assert_eq!(push(&mut rig, [11, 0, 0, 0]).0, Exit::Dropped("no-route".into()));
    let mut rig = Rig::new("RadixIPLookup", "", 1, 1);
    assert_eq!(push(&mut rig, [11, 0, 0, 0]).0, Exit::Dropped("no-route".into()));
}

#[test]
fn a_burst_of_many_addresses_is_sorted_right() {
    let mut rig = Rig::new("DirectIPLookup", "10.0.0.0/8 0, 10.1.0.0/16 9.9.9.9 1, 10.1.2.128/25 - 2", 1, 3);
    let packets: Vec<TestPacket> =
        (0..200u8).map(|at| to([9 + at % 3, at % 4, 2, at.wrapping_mul(37)])).collect();
    for (packet, out) in packets.iter().zip(rig.push(0, &packets)) {
        let [a, b, _, d] = (packet.anno(anno::DST_IP) as u32).to_be_bytes();
        let expected = match (a, b) {
            (10, 1) if d >= 128 => Exit::Port(2),
            (10, 1) => Exit::Port(1),
            (10, _) => Exit::Port(0),
            _ => Exit::Dropped("no-route".into()),
        };
        assert_eq!(out.exit, expected);
        let gateway = if expected == Exit::Port(1) { 0x0909_0909 } else { packet.anno(anno::DST_IP) };
        assert_eq!(out.packet.anno(anno::DST_IP), gateway);
    }
}

#[test]
fn tables_and_lookups_read_as_click_writes_them() {
    let mut rig = Rig::new("RadixIPLookup", "0/0 18.26.4.1 1, 18.26.4.0/24 1, 18.26.4.24 0", 1, 2);
    assert_eq!(
        rig.read("table"),
        "0.0.0.0/0\t\t18.26.4.1\t1\n18.26.4.0/24\t\t-\t\t1\n18.26.4.24/32\t\t-\t\t0"
    );
    assert_eq!(rig.read("lookup 18.26.4.24"), "0");
    assert_eq!(rig.read("lookup 1.1.1.1"), "1 18.26.4.1");
    rig.write("remove", "0.0.0.0/0").unwrap();
    assert_eq!(rig.read("lookup 1.1.1.1"), "-1");
}

#[test]
fn routes_are_added_set_removed_and_flushed() {
    for class in &CLASSES[1..] {
        let mut rig = Rig::new(class, "10.0.0.0/8 0", 1, 2);
        rig.write("add", "10.1.0.0/16 1.1.1.1 1").unwrap();
        assert_eq!(push(&mut rig, [10, 1, 0, 0]), (Exit::Port(1), [1, 1, 1, 1]), "{class}");
        let refused = rig.write("add", "10.1.0.0/16 0").unwrap_err();
        assert_eq!(refused, "conflict with existing route '10.1.0.0/16 1.1.1.1 1'");
        rig.write("set", "10.1.0.0/16 0").unwrap();
        assert_eq!(push(&mut rig, [10, 1, 0, 0]), (Exit::Port(0), [10, 1, 0, 0]));
        assert_eq!(rig.write("remove", "10.1.0.0/16 1").unwrap_err(), "route `10.1.0.0/16 - 1` not found");
        assert_eq!(rig.write("remove", "10.2.0.0/16").unwrap_err(), "route `10.2.0.0/16` not found");
        rig.write("remove", "10.1.0.0/16 - 0").unwrap();
        rig.write("set", "10.0.0.0/8 2.2.2.2 1").unwrap();
        assert_eq!(push(&mut rig, [10, 1, 0, 0]), (Exit::Port(1), [2, 2, 2, 2]));
        let flushed = rig.write("flush", "");
        assert_eq!(flushed.is_ok(), matches!(*class, "RadixIPLookup" | "DirectIPLookup" | "RangeIPLookup"));
        let left = if flushed.is_ok() { "" } else { "10.0.0.0/8\t\t2.2.2.2\t\t1" };
        assert_eq!(rig.read("table"), left);
    }
}

#[test]
fn ctrl_does_all_or_nothing() {
    let mut rig = Rig::new("LinearIPLookup", "10.0.0.0/8 0, 11.0.0.0/8 0", 1, 2);
    let before = rig.read("table");
    for (text, message) in [
        (
            "add 12/8 1\nremove 10/8\nset 11/8 5.5.5.5 1\nadd 12/8 0",
            "line 4: conflict with existing route '12.0.0.0/8 - 1'",
        ),
        (
            "remove 10/8\nadd 10/8 1\n\nfrobnicate",
            "line 4: bad command `frobnicate`; it is `add`, `set` or `remove`",
        ),
        ("set 10/8 1\nset 10/8 1.1.1.1 0\nadd 13/8 7", "line 3: output 7 does not exist; outputs are 0 to 1"),
    ] {
        assert_eq!(rig.write("ctrl", text).unwrap_err(), message);
        assert_eq!(rig.read("table"), before);
    }
    rig.write("ctrl", "// comment\nadd 12/8 1 // another\n  \n remove 10/8 0\nset 11/8 1\n").unwrap();
    assert_eq!(rig.read("table"), "11.0.0.0/8\t\t-\t\t1\n12.0.0.0/8\t\t-\t\t1");
}

#[test]
fn the_static_table_cannot_be_changed() {
    let mut rig = Rig::new("StaticIPLookup", EXAMPLE, 1, 2);
    for handler in ["add", "set", "remove", "ctrl", "flush"] {
        assert!(rig.write(handler, "1.0.0.0/8 0").is_err(), "{handler}");
    }
    assert_eq!(rig.read("lookup 18.26.4.24"), "0");
}

#[test]
fn the_first_of_two_routes_counts() {
    let mut rig = Rig::new("LinearIPLookup", "1.2.3.4/8 0, 1.0.0.0/255.0.0.0 1", 1, 2);
    assert_eq!(push(&mut rig, [1, 1, 1, 1]).0, Exit::Port(0));
}

#[test]
fn all_mistakes_are_told() {
    let config = "10.0.0.0/8 2, 10.0.0.0/8, 10.0.0.0/33 0, 1.2.3.4/255.0.255.0 0, 1.1.1.1/32 0 0 0, \
                  1.1.1/8 nobody 0, 1/8 -1, 2/8 1";
    let mistakes = Rig::try_new("RadixIPLookup", config, 1, 2).err().unwrap();
    assert_eq!(mistakes.lines().count(), 7, "{mistakes}");
    for part in [
        "output 2 does not exist",
        "output of the route is missing",
        "prefix length 33",
        "holes",
        "`0` is too much",
        "nobody",
        "output -1",
    ] {
        assert!(mistakes.contains(part), "{part} in {mistakes}");
    }
}

#[test]
fn evaluator_and_machine_code_agree_on_lookups() {
    let config = "10.0.0.0/8 0, 10.0.1.0/24 10.9.9.9 1, 192.168.0.0/16 1, 0.0.0.0/32 2";
    for class in CLASSES {
        differential(class, config, 1, 3);
    }
    let mut rig = Rig::new("RadixIPLookup", config, 1, 3);
    let packets: Vec<TestPacket> = random_packets(9, 500)
        .into_iter()
        .zip([0x0a00_0101, 0x0a00_0001, 0xc0a8_0001, 0x0b00_0000, 0].into_iter().cycle())
        .map(|(packet, address)| packet.with_anno(anno::DST_IP, address))
        .collect();
    rig.push(0, &packets);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Against the search that Click's LinearIPLookup does: the longest of all that match.
    #[test]
    fn lookups_match_a_linear_search(
        routes in prop::collection::vec((any::<u32>(), 0u8..=32, 0u32..3, 0u32..4), 1..40),
        addresses in prop::collection::vec(any::<u32>(), 50),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        large: bool,
    ) {
        // Few bits, so that prefixes cover each other and addresses hit them.
        let few = |bits: u32| bits & 0xc1c0_c003;
        let mask = |len: u8| u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
        let mut reference: Vec<(u32, u8, u32, u32)> = vec![];
        let mut rig = Rig::new("RadixIPLookup", "", 1, 4);
        if large {
            // Routes that no address has, for so many nodes that machine code leaves lookups to the table.
            let far = |at: u32| format!("add {}.{}.1.0/24 3\n", 32 + 2 * (at / 256), at % 256);
            rig.write("ctrl", &(0..600).map(far).collect::<String>()).unwrap();
        }
        for (address, len, gateway, port) in routes {
            let prefix = few(address) & mask(len);
            let gateway = gateway * 0x0101_0101;
            let line = format!("{}/{len} {} {port}", Ipv4Addr::from(prefix), Ipv4Addr::from(gateway));
            let known = reference.iter_mut().find(|known| (known.0, known.1) == (prefix, len));
            prop_assert_eq!(rig.write("add", &line).is_ok(), known.is_none());
            rig.write("set", &line).unwrap();
            match known {
                Some(known) => (known.2, known.3) = (gateway, port),
                None => reference.push((prefix, len, gateway, port)),
            }
        }
        for index in removed {
            if !reference.is_empty() {
                let (prefix, len, ..) = reference.swap_remove(index.index(reference.len()));
                rig.write("remove", &format!("{}/{len}", Ipv4Addr::from(prefix))).unwrap();
            }
        }
        let packets: Vec<TestPacket> =
            addresses.iter().map(|address| to(few(*address).to_be_bytes())).collect();
        for (address, out) in addresses.iter().zip(rig.push(0, &packets)) {
            let address = few(*address);
            let matching = reference.iter().filter(|route| address & mask(route.1) == route.0);
            match matching.max_by_key(|route| route.1) {
                None => prop_assert_eq!(out.exit, Exit::Dropped("no-route".into())),
                Some(&(_, _, gateway, port)) => {
                    prop_assert_eq!(out.exit, Exit::Port(port as usize));
                    let next = if gateway == 0 { address } else { gateway };
                    prop_assert_eq!(out.packet.anno(anno::DST_IP), u64::from(next));
                }
            }
        }
    }
}
