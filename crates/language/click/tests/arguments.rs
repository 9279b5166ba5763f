//! Configuration strings, values and [`Args`], compared with Click's manual and `lib/args.cc`.

use click::config::{
    Args, HandlerRef, NameTable, Names, NoNames, Parsed, Variables, expand, parse, quote, split_args,
    split_keyword, split_words, unquote, unquote_bytes,
};
use diag::{Diagnostics, SourceMap, Spanned};
use proptest::prelude::*;

fn text(text: &str) -> (SourceMap, Spanned) {
    let mut map = SourceMap::new();
    let id = map.add("f", text);
    let spanned = Spanned::verbatim(text, map.whole(id));
    (map, spanned)
}

fn strings(items: &[Spanned]) -> Vec<&str> {
    items.iter().map(Spanned::as_str).collect()
}

#[test]
fn arguments_split_at_top_level_commas() {
    for (config, args) in [
        ("", vec![]),
        ("  /* nothing */ ", vec![]),
        ("a, b, c", vec!["a", "b", "c"]),
        ("  a /*?*/ b,  c, ", vec!["a b", "c"]),
        ("\"x, y\" // ?", vec!["\"x, y\""]),
        (",", vec![""]),
        ("a,,b", vec!["a", "", "b"]),
        ("12/0806 20/0001, // queries\n -", vec!["12/0806 20/0001", "-"]),
        ("'a,b', \\<00,11>, \"c\\\",d\"", vec!["'a,b'", "\\<00,11>", "\"c\\\",d\""]),
        ("'never, closed", vec!["'never, closed"]),
    ] {
        let (map, config) = text(config);
        let found = split_args(&config);
        assert_eq!(strings(&found), args, "{config}");
        for arg in found.iter().filter(|arg| arg.is_verbatim()) {
            assert_eq!(map.slice(arg.span), arg.as_str());
        }
    }
}

#[test]
fn words_and_keywords() {
    let words = |t: &str| strings(&split_words(&text(t).1)).join("|");
    assert_eq!(words("a  b, c"), "a|b,|c");
    assert_eq!(words("  'a /*?*/ b'c /* x */ d"), "'a /*?*/ b'c|d");
    let keyword = |t: &str| split_keyword(&text(t).1).map(|(k, v)| format!("{k}={v}"));
    assert_eq!(keyword("LIMIT 10").as_deref(), Some("LIMIT=10"));
    assert_eq!(keyword("a.b:c  1 2").as_deref(), Some("a.b:c=1 2"));
    for bare in ["LIMIT", "10 20", "\"LIMIT\" 3", "LIM-IT 3", ""] {
        assert_eq!(keyword(bare), None, "{bare}");
    }
}

#[test]
fn quotes_go_as_the_manual_says() {
    for (quoted, plain) in [
        ("abc", "abc"),
        ("a\"b\"c", "abc"),
        ("\"\\n\" abc /* 123 */ '/* def */'", "\n abc /* def */"),
        ("\\< 48 45 4c 4C 4f >", "HELLO"),
        ("'\\<48>'", "\\<48>"),
        ("\"\\<48656c6C 6f 2 /* And finally */ 1>\"", "Hello!"),
        ("\"\\101\\x42\\x0043\\\\\\\"\\q\"", "ABC\\\"q"),
        ("\"a\\\nb\"", "ab"),
        ("\"\"", ""),
    ] {
        assert_eq!(unquote(&text(quoted).1).as_str(), plain, "{quoted}");
    }
    assert_eq!(unquote_bytes(&text("\\<00 ff 7>\"\\377\"").1), [0, 0xff, 0xff]);
    // A text in simple quotes keeps its exact location.
    let (map, quoted) = text("\"abc\"");
    assert_eq!(map.slice(unquote(&quoted).span), "abc");
}

struct Table(Vec<(&'static str, Spanned)>);

impl Variables for Table {
    fn value(&self, name: &str) -> Option<&Spanned> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

#[test]
fn variables_expand_as_in_click() {
    let value = |value: &str| Spanned::verbatim(value, text(value).1.span);
    let table =
        Table(vec![("a", value("A B C")), ("n", value("2")), ("q", value("x\"y")), ("r", value("$n$n"))]);
    for (config, expanded) in [
        ("$a", "A B C"),
        ("${a}s $as", "A B Cs $as"),
        ("${a[0]}${a[2]}${a[3]}", "AC"),
        ("${a[$n]}", "C"),
        ("${u-none} ${a-none} ${u-$n}", "none A B C 2"),
        ("'$a' \"$a\" $u", "'$a' \"A B C\" $u"),
        ("\"$q\" \"\\$a\"", "\"x\\\"y\" \"\\$a\""),
        ("$r", "22"),
        ("// $a\n$n", "// $a\n2"),
        ("$(add $n 1)", "$(add 2 1)"),
        ("${a", "${a"),
        ("$", "$"),
    ] {
        let found = expand(&text(config).1, &table, 1 << 20).expect("within bounds");
        assert_eq!(found.as_str(), expanded, "{config}");
    }
    let endless = Table(vec![("a", value("$a $a $a $a"))]);
    let huge = Table(vec![("b", value(&"$c".repeat(4000))), ("c", value(&"x".repeat(4000)))]);
    assert!(expand(&text("$b").1, &huge, 1 << 20).is_none());
    // The expansion may be refused or may stop at the depth limit; it must end.
    let _ = expand(&text("$a").1, &endless, 1 << 20);
}

fn value<T>(input: &str, parser: impl Fn(&Spanned, &dyn Names) -> Parsed<T>) -> Result<T, String> {
    parser(&text(input).1, &NoNames).map_err(|error| error.message)
}

#[test]
fn numbers() {
    for (input, number) in
        [("10", 10), ("0x1F", 31), ("0b101", 5), ("010", 8), ("0", 0), ("+7", 7), ("1_000", 1000)]
    {
        assert_eq!(value(input, parse::u32), Ok(number), "{input}");
    }
    assert_eq!(value("-5", parse::i8), Ok(-5));
    for bad in ["", "-5", "08", "1.5", "ten", "0x", "1__0", "1_", " 1"] {
        assert!(value(bad, parse::u32).is_err(), "{bad}");
    }
    assert_eq!(value("256", parse::u8).unwrap_err(), "256 is out of range");
    assert_eq!(value("99999999999999999999999", parse::u64).unwrap_err().split(' ').nth(1), Some("is"));
    assert_eq!(value("5", parse::int_in(0..=4)).unwrap_err(), "5 is out of range");
    assert_eq!(value("x", parse::u8).unwrap_err(), "expected a non-negative integer, found `x`");
    assert_eq!(value("yes", parse::bool), Ok(true));
    let side = parse::keyword(&[("LEFT", 0), ("RIGHT", 1)]);
    assert_eq!((value("LEFT", &side), value("\"RIGHT\"", &side)), (Ok(0), Ok(1)));
    assert!(value("\"LEFT RIGHT\"", &side).is_err());
    assert_eq!(value("f", parse::bool), Ok(false));
    assert!(value("TRUE", parse::bool).is_err());
    assert_eq!(value("-1.5e3", parse::f64), Ok(-1500.0));
    assert!(value("nan", parse::f64).is_err() && value("1e999", parse::f64).is_err());
    assert_eq!(value("0.5", parse::fixed_point(16)), Ok(0x8000));
}

#[test]
fn times_and_bandwidths() {
    const S: u64 = 1_000_000_000;
    for (input, ns) in [
        ("3600", 3600 * S),
        ("3600s", 3600 * S),
        ("3.6e6 msec", 3600 * S),
        ("60m", 3600 * S),
        ("60min", 3600 * S),
        ("1 hr", 3600 * S),
        ("1h", 3600 * S),
        ("2d", 172_800 * S),
        ("100ms", S / 10),
        (".5us", 500),
        ("7ns", 7),
        ("0.0000000005", 1),
        ("0.0000000004", 0),
    ] {
        assert_eq!(value(input, parse::seconds_ns), Ok(ns), "{input}");
    }
    for bad in ["", "s", "-1", "1x", "1 2 s", "1e99", "."] {
        assert!(value(bad, parse::seconds_ns).is_err(), "{bad}");
    }
    for (input, bytes_per_s) in [
        ("1000", 1000),
        ("384kbps", 48_000),
        ("1Mbps", 125_000),
        ("1.5 MB/s", 1_500_000),
        ("10Gbps", 1_250_000_000),
        ("56kbaud", 7000),
    ] {
        assert_eq!(value(input, parse::bandwidth_bytes_per_s), Ok(bytes_per_s), "{input}");
    }
}

#[test]
fn addresses() {
    assert_eq!(value("18.26.4.15", parse::ip4).map(|a| a.octets()), Ok([18, 26, 4, 15]));
    for bad in ["18.26.4", "18.26.4.256", "18.26.4.1.2", "a", "1..2.3", "18.26.4.0/24"] {
        assert!(value(bad, parse::ip4).is_err(), "{bad}");
    }
    for (input, shown) in [
        ("18.26.4.0/24", "18.26.4.0/24"),
        ("18.26.4/24", "18.26.4.0/24"),
        ("204.152/16", "204.152.0.0/16"),
        ("10/8", "10.0.0.0/8"),
        ("0/0", "0.0.0.0/0"),
        ("18.26.4.9/24", "18.26.4.9/24"),
        ("18.26.4.0/255.255.255.0", "18.26.4.0/24"),
        ("18.26.4.0/255.0.255.0", "18.26.4.0/255.0.255.0"),
    ] {
        assert_eq!(value(input, parse::ip4_prefix).map(|p| p.to_string()), Ok(shown.into()), "{input}");
    }
    assert!(value("18.26.4.9", parse::ip4_prefix).is_err());
    assert_eq!(value("18.26.4.9", parse::ip4_or_prefix).map(|p| p.to_string()), Ok("18.26.4.9/32".into()));
    let short = parse::ip4_prefix(&text("204.152/24").1, &NoNames).unwrap_err();
    assert_eq!(short.help.as_deref(), Some("write `204.152.0.0/24`"));
    assert_eq!(value("1.2.3.4/33", parse::ip4_prefix).unwrap_err(), "prefix length 33 is out of range");
    assert!(value("1080::8:800:200C:417A", parse::ip6).is_ok());
    assert!(value("::13.1.68.3", parse::ip6).is_ok());
    assert_eq!(value("fe80::1/10", parse::ip6_prefix).map(|p| p.len), Ok(10));
    assert_eq!(value("::/ffff::", parse::ip6_prefix).map(|p| p.len), Ok(16));
    assert!(value("::/::1", parse::ip6_prefix).is_err() && value("::/129", parse::ip6_prefix).is_err());
    let mac = Ok([0, 0xa0, 0xc9, 0x9c, 0xfd, 0x9c]);
    assert_eq!(value("00:a0:c9:9C:fd:9c", parse::ether), mac);
    assert_eq!(value("0-a0-c9-9c-fd-9c", parse::ether), mac);
    for bad in ["00:a0:c9:9c:fd", "00:a0:c9:9c:fd-9c", "000:a0:c9:9c:fd:9c", "::::::"] {
        assert!(value(bad, parse::ether).is_err(), "{bad}");
    }
    assert_eq!(value("domain", parse::udp_port), Ok(53));
    assert_eq!(value("8080", parse::udp_port), Ok(8080));
    // Known for TCP only.
    assert_eq!(value("www", parse::udp_port), Ok(80));
    assert!(value("wwww", parse::udp_port).is_err() && value("65536", parse::udp_port).is_err());
    assert_eq!(value("icmp", parse::protocol), Ok(1));
    assert!(value("256", parse::protocol).is_err());
}

#[test]
fn texts() {
    assert_eq!(value("\"a b\"c", parse::string).map(|s| s.text), Ok("a bc".into()));
    assert!(value("a b", parse::string).is_err() && value("", parse::string).is_err());
    assert_eq!(value("\"\"", parse::string).map(|s| s.text), Ok(String::new()));
    assert_eq!(value("\\<00 0a>", parse::bytes), Ok(vec![0, 10]));
    assert!(value("\"a b\"", parse::word).is_err());
    assert_eq!(value("1 2 3", parse::list(parse::u8)), Ok(vec![1, 2, 3]));
    assert!(value("1 x 3", parse::list(parse::u8)).is_err());
    let modes = [("in", 1), ("out", 2)];
    assert_eq!(value("out", parse::keyword(&modes)), Ok(2));
    assert_eq!(value("ot", parse::keyword(&modes)).unwrap_err(), "expected `in` or `out`, found `ot`");
    let parts = |h: HandlerRef| (h.element.map(|e| e.text), h.handler.text);
    assert_eq!(value("a/b.count", parse::handler).map(parts), Ok((Some("a/b".into()), "count".into())));
    assert_eq!(value(".stop", parse::handler).map(parts), Ok((None, "stop".into())));
    assert_eq!(value("stop", parse::handler).map(parts), Ok((None, "stop".into())));
    assert!(value("a.", parse::handler).is_err() && value(".", parse::handler).is_err());
    assert!(value("a b", parse::element).is_err() && value("a?", parse::element).is_err());
}

#[test]
fn address_names_are_scoped_and_typed() {
    let mut diags = Diagnostics::new();
    let mut names = NameTable::new();
    names.address_info(
        "AddressInfo@1",
        &text("gw 10.0.0.1/8 00:50:ba:85:84:a9, srv 10.0.0.10, six fe80::1/64").1,
        &mut diags,
    );
    names.address_info("in/AddressInfo@1", &text("srv 192.0.2.1, copy gw").1, &mut diags);
    assert!(diags.is_empty(), "{diags:?}");
    let outer = names.scoped("x");
    let inner = names.scoped("in/deep/x");
    let ip = |names: &dyn Names, name: &str| parse::ip4(&text(name).1, names).ok().map(|a| a.to_string());
    assert_eq!(ip(&outer, "srv").as_deref(), Some("10.0.0.10"));
    assert_eq!(ip(&inner, "srv").as_deref(), Some("192.0.2.1"));
    assert_eq!(ip(&outer, "copy"), None);
    assert_eq!(ip(&inner, "copy").as_deref(), Some("10.0.0.1"));
    assert_eq!(ip(&outer, "gw:ip").as_deref(), Some("10.0.0.1"));
    assert_eq!(ip(&outer, "gw:bcast").as_deref(), Some("10.255.255.255"));
    assert_eq!(ip(&outer, "gw:eth"), None);
    assert!(parse::ether(&text("gw:eth").1, &outer).is_ok() && parse::ether(&text("srv").1, &outer).is_err());
    let prefix = |t: &str| parse::ip4_prefix(&text(t).1, &outer).ok().map(|p| p.to_string());
    assert_eq!(prefix("gw:ipnet").as_deref(), Some("10.0.0.1/8"));
    assert_eq!(prefix("srv/24").as_deref(), Some("10.0.0.10/24"));
    assert_eq!(parse::ip6_prefix(&text("six").1, &outer).map(|p| p.len), Ok(64));
    let typo = parse::ip4(&text("srvv").1, &outer).unwrap_err();
    assert_eq!(typo.help.as_deref(), Some("did you mean `srv`?"));
    names.address_info("AddressInfo@2", &text("a, b nonsense").1, &mut diags);
    assert_eq!(diags.errors(), 2);
}

/// Reads `DATA` (mandatory, positional), `LIMIT` (positional), `STOP` (keyword), as in the
/// example of Click's `lib/confparse.cc`.
fn example(config: &str) -> (Option<(String, u32, bool)>, String) {
    let (map, config) = text(config);
    let mut diags = Diagnostics::new();
    let mut args = Args::new("Example", &config, &NoNames, &mut diags);
    let data = args.mandatory_positional("DATA", parse::string);
    let limit = args.positional("LIMIT", parse::u32).unwrap_or(0);
    let stop = args.keyword("STOP", parse::bool).unwrap_or(false);
    let good = args.finish();
    assert_eq!(good, diags.is_empty());
    (data.filter(|_| good).map(|data| (data.text, limit, stop)), diags.render_short(&map))
}

#[test]
fn args_follow_the_example_of_click() {
    let blah = |limit, stop| Some(("blah blah".to_owned(), limit, stop));
    for (config, expected) in [
        ("DATA \"blah blah\", LIMIT 10", blah(10, false)),
        ("LIMIT 10, DATA \"blah blah\"", blah(10, false)),
        ("DATA \"blah blah\"", blah(0, false)),
        ("DATA \"blah blah\", STOP true", blah(0, true)),
        ("DATA x, LIMIT 10, DATA \"blah blah\"", blah(10, false)),
        ("\"blah blah\", 10", blah(10, false)),
        ("\"blah blah\", STOP yes", blah(0, true)),
    ] {
        let (value, errors) = example(config);
        assert_eq!((value, errors.as_str()), (expected, ""), "{config}");
    }
    for (config, error) in [
        ("", "f:1:1: error: required argument DATA of Example is missing\n"),
        (
            "DATA x, LIMIT 10, BOGUS y",
            "f:1:19: error: Example has no argument `BOGUS`; it takes DATA, LIMIT, STOP\n",
        ),
        ("DATA x, LIMT 10", "f:1:9: error: Example has no argument `LIMT`; did you mean `LIMIT`?\n"),
        ("x, 10, true", "f:1:8: error: too many arguments for Example; it takes DATA, LIMIT, STOP\n"),
        ("x, LIMIT ten", "f:1:10: error: LIMIT: expected a non-negative integer, found `ten`\n"),
        (
            "x, $n, STOP maybe",
            "f:1:4: error: LIMIT: expected a non-negative integer, found `$n`; a variable in it is not \
             defined\nf:1:13: error: STOP: expected `true` or `false`, found `maybe`\n",
        ),
    ] {
        let (value, errors) = example(config);
        assert_eq!((value, errors.as_str()), (None, error), "{config}");
    }
}

#[test]
fn args_give_the_rest() {
    let (_, config) = text("10.0.0.1, a, SET 1, b c");
    let mut diags = Diagnostics::new();
    let mut args = Args::new("Example", &config, &NoNames, &mut diags);
    assert!(args.mandatory_positional("IP", parse::ip4).is_some());
    assert_eq!(args.keyword("SET", parse::u8), Some(1));
    assert_eq!(strings(&args.rest()), ["a", "b c"]);
    assert!(args.finish() && diags.is_empty());
}

#[test]
fn a_substituted_argument_names_its_user() {
    let mut map = SourceMap::new();
    let id = map.add(
        "f.click",
        "elementclass R { $ip | input -> StoreIPAddress($ip) -> output }\nIdle -> R(1.2.3.x) -> Discard;",
    );
    let mut diags = Diagnostics::new();
    let ast = click::parse(&mut map, id, &mut diags);
    let graph = click::flatten(&ast, &click::AnyClass, &[], &mut diags);
    let element = graph.elements.iter().find(|e| e.class.as_str() == "StoreIPAddress").expect("is there");
    let what = format!("`{}` ({})", element.name, element.class);
    let mut args = Args::new(what, &element.config, &NoNames, &mut diags);
    args.mandatory_positional("IPADDR", parse::ip4);
    args.finish();
    assert_eq!(
        diags.render_short(&map),
        "f.click:2:11: error: IPADDR: expected an IP address, found `1.2.3.x`; used by \
         `R@2/StoreIPAddress@1` (StoreIPAddress) here (f.click:1:48)\n"
    );
    let id = graph.index().find("R@2/StoreIPAddress@1", "x").expect("flat name");
    assert_eq!(graph.index().find("StoreIPAddress@1", "R@2/other"), Some(id));
    assert_eq!(graph.index().find("StoreIPAddress@1", "other"), None);
}

proptest! {
    #[test]
    fn quoting_is_undone_by_unquoting(plain in "\\PC*[\n\t\r\u{1}]?\\PC*") {
        prop_assert_eq!(unquote(&text(&quote(&plain)).1).text, plain);
    }

    #[test]
    fn integers_print_and_parse(number in any::<i64>()) {
        prop_assert_eq!(value(&number.to_string(), parse::i64), Ok(number));
        prop_assert_eq!(value(&format!("{:#x}", number.unsigned_abs()), parse::u64), Ok(number.unsigned_abs()));
    }

    #[test]
    fn seconds_are_exact(ns in 0u64..1_000_000_000_000_000_000) {
        let shown = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        prop_assert_eq!(value(&shown, parse::seconds_ns), Ok(ns));
    }
}
