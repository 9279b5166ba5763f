//! No text makes the crate panic, and formatting is idempotent and keeps the meaning (`fuzz_parse` asserts
//! both). The inputs are random bytes, random tokens, mutated configurations, and every input with which
//! fuzzing found a defect (`fuzz/regressions/click_parse` at the root).

use click::fuzz_parse;
use proptest::prelude::*;

/// The files of this crate's `tests/filetests`, through a symbolic link.
const SEEDS: &str = "seeds/click_parse";
const REGRESSIONS: &str = "regressions/click_parse";

/// Names and contents of a folder's files; of files in `tests/filetests` only the configuration.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let named = |path: std::path::PathBuf| {
        let bytes = match testkit::golden::File::read(&path) {
            Ok(file) if folder == SEEDS => file.source().into(),
            _ => std::fs::read(&path).expect("file is readable"),
        };
        (path.display().to_string(), bytes)
    };
    testkit::replay::files(folder).into_iter().map(named).collect()
}

#[test]
fn golden_and_regression_files() {
    let all: Vec<_> = files(SEEDS).into_iter().chain(files(REGRESSIONS)).collect();
    assert!(all.len() > 10);
    for (name, bytes) in all {
        eprintln!("{name}");
        fuzz_parse(&bytes);
    }
}

fn graph_of(text: &str) -> (click::Graph, String) {
    let (mut map, mut diags) = (diag::SourceMap::new(), diag::Diagnostics::new());
    let source = map.add("x.click", text);
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &click::AnyClass, &[], &mut diags);
    (graph, diags.render_short(&map))
}

/// A full table of the Internet's routes as arguments, through a variable and a compound element.
#[test]
fn a_full_routing_table_fits_in_arguments() {
    let routes: Vec<String> = (0..900_000u32)
        .map(|i| format!("{}.{}.{}.0/24 $GW {}", 1 + (i >> 16), i >> 8 & 255, i & 255, i % 2))
        .collect();
    let routes = routes.join(",\n");
    let text = format!(
        "define($GW 192.0.2.1); elementclass R {{ __REST__ $all | Lookup($all) }}\n\
         Idle -> Lookup({routes}) -> Discard; R({routes});"
    );
    let started = std::time::Instant::now();
    let (graph, mistakes) = graph_of(&text);
    eprintln!("{:?} for {} bytes", started.elapsed(), text.len());
    assert_eq!(mistakes, "");
    for lookup in graph.elements.iter().filter(|element| element.class.as_str() == "Lookup") {
        let args = click::config::split_args(&lookup.config);
        assert_eq!(args.len(), 900_000);
        assert_eq!(args[899_999].as_str(), "14.187.159.0/24 192.0.2.1 1");
    }
}

#[test]
fn variables_that_multiply_themselves_stay_bounded() {
    let laughs: String =
        (1..9).map(|i| format!("define($a{i} {})\n", format!("$a{} ", i - 1).repeat(30))).collect();
    let uses = "Idle($a8);\n".repeat(10_000);
    let (graph, mistakes) = graph_of(&format!("define($a0 lol)\n{laughs}{uses}"));
    assert!(mistakes.contains("the arguments expand to more than 1048576 bytes"), "{mistakes}");
    // Each use of `$a8` may grow to the limit of a string; all uses together may not exceed that of the
    // configuration.
    assert!(mistakes.contains("the configuration expands to more than"), "{mistakes}");
    assert!(graph.elements.is_empty() && mistakes.lines().count() < 200, "it stops there");
}

#[test]
fn hostile_shapes() {
    let deep = |open: &str, close: &str| open.repeat(20_000) + &close.repeat(20_000);
    let doubling: String =
        (1..60).map(|i| format!("elementclass A{i} {{ A{}; A{} }}", i - 1, i - 1)).collect();
    let chain: String = (1..3_000).map(|i| format!("elementclass A{i} {{ A{} }}\n", i - 1)).collect();
    let laughs: String =
        (1..40).map(|i| format!("define($a{i} {})\n", format!("$a{} ", i - 1).repeat(30))).collect();
    for text in [
        deep("{", "}"),
        deep("(", ")"),
        deep("a :: { ( ", ") }"),
        deep("Idle(", ")"),
        deep("elementclass X { ", "}"),
        format!("elementclass A0 {{ Idle }} {doubling} A59"),
        format!("elementclass A0 {{ Idle }} {chain} A2999"),
        format!("define($a0 lol) {laughs} Idle($a39)"),
        "a :: Idle; a [0-65535] => [0-65535] b :: Idle;".to_owned(),
        "Idle[65535] -> [65535]Idle;".repeat(500),
        "Idle[0-4294967295] -> Idle".to_owned(),
        "[".repeat(5_000),
        "a,".repeat(5_000),
        "-> ".repeat(5_000),
        format!("{}{}", "x :: (-> [1]) => ".repeat(200), "Idle"),
        "elementclass X { || ".repeat(200),
        "\u{feff}é :: 日本(€)".to_owned(),
        "/".to_owned(),
        "\\<".to_owned(),
        "A(\\<".to_owned(),
        "A(\"\\".to_owned(),
        "A($".to_owned(),
        "A(${) -> B($(), C(\"${x\");".to_owned(),
    ] {
        let started = std::time::Instant::now();
        fuzz_parse(text.as_bytes());
        let shape: String = text.chars().take(30).collect();
        eprintln!("{:?} for {shape}", started.elapsed());
    }
}

/// Fragments of configurations.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-cA-C]",
        1 => "[0-9]",
        3 => prop::sample::select(vec![
            "->", "=>", "::", ";", ",", "||", "|", "...", "{", "}", "(", ")", "[", "]", "-", "/",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            "input", "output", "elementclass", "define($a 1)", "require(x)", "$a", "KEY $b",
            "{ input -> ", " -> output }", "Queue(1, 'x')", "A($a, \"$b\")", "[0, 1]", "[]", "// c",
            "/* c */", "# 3 \"f\"", "(->)", "a :: B", "{ $a | ", "\\<00>", "\"", "'",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![" ", "\n", "\r\n", "\t", "\r", "\n\n"]).prop_map(str::to_owned),
    ]
}

/// More cases than proptest's default; `PROPTEST_CASES` overrides the number.
fn cases() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig { cases: 1500, ..default },
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_parse(&bytes);
    }

    #[test]
    fn random_tokens(pieces in prop::collection::vec(piece(), 0..40), spaced in any::<bool>()) {
        fuzz_parse(pieces.join(if spaced { " " } else { "" }).as_bytes());
    }

    #[test]
    fn mutated_configurations(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, piece()), 1..6),
    ) {
        let files = files(SEEDS);
        let mut bytes = files[which.index(files.len())].1.clone();
        for (at, removed, inserted) in edits {
            let at = at.index(bytes.len() + 1);
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, inserted.into_bytes());
        }
        fuzz_parse(&bytes);
    }
}
