//! Handlers.

use super::{EXTERNAL, INSIDE, OTHER, REMOTE, SECOND_NS, SYN, expect, expect_drop, tcp, udp};
use crate::testing::Rig;

#[test]
fn tables_show_both_directions_as_click_does() {
    let config = "pattern 203.0.113.1 1024-65535# - - 0 1, drop";
    let mut rig = Rig::new("IPRewriter", config, 2, 2);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.push_one(0, &tcp(OTHER, REMOTE, SYN, b""));
    rig.advance(10 * SECOND_NS);
    let udp_table = "(10.0.0.5, 4000, 198.51.100.7, 53) => (203.0.113.1, 1024, 198.51.100.7, 53) [*0 1] i0 exp290\n\
                     (198.51.100.7, 53, 203.0.113.1, 1024) => (198.51.100.7, 53, 10.0.0.5, 4000) [0 *1] i0 exp290\n";
    assert_eq!(rig.read("udp_table"), udp_table);
    assert_eq!(rig.read("udp_mappings"), udp_table);
    assert!(rig.read("tcp_table").starts_with("(10.0.0.6, 4000, 198.51.100.7, 53) => (203.0.113.1, 1025,"));
    assert_eq!(rig.read("tcp_lookup 10.0.0.6 4000 198.51.100.7 53"), "203.0.113.1 1025 198.51.100.7 53");
    assert_eq!(rig.read("tcp_lookup 198.51.100.7 53 203.0.113.1 1025"), "198.51.100.7 53 10.0.0.6 4000");
    assert_eq!(rig.read("tcp_lookup 10.0.0.5 4000 198.51.100.7 53"), "");
    for (handler, value) in
        [("table_size", "2"), ("nmappings", "2"), ("size", "2"), ("mapping_failures", "0")]
    {
        assert_eq!(rig.read(handler), value, "{handler}");
    }
    assert_eq!(rig.read("patterns"), "203.0.113.1 1024-65535 - - [2]\n<drop>\n");
    assert_eq!(rig.read("pattern1"), "<drop>\n");
    assert_eq!(rig.read("capacity"), "2147483647");
    let mut rig = Rig::new("TCPRewriter", "pattern - 7 - 8 0 0, keep 0 0, pass", 3, 1);
    rig.push_one(0, &tcp(INSIDE, REMOTE, SYN, b""));
    assert_eq!(rig.read("table"), rig.read("mappings"));
    assert_eq!(rig.read("lookup 10.0.0.5 4000 198.51.100.7 53"), "10.0.0.5 7 198.51.100.7 8");
    assert_eq!(rig.read("patterns"), "- 7 - 8 [1]\n<keep>\n<nochange>\n");
}

#[test]
fn each_class_answers_the_handlers_that_all_have() {
    for class in super::super::rewriter::CLASSES {
        let mut rig = Rig::new(class, "drop, drop", 2, 1);
        for handler in ["table_size", "nmappings", "mapping_failures", "size", "evictions"] {
            assert_eq!(rig.read(handler), "0", "{class} {handler}");
        }
        assert_eq!(rig.read("patterns"), "<drop>\n<drop>\n");
        let table = if *class == "IPRewriter" { "tcp_table" } else { "table" };
        assert_eq!(rig.read(table), "");
        assert!(rig.write("nonsense", "").is_err());
    }
}

#[test]
fn writing_a_pattern_replaces_it_and_its_mappings() {
    let mut rig = Rig::new("IPRewriter", "pattern 203.0.113.1 1024-65535# - - 0 0, keep 0 0", 2, 1);
    rig.push_one(0, &udp(INSIDE, REMOTE, b""));
    rig.push_one(1, &udp(OTHER, REMOTE, b""));
    rig.write("pattern0", "pattern 1.2.3.4 99-100# - - 0 0").unwrap();
    assert_eq!(rig.read("patterns"), "1.2.3.4 99-100 - -\n<keep> [1]\n");
    expect(&rig.push_one(0, &udp(INSIDE, REMOTE, b"")), 0, ("1.2.3.4", 99), REMOTE);
    rig.write("pattern0", "pass 0").unwrap();
    let stranger = udp(INSIDE, REMOTE, b"");
    assert_eq!(rig.push_one(0, &stranger).packet, stranger);
    rig.write("pattern0", "drop").unwrap();
    expect_drop(&rig.push_one(0, &stranger), "no-mapping");
    for (wrong, what) in [
        ("pattern 1.2.3.4 0 - - 0 0", "bad source port"),
        ("keep 0 1", "out of range"),
        ("somebody", "cannot be given here"),
        ("", "empty argument"),
    ] {
        assert!(rig.write("pattern0", wrong).unwrap_err().contains(what), "{wrong}");
    }
    assert!(rig.write("pattern2", "drop").is_err());
}

#[test]
fn clear_and_capacity_take_mappings_away_at_once() {
    let mut rig = Rig::new("IPRewriter", "pattern 203.0.113.1 1024-65535# - - 0 0", 1, 1);
    for n in 1..=8 {
        rig.push_one(0, &udp(("10.0.0.5", n), REMOTE, b""));
        rig.advance(SECOND_NS);
    }
    rig.write("capacity", "3 1").unwrap();
    assert_eq!((rig.read("nmappings").as_str(), rig.read("capacity").as_str()), ("3", "3"));
    // The latest stay.
    expect(&rig.push_one(0, &udp(("10.0.0.5", 8), REMOTE, b"")), 0, (EXTERNAL, 1031), REMOTE);
    assert!(rig.write("capacity", "0").is_err() && rig.write("capacity", "x").is_err());
    rig.write("clear", "").unwrap();
    assert_eq!(rig.read("table_size"), "0");
    assert_eq!(rig.read("udp_table"), "");
}
