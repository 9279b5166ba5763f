//! `LookupIP6Route`.

use super::*;
use crate::testing::Rig;
use proptest::prelude::*;

const EXAMPLE: &str = "3ffe:1ce1:2::/128 ::0 0, 3ffe:1ce1:2:0:200::/128 0, 3ffe:1ce1:2::/80 ::0 1, \
                       3ffe:1ce1:2:0:200::/80 ::0 2, ::ffff:0:0/96 3, ::/0 3ffe:1ce1:2::2 1";

fn push(rig: &mut Rig, to: &str) -> (Exit, Ipv6Addr) {
    let out = rig.push_one(0, &with_annotation(TestPacket::frame(&[0; 60]), to));
    (out.exit, annotation(&out.packet))
}

#[test]
fn the_longest_prefix_decides_output_and_next_hop() {
    let mut rig = Rig::new("LookupIP6Route", EXAMPLE, 1, 4);
    for (to, port, next) in [
        ("3ffe:1ce1:2::", 0, None),
        ("3ffe:1ce1:2::1", 1, None),
        ("3ffe:1ce1:2:0:200::", 0, None),
        ("3ffe:1ce1:2:0:200::1", 2, None),
        ("::ffff:1.2.3.4", 3, None),
        ("2001:db8::1", 1, Some("3ffe:1ce1:2::2")),
        ("::", 1, Some("3ffe:1ce1:2::2")),
    ] {
        assert_eq!(push(&mut rig, to), (Exit::Port(port), address(next.unwrap_or(to))), "{to}");
    }
    let mut rig = Rig::new("LookupIP6Route", "2001:db8::/32 0", 1, 1);
    assert_eq!(push(&mut rig, "2001:db9::").0, dropped("no-route"));
}

#[test]
fn routes_are_added_and_removed() {
    let mut rig = Rig::new("LookupIP6Route", "2001:db8::/32 0", 1, 2);
    rig.write("add", "2001:db8:1::/48 fe80::1 1").unwrap();
    assert_eq!(push(&mut rig, "2001:db8:1::7"), (Exit::Port(1), address("fe80::1")));
    assert_eq!(rig.read("table"), "# Active routes\n2001:db8::/32\t::\t0\n2001:db8:1::/48\tfe80::1\t1");
    rig.write("add", "2001:db8:1::/48 0").unwrap();
    assert_eq!(push(&mut rig, "2001:db8:1::7"), (Exit::Port(0), address("2001:db8:1::7")), "replaced");
    rig.write("remove", "2001:db8:1::/48").unwrap();
    assert!(rig.write("remove", "2001:db8:1::/48").is_err());
    assert_eq!(push(&mut rig, "2001:db8:1::7").0, Exit::Port(0));
    rig.write("ctrl", "remove 2001:db8::/32\n\nadd 2001:db8::5 1").unwrap();
    assert_eq!(rig.read("table"), "# Active routes\n2001:db8::5/128\t::\t1");
    let table = rig.read("table");
    rig.write("ctrl", "# nothing\nremove 2001:db8::5").unwrap();
    assert_eq!((rig.read("table").as_str(), table.lines().count()), ("", 2));
    assert!(rig.write("ctrl", "set ::/0 0").is_err() && rig.write("flush", "").is_err());
    assert!(rig.write("add", "::/0 2").is_err() && rig.write("add", "::/0").is_err());
}

#[test]
fn all_mistakes_are_told() {
    let config = "::/0, 2001:db8::/129 0, ::/0 nobody 0, ::/0 1, ::/0 :: 0 0, ::/0 -1, 10.0.0.0/8 0";
    let mistakes = Rig::try_new("LookupIP6Route", config, 1, 1).err().unwrap();
    assert_eq!(mistakes.lines().count(), 7, "{mistakes}");
    let mut rig = Rig::new("LookupIP6Route", "::1/64 0, ::2/64 1", 1, 2);
    assert_eq!(push(&mut rig, "::9").0, Exit::Port(1), "the last counts, as in Click");
}

#[test]
fn evaluator_and_machine_code_agree_on_lookups() {
    let mut rig = Rig::new("LookupIP6Route", "2001:db8:1::/48 0, 2001:db8:7::/48 fe80::1 1", 1, 2);
    rig.push(0, &odd_packets());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn lookups_match_a_linear_search(
        routes in prop::collection::vec((any::<u128>(), 0u8..=128, any::<bool>(), 0u32..3), 1..30),
        addresses in prop::collection::vec(any::<u128>(), 70),
    ) {
        // Few bits, so that prefixes cover each other and addresses hit them.
        let few = |bits: u128| bits & 0xc000_0001_8000_0000_0000_c000_0000_0003;
        let mask = |len: u8| u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
        let mut reference: Vec<(u128, u8, Ipv6Addr, u32)> = vec![];
        let mut rig = Rig::new("LookupIP6Route", "", 1, 3);
        for (bits, len, has_gateway, port) in routes {
            let prefix = few(bits) & mask(len);
            let gateway = if has_gateway { address("fe80::7") } else { Ipv6Addr::UNSPECIFIED };
            let line = format!("{}/{len} {gateway} {port}", Ipv6Addr::from(prefix));
            rig.write("add", &line).unwrap();
            reference.retain(|known| (known.0, known.1) != (prefix, len));
            reference.push((prefix, len, gateway, port));
        }
        let packets: Vec<TestPacket> = addresses
            .iter()
            .map(|bits| with_annotation(TestPacket::frame(&[0; 60]), &Ipv6Addr::from(few(*bits)).to_string()))
            .collect();
        for (bits, out) in addresses.iter().zip(rig.push(0, &packets)) {
            let to = few(*bits);
            let matching = reference.iter().filter(|route| to & mask(route.1) == route.0);
            match matching.max_by_key(|route| route.1) {
                None => prop_assert_eq!(out.exit, dropped("no-route")),
                Some((_, _, gateway, port)) => {
                    prop_assert_eq!(&out.exit, &Exit::Port(*port as usize));
                    let next = if gateway.is_unspecified() { Ipv6Addr::from(to) } else { *gateway };
                    prop_assert_eq!(annotation(&out.packet), next);
                }
            }
        }
    }
}
