//! Chain files with the graphs or errors expected of them. `tests/filetests` has more.

use super::load::{is_chain_file, read_text};
use super::*;
use diag::{Diagnostics, SourceMap, Span};
use proptest::prelude::*;
use runtime::KnownClasses;
use std::fmt::Write;
use std::path::Path;

/// Relative to the directory of the test run, so that no message contains a path of one machine.
const FILES: &str = "tests/filetests";

/// A variable as a command line gives it.
fn given(name: &str, value: &str) -> Define {
    let text = |text: &str| diag::Spanned::derived(text, Span::NONE);
    Define { name: text(name), value: text(value) }
}

/// Loads a chain file whose NFs have the Click texts given by file name.
fn load_with(
    text: &str,
    defines: &[(&str, &str)],
    click: &[(&str, &str)],
) -> (Option<Chain>, String, SourceMap) {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("chain.toml", text);
    let defines: Vec<Define> = defines.iter().map(|(name, value)| given(name, value)).collect();
    let mut sources = SourceTexts::default();
    click.iter().for_each(|(file, text)| sources.put(Path::new(file), *text));
    let path = Path::new("chain.toml");
    let chain = read_text(path, source, &defines, &KnownClasses, &mut sources, &mut map, &mut diags);
    (chain.filter(|_| !diags.has_errors()), diags.render_short(&map), map)
}

const TWO: &str = "links = [\"in -> a -> b -> out\"]\n[ports]\nin = { capture = \"i.pcap\" }\nout = { discard = true }\n\
                   [nf.a]\nclick = \"x.click\"\n[nf.b]\nclick = \"x.click\"\ndefines = { V = 2 }\n";

#[test]
fn defines_from_the_command_line_go_to_all_or_one() {
    let click = [("x.click", "define($V 1); FromDevice(e) -> Paint($V) -> ToDevice(f);")];
    let paints = |defines: &[(&str, &str)]| {
        let (chain, mistakes, _) = load_with(TWO, defines, &click);
        let chain = chain.unwrap_or_else(|| panic!("{mistakes}"));
        let paints = chain.graph.elements.iter().filter(|element| element.class.as_str() == "Paint");
        paints.map(|element| element.config.text.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paints(&[]), "1 2");
    assert_eq!(paints(&[("V", "3")]), "3 3");
    assert_eq!(paints(&[("V", "3"), ("b.V", "4")]), "3 4");
    assert_eq!(paints(&[("a.V", "5")]), "5 2");
}

#[test]
fn an_unknown_class_hides_no_interface_without_a_link() {
    let text = "links = [\"in -> [e]a[f] -> out\"]\n[ports]\nin = { capture = \"i.pcap\" }\n\
                out = { discard = true }\n[nf.a]\nclick = \"x.click\"\n";
    let found = |click: &str| load_with(text, &[], &[("x.click", click)]).1;
    let mistakes = found("FromDevice(e) -> Conter -> ToDevice(f); FromDevice(g) -> gone -> ToDevice(h);");
    for part in ["`Conter`", "`gone`", "receives from `g`", "sends to `h`"] {
        assert!(mistakes.contains(part), "{part} is missing in {mistakes}");
    }
    // The misspelt element may have defined the interface that the link names.
    assert_eq!(found("FromDevise(e) -> ToDevice(f);").lines().count(), 1);
}

#[test]
fn a_variable_that_nobody_has_is_refused() {
    let click = [("x.click", "define($V 1); FromDevice(e) -> Paint($V) -> Paint($TTL) -> ToDevice(f);")];
    let refused = |text: &str, defines: &[(&str, &str)], click: &[(&str, &str)]| {
        let (chain, mistakes, _) = load_with(text, defines, click);
        assert_eq!(chain.is_none(), !mistakes.is_empty());
        mistakes
    };
    // A command line may define a variable that the text uses but does not define.
    assert_eq!(refused(TWO, &[("V", "3"), ("b.TTL", "4")], &click), "");
    let mistakes =
        refused(&TWO.replace("V = 2", "VV = 2"), &[("W", "1"), ("c.V", "2"), ("a.TTX", "3")], &click);
    let expected = "chain.toml:9:13: error: `VV` is no variable of `b`; the variables are TTL, V\n\
                    error: `W` is no variable of any NF; the variables are TTL, V\n\
                    error: there is no NF `c`; the NFs are a, b\n\
                    error: `TTX` is no variable of `a`; did you mean `TTL`?\n";
    assert_eq!(mistakes, expected);
    // The variables of a text with errors are unknown.
    let broken = refused(TWO, &[("W", "1")], &[("x.click", "FromDevice(e) => => ToDevice(f);")]);
    assert!(!broken.contains("variable"), "{broken}");
}

#[test]
fn elements_keep_their_places_also_in_inline_text() {
    let text = TWO.replace("defines = { V = 2 }\n", "");
    let text = text.replace(
        "click = \"x.click\"\n[nf.b]",
        "inline = '''\n  FromDevice(é) -> Counter\n -> ToDevice(f)'''\n[nf.b]",
    );
    let (chain, mistakes, map) = load_with(&text, &[], &[("x.click", "FromDevice(e) -> ToDevice(f);")]);
    let chain = chain.unwrap_or_else(|| panic!("{mistakes}"));
    let place = |name: &str| {
        let element = chain.graph.elements.iter().find(|element| element.name == name).expect(name);
        (map.location(element.class.span), map.slice(element.class.span).to_string())
    };
    assert_eq!(place("a/Counter@2"), ("chain.toml:7:20".into(), "Counter".into()));
    assert_eq!(place("a/ToDevice@3"), ("chain.toml:8:5".into(), "ToDevice".into()));
    assert_eq!(place("b/FromDevice@1"), ("x.click:1:1".into(), "FromDevice".into()));
}

#[test]
fn rings_are_refused_and_lines_of_routers_are_not() {
    let router = [(
        "r.click",
        "FromDevice(0) -> rt :: Paint(1); FromDevice(1) -> rt; rt -> ToDevice(0); Counter -> ToDevice(1);",
    )];
    // `rt` sends by interface 0 only. `ToDevice(1)` sends packets of a `Counter` without input, so that no
    // ring leaves by interface 1.
    let nf = |name: &str| format!("[nf.{name}]\nclick = \"r.click\"\nidle = [\"0\", \"1\"]\n");
    let chain = |links: &str| {
        format!(
            "links = [{links}]\n{}{}{}[ports]\np = {{ capture = \"p.pcap\", discard = true }}\n",
            nf("a"),
            nf("b"),
            nf("c")
        )
    };
    let ring = |links: &str| {
        let (chain, mistakes, _) = load_with(&chain(links), &[], &router);
        assert_eq!(chain.is_none(), !mistakes.is_empty() && !mistakes.contains("warning"), "{mistakes}");
        mistakes
    };
    let found = ring(r#""a[0] -> [1]b[0] -> [1]c[0] -> [1]a", "p -> [0]a""#);
    assert!(found.contains("loop: a[0] -> [1]b[0] -> [1]c[0] -> [1]a;"), "{found}");
    // Interface 1 of a leads only to its interface 0.
    assert_eq!(ring(r#""p -> [0]a", "a[1] -> [1]b[0] -> [1]c""#), "");
    // Returning over the link by which the packet arrived is no loop.
    assert_eq!(ring(r#""p -> [1]a[0] <-> [0]b""#), "");
}

#[test]
fn a_click_file_alone_is_a_chain() {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let path = Path::new(FILES).join("nfs/router.click");
    let defines = [given("COLOR", "4")];
    let mut sources = SourceTexts::of_files();
    let chain = load_from(&mut sources, &path, &defines, &KnownClasses, &mut map, &mut diags);
    assert!(!diags.has_errors(), "{}", diags.render_short(&map));
    let chain = chain.expect("no mistakes");
    assert_eq!(chain.nfs[0].name, "router");
    assert_eq!(chain.nfs[0].elements, 0..chain.graph.elements.len());
    assert_eq!(chain.folder, Path::new(FILES).join("nfs"));
    let first = &chain.graph.elements[0];
    assert_eq!(format!("{} :: {}({})", first.name, first.class, first.config), "p :: Paint(4)");
    let none = Path::new("no/such.toml");
    assert!(load_from(&mut sources, none, &[], &KnownClasses, &mut map, &mut diags).is_none());
    assert_eq!(
        diags.render_short(&map),
        "error: cannot read no/such.toml: No such file or directory (os error 2)\n"
    );
}

#[test]
fn texts_without_an_extension_are_told_apart() {
    for (text, is_chain) in [
        ("# a chain\n[ports]", true),
        ("\n links = []", true),
        ("[run]", true),
        ("// a configuration\n[0] x;", false),
        ("a -> b;", false),
        ("define($x=1)", false),
        ("", false),
    ] {
        assert_eq!(is_chain_file(Path::new("chain"), text), is_chain, "{text}");
    }
    assert!(is_chain_file(Path::new("x.toml"), "a -> b") && !is_chain_file(Path::new("x.click"), "[run]"));
}

#[test]
fn traffic_is_read_with_places() {
    #[derive(serde::Deserialize, Debug, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Spec {
        size: String,
        flows: u64,
    }
    for table in [
        "traffic = { size = \"64\", flows = 10, X = 1 }",
        "[ports.in.traffic]\nsize = \"64\"\nflows = 10\nX = 1",
    ] {
        let text = format!(
            "links = [\"in -> [e]a[f] -> in\"]\n[nf.a]\nclick = \"x.click\"\n[ports.in]\ndiscard = true\n{table}\n"
        );
        let click = [("x.click", "FromDevice(e) -> ToDevice(f);")];
        let read = |text: &str| {
            let (chain, mistakes, map) = load_with(text, &[], &click);
            let chain = chain.unwrap_or_else(|| panic!("{mistakes}"));
            let PortKind::Local(PortSource::Traffic(traffic), _) = &chain.ports[0].kind else {
                panic!("no traffic")
            };
            let mut diags = Diagnostics::new();
            let spec = traffic.read::<Spec>(&mut diags);
            let places: Vec<String> = diags.iter().map(|d| map.slice(d.span).to_string()).collect();
            assert_eq!(map.slice(traffic.place("flows")).split(' ').next(), Some("flows"));
            (spec, places.join(" "), diags.iter().map(|d| d.message.clone()).collect::<String>())
        };
        let (spec, at, message) = read(&text);
        assert_eq!(at, "X");
        assert!(message.contains("unknown field"), "{message}");
        assert_eq!(spec.map(|spec| spec.flows), Some(10), "the other keys are read");
        let text = text.replace(", X = 1", ", Y = 2").replace("\nX = 1", "\nY = 2");
        let (spec, at, _) = read(&text.replace("10", "\"ten\""));
        assert_eq!(at, "Y \"ten\"", "all at once");
        assert_eq!(spec.map(|spec| spec.size).as_deref(), Some("64"));
        let (spec, at, _) = read(&text.replace(", Y = 2", "").replace("\nY = 2", ""));
        let spec = spec.expect("a good table");
        assert_eq!((spec.size.as_str(), spec.flows, at.as_str()), ("64", 10, ""));
    }
}

#[test]
fn hostile_files() {
    let nested = format!("links = {}1{}", "[".repeat(20_000), "]".repeat(20_000));
    let many: String = (0..500).map(|i| format!("[nf.n{i}]\nclick = \"x\"\n")).collect();
    let ring: String = (0..500).map(|i| format!("\"n{i}[b] -> [a]n{}\",", (i + 1) % 500)).collect();
    for text in [
        nested,
        format!("links = [{ring}]\n{many}"),
        "links = [\"\u{feff}\"]\n[nf.\"\"]\n[nf.\"a/b\"]\n[ports.\"\"]".into(),
        "a = 1\na = 2\n[a]".into(),
        "[nf.a]\ninline = \"\\u00e9\\n\"\n[run]\nworkers = 99999999999999999999".into(),
        "nf = 1\nports = []\nrun = 2024-01-01\nlinks = 1.5\nentries = true".into(),
        "[nf.a]\ninline = ''''''\n".into(),
    ] {
        fuzz_chain(text.as_bytes(), &KnownClasses);
    }
}

/// The seeds of the fuzz target (the golden files), and every input with which it found a defect.
#[test]
fn seeds_and_regressions_of_fuzzing_hold() {
    testkit::replay::replay("chain_file", 22, |data| fuzz_chain(data, &KnownClasses));
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[\\PC\n]{0,12}",
        proptest::sample::select(vec![
            "links = [",
            "]",
            "\"p -> [a]n\"",
            "\"n[b] -> p\",",
            "\"n[0] <-> [1]m\",",
            "\n[ports]\n",
            "\n[nf.n]\n",
            "\n[nf.m]\n",
            "click = \"x\"\n",
            "inline = '''\n",
            "'''\n",
            "FromDevice(a) -> ToDevice(b)",
            "idle = [\"a\"]\n",
            "p = { capture = \"c.pcap\", write = \"w.pcap\" }\n",
            "q = { traffic = {} }\n",
            "[run]\nworkers = 2\n",
            "\"",
        ])
        .prop_map(str::to_string),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(pieces in prop::collection::vec(piece(), 0..24)) {
        fuzz_chain(pieces.concat().as_bytes(), &KnownClasses);
    }

    /// Each interface of five NFs sends to at most one other. A packet leaves an NF by the other interface,
    /// so that following packets finds every ring.
    #[test]
    fn exactly_the_chains_with_rings_are_refused(
        to in Just((0..10usize).collect::<Vec<_>>()).prop_shuffle(),
        kept in prop::collection::vec(any::<bool>(), 10),
    ) {
        let next = |interface: usize| kept[interface].then_some(to[interface] ^ 1);
        let goes_round = |start: usize| {
            let mut at = Some(start);
            (0..11).for_each(|_| at = at.and_then(next));
            at.is_some()
        };
        let mut text = "links = [".to_string();
        for interface in (0..10).filter(|interface| kept[*interface]) {
            let (from, to) = (interface, to[interface]);
            let _ = write!(text, "\"n{}[{}] -> [{}]n{}\", ", from / 2, from % 2, to % 2, to / 2);
        }
        text.push_str("]\n");
        (0..5).for_each(|i| text.push_str(&format!("[nf.n{i}]\nclick = \"x\"\nidle = [\"a\", \"b\"]\n")));
        let click = [("x", "FromDevice(a) -> ToDevice(b); FromDevice(b) -> ToDevice(a);")];
        let (chain, mistakes, _) = load_with(&text, &[], &click);
        prop_assert_eq!(chain.is_none(), (0..10).any(goes_round), "{}{}", text, mistakes);
        prop_assert!(mistakes.lines().all(|line| line.contains("in a loop: ")), "{}", mistakes);
        fuzz_chain(text.as_bytes(), &KnownClasses);
    }
}

#[test]
fn a_chain_with_mistakes_is_understood_as_far_as_that_goes() {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let text = "links = [\"in -> [0]a[1] -> owt\"]\n[ports]\nin = { device = \"\" }\n\
                [nf.a]\ninline = \"FromDevice(0) -> Nul -> Paint(x) -> ToDevice(1);\"\n";
    let source = map.add("chain.toml", text);
    let (path, mut sources) = (Path::new("chain.toml"), SourceTexts::default());
    let chain = read_text(path, source, &[], &KnownClasses, &mut sources, &mut map, &mut diags);
    assert!(diags.errors() >= 2);
    let chain = chain.expect("a chain to look at");
    let classes: Vec<&str> = chain.graph.elements.iter().map(|element| element.class.as_str()).collect();
    // A wrongly linked element is idle, so that no port is opened for it. The other elements keep their
    // classes.
    assert_eq!(classes, ["FromDevice", "Paint", "Discard"]);
    assert_eq!(chain.links.len(), 1);
}
