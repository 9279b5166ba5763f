//! The rules as Click lists them: known lists, and lists that decide as their rules say.

use super::{expr, headers, packets};
use crate::filter::expr::{Expr, Headers};
use crate::filter::filter_plan::DENIED;
use crate::filter::listing::of_ip;
use crate::testing::{Exit, Rig, TestPacket};
use proptest::prelude::*;

fn list(class: &'static str, config: &str, outputs: usize) -> String {
    Rig::new(class, config, 1, outputs).read("program")
}

#[test]
fn patterns_are_listed_word_by_word() {
    assert_eq!(
        list("Classifier", "12/0806 20/????0001, 12/0800, -", 3),
        "\x200  12/08060000%ffff0000  yes->step 1  no->step 2
 1  20/00000001%0000ffff  yes->[0]  no->[2]
 2  12/08000000%ffff0000  yes->[1]  no->[2]
safe length 24
alignment offset 0
"
    );
    assert_eq!(list("Classifier", "-", 1), "all->[0]\nsafe length 0\nalignment offset 0\n");
    let one = " 0   8/00000400%0000fe00  yes->[0]  no->[X]\nsafe length 11\nalignment offset 0\n";
    assert_eq!(
        list("IPFilter", "allow src net 0.0.0.0/0", 1),
        "all->[0]\nsafe length 0\nalignment offset 0\n"
    );
    assert_eq!(list("Classifier", "10/04%fe", 1), one);
}

#[test]
fn rules_that_say_the_same_leave_no_step() {
    let all = |to: &str| format!("all->[{to}]\nsafe length 0\nalignment offset 0\n");
    let two = "allow tcp && dst 10.0.0.0 && src 2.0.0.0, allow tcp && dst port 80, allow all";
    assert_eq!(list("IPFilter", two, 1), all("0"));
    assert_eq!(list("IPFilter", "allow false", 1), all("X"));
    assert_eq!(list("IPFilter", "deny false, allow true, deny all", 1), all("0"));
    // What the first rule decided is not asked again.
    let wanted = "\x200 264/00110000%00ff0000  yes->step 1  no->[0]
 1 260/00000000%00001fff  yes->step 2  no->[X]
 2 512/000004d2%0000ffff  yes->[0]  no->[X]
safe length 516
alignment offset 0
";
    assert_eq!(list("IPFilter", "allow dst udp port 1234, deny udp, allow all", 1), wanted);
}

#[test]
fn a_test_that_all_ways_to_it_have_made_is_left_out() {
    // Behind "no TCP" at step 5 only UDP is left, although TCP and UDP come there: step 8 need not ask.
    let wanted = "\x200 264/00010000%00ff0000  yes->[0]  no->step 1
 1 264/00060000%00ff0000  yes->step 3  no->step 2
 2 264/00110000%00ff0000  yes->step 3  no->[3]
 3 260/00000000%00001fff  yes->step 4  no->step 5
 4 512/00000035%0000ffff  yes->[1]  no->step 5
 5 264/00060000%00ff0000  yes->step 6  no->step 8
 6 260/00000000%00001fff  yes->step 7  no->[2]
 7 524/00020000%00120000  yes->step 9  no->[2]
 8 260/00000000%00001fff  yes->step 9  no->[3]
 9 512/00000000%f800f800  yes->[3]  no->[2]  short->yes
safe length 526
alignment offset 0
";
    let rules = "icmp, dst port 53, (tcp and !(syn and !ack)) or port >= 2048, -";
    assert_eq!(list("IPClassifier", rules, 4), wanted);
}

#[test]
fn many_values_of_one_word_are_sorted_as_click_searches_them() {
    let ports: Vec<String> = (1..=8).map(|port| format!("dst port {}", port * 37)).collect();
    let listed = list("IPFilter", &format!("deny not tcp, allow {}", ports.join(" or ")), 1);
    let values = listed.lines().filter_map(|line| line.split_once("512/")?.1.get(..8));
    let values: Vec<u32> = values.map(|value| u32::from_str_radix(value, 16).unwrap().swap_bytes()).collect();
    assert_eq!(values.len(), 8, "{listed}");
    assert!(values.is_sorted(), "{listed}");
}

#[test]
fn what_click_cannot_list_is_shown_as_steps() {
    let mut rig = Rig::new("IPFilter", "allow vlan 5, deny all", 1, 1);
    assert_eq!(rig.read("program"), rig.read("steps"));
    let rules: Vec<String> = (0..300).map(|at| format!("allow ip id {at}")).collect();
    let mut rig = Rig::new("IPFilter", &rules.join(", "), 1, 1);
    assert_eq!(rig.read("program"), rig.read("steps"));
}

/// Where a list sends a packet, of which `word` gives four bytes.
fn run(list: &str, word: impl Fn(usize) -> [Option<u8>; 4]) -> Exit {
    let way = |text: &str| match text.trim() {
        "[X]" => Err(Exit::Dropped(String::new())),
        other if other.starts_with('[') => Err(Exit::Port(other[1..other.len() - 1].parse().unwrap())),
        other => Ok(other.strip_prefix("step ").unwrap().parse::<usize>().unwrap()),
    };
    let lines: Vec<&str> = list.lines().collect();
    if let Some(all) = lines[0].strip_prefix("all->") {
        return way(all).unwrap_err();
    }
    let mut at = 0;
    loop {
        let line = lines[at];
        let (number, rest) = line.trim_start().split_once(' ').unwrap();
        assert_eq!(number.parse(), Ok(at), "{list}");
        let (test, ways) = rest.split_once("  yes->").unwrap();
        let (ways, short) = ways.strip_suffix("  short->yes").map_or((ways, false), |ways| (ways, true));
        let (yes, no) = ways.split_once("  no->").unwrap();
        let (offset, bits) = test.trim().split_once('/').unwrap();
        let (value, mask) = bits.split_once('%').unwrap();
        let hex = |text: &str| u32::from_str_radix(text, 16).unwrap().to_be_bytes();
        let (value, mask) = (hex(value), hex(mask));
        let bytes = word(offset.parse().unwrap());
        let there = bytes.iter().zip(mask).all(|(byte, mask)| byte.is_some() || mask == 0);
        let equal = (0..4).all(|n| bytes[n].unwrap_or(0) & mask[n] == value[n]);
        let next = way(if if there { equal } else { short } { yes } else { no });
        match next {
            Ok(step) => assert!(step > at, "{list}"),
            Err(exit) => return exit,
        }
        at = next.unwrap_or(0);
    }
}

fn from(bytes: &[u8], at: usize) -> [Option<u8>; 4] {
    [0, 1, 2, 3].map(|n| bytes.get(at + n).copied())
}

fn of_headers(headers: &Headers<'_>, at: usize) -> [Option<u8>; 4] {
    match at {
        512.. => from(headers.trans, at - 512),
        256.. => from(headers.net, at - 256),
        2.. => from(headers.mac, at - 2),
        _ => [None, None, headers.mac.first().copied(), headers.mac.get(1).copied()],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn lists_decide_as_their_rules_say(
        rules in proptest::collection::vec(expr(), 1..12),
        seed in any::<u64>(),
    ) {
        let decisions = [0, 1, DENIED];
        let decided: Vec<(Expr, u32)> =
            rules.iter().enumerate().map(|(at, rule)| (rule.clone(), decisions[at % 3])).collect();
        // A rule with tests that Click does not have is not listed.
        let Some(listed) = of_ip(&decided, |decision| decision == DENIED) else { return Ok(()) };
        for mut packet in packets(seed, 96) {
            // A test of ports looks at both here, and at one in Click: all bytes are there.
            packet.bytes.extend([0; 160]);
            let headers = headers(&packet);
            if headers.net.len() < 20 || headers.mac.is_empty() || headers.trans.is_empty() {
                continue;
            }
            let matching = rules.iter().position(|rule: &Expr| rule.matches(&headers));
            let wanted = match matching {
                Some(rule) if rule % 3 < 2 => Exit::Port(rule % 3),
                _ => Exit::Dropped(String::new()),
            };
            let found = run(&listed, |at| of_headers(&headers, at));
            prop_assert_eq!(found, wanted, "{:?}\n{}", rules, listed);
        }
    }

    #[test]
    fn lists_of_patterns_decide_as_the_classifier_does(
        clauses in proptest::collection::vec((0..12usize, any::<u16>(), 0..3usize, any::<bool>()), 1..9),
        bytes in proptest::collection::vec(0..4u8, 0..20),
    ) {
        let clause = |(at, value, kind, negated): &(usize, u16, usize, bool)| {
            let mask = ["%ffff", "%0103", "%ff00"][*kind];
            format!("{}{at}/{:04x}{mask}", if *negated { "!" } else { "" }, value & 0x0303)
        };
        let patterns: Vec<String> =
            clauses.chunks(2).map(|two| two.iter().map(clause).collect::<Vec<_>>().join(" ")).collect();
        let config = patterns.join(", ");
        let mut rig = Rig::new("Classifier", &config, 1, patterns.len());
        let listed = rig.read("program");
        let found = run(&listed, |at| from(&bytes, at));
        let exit = match rig.push_one(0, &TestPacket::frame(&bytes)).exit {
            Exit::Dropped(_) => Exit::Dropped(String::new()),
            port => port,
        };
        // Click looks whether a word is there, and this classifier whether all bytes of a clause are.
        let whole = bytes.len() >= 16;
        prop_assert!(!whole || found == exit, "{config}\n{listed}{bytes:?}: {found:?}, {exit:?}");
    }
}
