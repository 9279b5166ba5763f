//! Text to expressions.

use super::{expr, read};
use crate::filter::expr::Expr;
use proptest::prelude::*;

/// Texts and what they say, in the canonical form.
const READ: &[(&str, &str)] = &[
    ("-", "true"),
    ("any", "true"),
    ("all", "true"),
    ("true", "true"),
    ("false", "false"),
    ("tcp", "ip proto 6"),
    ("ip proto tcp", "ip proto 6"),
    ("ip proto 89", "ip proto 89"),
    ("ip proto 6 or 17", "ip proto 6 or ip proto 17"),
    ("ip proto != 6", "ip proto != 6"),
    ("tcpudp", "tcpudp"),
    ("host 10.0.0.1", "src or dst host 10.0.0.1"),
    ("src 10.0.0.1", "src host 10.0.0.1"),
    ("src and dst 10.0.0.1", "src and dst host 10.0.0.1"),
    ("src or dst host 10.0.0.1 or 10.0.0.2", "src or dst host 10.0.0.1 or src or dst host 10.0.0.2"),
    ("dest 10.0.0.1 or 10.0.0.2", "dst host 10.0.0.1 or dst host 10.0.0.2"),
    ("src host != 10.0.0.10", "src host != 10.0.0.10"),
    ("10.0.0.0/24", "src or dst net 10.0.0.0/24"),
    ("src 204.152/16", "src net 204.152.0.0/16"),
    ("src net 10.1.2.3/8", "src net 10.0.0.0/8"),
    ("net 10", "src or dst net 10.0.0.0/8"),
    ("dst net 10 mask 255.0.0.0", "dst net 10.0.0.0/8"),
    ("dst 10.0.0.0 mask 255.255.0.0", "dst net 10.0.0.0/16"),
    ("src 10.0.0.0 & 8.0.0.0 = 8.0.0.0", "src host 10.0.0.0 and src host & 8.0.0.0 = 8.0.0.0"),
    ("src host & 0x00ff0000 = 10.1.0.0", "src host & 0.255.0.0 = 0.1.0.0"),
    ("src INTERNALNET", "src net 10.0.0.0/8"),
    ("src BASTION && dst INTERNALNET", "src host 10.0.1.2 and dst net 10.0.0.0/8"),
    ("dst gate", "dst host 10.0.2.1"),
    ("dst net gate", "dst net 10.0.2.0/24"),
    ("src 0:1:2:3:4:5", "src ether host 00:01:02:03:04:05"),
    ("ether dst host gate", "dst ether host 00:01:02:03:04:05"),
    ("src port 80 or 81", "src port 80 or src port 81"),
    ("src port 80 or 81 and udp", "src port 80 or (src port 81 and ip proto 17)"),
    ("dst tcp port 8000 or 8080", "dst tcp port 8000 or dst tcp port 8080"),
    ("tcp src port > 1023", "src tcp port > 1023"),
    ("dst udp port 1234", "dst udp port 1234"),
    ("port 100-200", "src or dst port 100-200"),
    ("src port != 1024-65535", "src port != 1024-65535"),
    ("src tcp port & 10 == 8", "src tcp port & 0xa = 8"),
    ("www", "src or dst port 80"),
    ("tcp && dst port www", "ip proto 6 and dst port 80"),
    ("dst port snmp", "dst port 161"),
    ("ip6", "ip6"),
    ("not ip6", "not ip6"),
    ("ip6 host 2001:db8::1", "src or dst ip6 host 2001:db8::1"),
    ("src ip6 ::1 or fe80::2", "src ip6 host ::1 or src ip6 host fe80::2"),
    ("dst ip6 net 2001:db8:1:2::3/64", "dst ip6 net 2001:db8:1:2::/64"),
    ("ip6 dst 2001:db8::/32", "dst ip6 net 2001:db8::/32"),
    ("ip6 src host != ::1", "src ip6 host != ::1"),
    ("ip6 tcp", "ip6 proto 6"),
    ("ip6 tcpudp", "ip6 proto 6 or ip6 proto 17"),
    ("ip6 proto 58 or 59", "ip6 proto 58 or ip6 proto 59"),
    ("dst ip6 tcp port 80 or 443", "dst ip6 tcp port 80 or dst ip6 tcp port 443"),
    ("ip6 port 1024-2000 or src port 80", "src or dst ip6 port 1024-2000 or src port 80"),
    ("ip6 udp dst port domain", "dst ip6 udp port 53"),
    ("tcp dst port 80 or ip6 tcp dst port 80", "dst tcp port 80 or dst ip6 tcp port 80"),
    ("syn", "tcp opt syn"),
    ("tcp opt syn", "tcp opt syn"),
    ("tcp opt 18", "tcp opt 18"),
    ("10.0.0.0/24 and fin ack", "src or dst net 10.0.0.0/24 and tcp opt fin and tcp opt ack"),
    ("tcp win 0", "tcp win 0"),
    ("tcp[13] & 0x12 = 2", "tcp[13:1] & 0x12 = 2"),
    ("tcp[2:2] > 1023", "tcp[2:2] > 1023"),
    ("ip[9] 6", "ip[9:1] 6"),
    ("ip[6:2] & 0x1fff = 0", "ip[6:2] & 0x1fff = 0"),
    ("ip[12,15] = 0x0a000001", "ip[12:4] 167772161"),
    ("transp[0:2] 80", "transp[0:2] 80"),
    ("icmp type echo", "icmp type 8"),
    ("icmp echo", "icmp type 8"),
    ("icmp type 8 or 0", "icmp type 8 or icmp type 0"),
    ("icmp type unreachable", "icmp type 3"),
    ("timeexceeded", "icmp type 11"),
    ("ip vers 4 and ip hl > 5", "ip vers 4 and ip hl > 5"),
    ("ip ttl <= 1", "ip ttl <= 1"),
    ("ip tos 16 or dscp 10", "ip tos 16 or ip dscp 10"),
    ("ip id 7", "ip id 7"),
    ("ip len > 1500", "ip len > 1500"),
    ("ip frag", "ip frag"),
    ("unfrag", "ip unfrag"),
    ("ip ect", "ip tos & 0x3 != 0"),
    ("ip ect 1", "ip tos & 0x3 = 1"),
    ("ip ce", "ip tos & 0x3 = 3"),
    ("not tcp", "not ip proto 6"),
    ("! ! tcp", "not not ip proto 6"),
    ("not (tcp or udp)", "not (ip proto 6 or ip proto 17)"),
    ("tcp not syn", "not tcp opt syn"),
    ("udp dst 10.0.0.1", "ip proto 17 and dst host 10.0.0.1"),
    ("tcp frag", "ip proto 6 and ip frag"),
    ("(dst port www or dst port ssh) and tcp opt syn", "(dst port 80 or dst port 22) and tcp opt syn"),
    ("tcp ? syn : udp", "ip proto 6 ? tcp opt syn : ip proto 17"),
    (
        "tcp ? syn : udp ? port 53 : true",
        "ip proto 6 ? tcp opt syn : (ip proto 17 ? src or dst port 53 : true)",
    ),
    ("src 10.0.0.1(tcp)", "src host 10.0.0.1 and ip proto 6"),
];

#[test]
fn what_expressions_say() {
    for (text, said) in READ {
        match read(text) {
            Ok(expr) => assert_eq!(expr.to_string(), *said, "{text}"),
            Err(mistakes) => panic!("{text}: {mistakes}"),
        }
        assert_eq!(read(said).map(|expr| expr.to_string()).as_deref(), Ok(*said));
    }
}

/// Wrong texts, and the mistakes: `column: message; remedy`.
const WRONG: &[(&str, &[&str])] = &[
    ("", &["1: error: the pattern is empty; `all` matches every packet"]),
    ("tcp and", &["5: error: expected a test after `and`"]),
    ("or tcp", &["1: error: expected a test before `or`"]),
    ("not", &["1: error: expected a test after `not`"]),
    ("()", &["1: error: expected a test after `(`"]),
    ("(tcp", &["5: error: expected `)`; the `(` (f:1:1)"]),
    ("tcp)", &["4: error: `)` without a `(`"]),
    (
        "tcp ? udp",
        &[
            "10: error: expected the `:` that goes with a `?`; the `?` (f:1:5); the `:` needs spaces around it",
        ],
    ),
    (
        "src hots 10.0.0.1",
        &["5: error: `hots` is no address, name or word of the language; did you mean `host`?"],
    ),
    ("prot 80", &["1: error: `prot` is no address, name or word of the language; did you mean `port`?"]),
    (
        "src BASTON",
        &["5: error: `BASTON` is no address, name or word of the language; did you mean `BASTION`?"],
    ),
    (
        "echo",
        &[
            "1: error: `echo` could mean several things here; write `tcp port echo` or `udp port echo` or `icmp type echo`",
        ],
    ),
    ("tcp port syn", &["10: error: `syn` means nothing here; write `tcp opt syn`"]),
    ("port", &["1: error: expected a port"]),
    ("host", &["1: error: expected an IP address"]),
    ("port 65536", &["6: error: the value is out of range; it lies between 0 and 65535"]),
    (
        "ip ttl 256 and ip hl 16",
        &[
            "8: error: the value is out of range; it lies between 0 and 255",
            "22: error: the value is out of range; it lies between 0 and 15",
        ],
    ),
    ("port 200-100", &["6: error: the range is empty; write `100-200`"]),
    ("port >", &["6: error: expected a value"]),
    ("port > and tcp", &["6: error: expected a value, found `and`"]),
    ("port > 80-90", &["1: error: a range is compared by `=` or `!=`"]),
    ("host 10.0.0.0/8", &["1: error: `host` takes one address; write `net` for a prefix"]),
    ("net 10.0.0.1", &["1: error: `net` takes a prefix; write `net 10.0.0.0/8` or `host 10.0.0.1`"]),
    ("host > 10.0.0.1", &["1: error: addresses are equal or not; use `=`, `!=`, or a prefix"]),
    ("tcp udp", &["5: error: the transport protocol is given twice; join two tests by `and` or `or`"]),
    ("src dst 10.0.0.1", &["5: error: `src` or `dst` is given twice; join two tests by `and` or `or`"]),
    ("host port 80", &["6: error: the kind of test is given twice; join two tests by `and` or `or`"]),
    ("icmp port 80", &["1: error: `icmp` has no ports; ports are those of `tcp` and `udp`"]),
    (
        "80",
        &["1: error: a number of what?; say what it is compared with: `src port`, `ip ttl`, `ip proto`, …"],
    ),
    ("tcp[13] & 2", &["1: error: expected a value after the mask; write `& MASK != 0`"]),
    ("tcp[13] & 0 = 0", &["11: error: a mask without bits compares nothing"]),
    ("tcp[13] & 256 = 0", &["11: error: the mask is out of range; it has no bits outside 0xff"]),
    ("tcp[0:5] 1", &["4: error: the field is out of range; LEN lies between 1 and 4"]),
    ("tcp[x] 1", &["4: error: expected a place in the header; write `[POS]` or `[POS:LEN]`, in bytes"]),
    ("tcp[13", &["4: error: expected the `]` that goes with this `[`"]),
    ("tcp & udp", &["5: error: expected a mask after `&`; a number such as `0xff`; a conjunction is `&&`"]),
    (
        "tcp opt syn > 1",
        &["13: error: a number of what?; say what it is compared with: `src port`, `ip ttl`, `ip proto`, …"],
    ),
    ("ether port 80", &["1: error: `port` is not in the Ethernet header; leave `ether` out"]),
    ("ip frag 1", &["1: error: `frag` takes no value; join two tests by `and` or `or`"]),
    ("transp", &["1: error: `transp` is no protocol; it stands before `[POS:LEN]`"]),
    ("src", &["1: error: the test is not complete; expected an address, a port, a protocol, …"]),
    ("src 10.0.0.256", &["5: error: `10.0.0.256` is no address, name or word of the language"]),
    ("tcp € udp", &["5: error: `€` is no address, name or word of the language"]),
];

#[test]
fn what_is_wrong_and_how_to_mend_it() {
    let mut differ = String::new();
    for (text, mistakes) in WRONG {
        let wanted: String = mistakes.iter().map(|mistake| format!("f:1:{mistake}\n")).collect();
        let found = read(text).map_or_else(|mistakes| mistakes, |expr| format!("it means `{expr}`"));
        if found.trim() != wanted.trim() {
            differ += &format!("{text}\n  found  {found}\n  wanted {wanted}\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("(", ")"), ("not ", ""), ("tcp ? tcp : ", ""), ("tcp ? ", "")] {
        let deep = format!("{}tcp{}", open.repeat(20_000), close.repeat(20_000));
        let mistakes = read(&deep).expect_err(open);
        assert!(mistakes.contains("inside each other"), "{}", &mistakes[..200]);
        assert_eq!(mistakes.lines().count(), 1);
    }
    let wide = format!("src port 1{}", " or 2".repeat(20_000));
    assert!(matches!(read(&wide), Ok(Expr::Any(parts)) if parts.len() == 20_001));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_expression_survives_being_written(expr in expr()) {
        prop_assert_eq!(read(&expr.to_string()), Ok(expr));
    }

    #[test]
    fn no_text_panics(words in proptest::collection::vec(word(), 0..20)) {
        crate::filter::fuzz_expression(words.concat().as_bytes());
    }

    #[test]
    fn no_bytes_panic(bytes in any::<Vec<u8>>()) {
        crate::filter::fuzz_expression(&bytes);
    }
}

/// The inputs that fuzzing starts from, and every one that it once found wrong.
#[test]
fn seeds_and_regressions_of_fuzzing_hold() {
    testkit::replay::replay("filter_expression", 12, crate::filter::fuzz_expression);
}

/// Words of the language and others, with and without spaces.
fn word() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(
        &[
            "src",
            "dst",
            "and",
            "or",
            "not",
            "(",
            ")",
            "?",
            " : ",
            "port",
            "host",
            "net",
            "proto",
            "tcp",
            "udp",
            "icmp",
            "ip",
            "ether",
            "type",
            "opt",
            "syn",
            "echo",
            "[",
            "]",
            "13",
            ":",
            ",",
            "&",
            "&&",
            "||",
            "!",
            "=",
            "!=",
            "<",
            ">=",
            "10.0.0.1",
            "10/8",
            "1-2",
            "0x12",
            "mask",
            "255.0.0.0",
            "frag",
            "ect",
            "true",
            "all",
            "-",
            "0:1:2:3:4:5",
            "transp",
            "tcpudp",
            "ttl",
            "99999999999999999999",
        ][..],
    );
    (known, any::<bool>()).prop_map(|(word, space)| if space { format!("{word} ") } else { word.to_string() })
}
