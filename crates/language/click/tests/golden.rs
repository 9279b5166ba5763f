//! Golden tests: each `tests/golden/NAME.click` has a `NAME.expected` with the mistakes found,
//! the flat graph, push and pull, and the formatted text. `BLESS=1` rewrites the expectations.

use std::fmt::Write;
use std::path::Path;

use click::flow::{PortSpec, Processing};
use diag::{Diagnostics, SourceMap};

/// `(class, port count, processing, flow)` of the classes that the golden files use.
const CLASSES: &[(&str, &str, &str, &str)] = &[
    ("AddressInfo", "0/0", "a/a", "x/x"),
    ("ARPQuerier", "2/1-2", "h/h", "xy/x"),
    ("ARPResponder", "1/1-2", "a/ah", "x/x"),
    ("CheckIPHeader", "1/1-2", "a/ah", "x/x"),
    ("Classifier", "1/-", "h/h", "x/x"),
    ("Counter", "1/1", "a/a", "x/x"),
    ("DecIPTTL", "1/1-2", "a/ah", "x/x"),
    ("Discard", "1/0", "a/a", "x/x"),
    ("EtherEncap", "1/1", "a/a", "x/x"),
    ("FromDevice", "0/1", "h/h", "x/x"),
    ("IPRewriter", "1-/1-", "h/h", "x/x"),
    ("Idle", "-/-", "a/a", "x/y"),
    ("InfiniteSource", "0/1", "a/a", "x/x"),
    ("LinearIPLookup", "1/-", "h/h", "x/x"),
    ("Null", "1/1", "a/a", "x/x"),
    ("Paint", "1/1", "a/a", "x/x"),
    ("Print", "1/1", "a/a", "x/x"),
    ("Queue", "1/1-2", "h/lh", "x/x"),
    ("RatedSource", "0/1", "a/a", "x/x"),
    ("RoundRobinSched", "1-/1", "l/l", "x/x"),
    ("Shaper", "1/1", "l/l", "x/x"),
    ("Strip", "1/1", "a/a", "x/x"),
    ("Suppressor", "1-/=", "a/a", "#/#"),
    ("Switch", "1/-", "h/h", "x/x"),
    ("Tee", "1/1-", "h/h", "x/x"),
    ("ToDevice", "1/0-2", "l/h", "x/x"),
    ("Unqueue", "1/1", "l/h", "x/x"),
];

fn spec(class: &str) -> PortSpec {
    let entry = CLASSES.iter().find(|entry| entry.0 == class).expect("graph has known classes only");
    PortSpec::new(entry.1, entry.2, entry.3).expect("codes of the table are well formed")
}

/// Serves one library, whatever its name.
struct OneLibrary;

impl click::Libraries for OneLibrary {
    fn load(&mut self, name: &str, _from: &str) -> Result<(String, String), String> {
        match name {
            "queues.click" => Ok((
                name.to_owned(),
                "elementclass Two { input -> Queue -> Shaper($RATE) -> output }\n\
                 elementclass Bad { input -> Qeue -> output }\n"
                    .to_owned(),
            )),
            _ => Err("no such file".to_owned()),
        }
    }
}

fn report(name: &str, text: &str) -> String {
    let mut map = SourceMap::new();
    let mut diags = Diagnostics::new();
    let id = map.add(name, text);
    let ast = click::parse_with(&mut map, id, &mut OneLibrary, &mut diags);
    let names: Vec<&str> = CLASSES.iter().map(|entry| entry.0).collect();
    let rate = diag::Spanned::derived("2000", diag::Span::NONE);
    let defines = [("RATE".to_owned(), rate)];
    let graph = click::flatten(&ast, &names.as_slice(), &defines, &mut diags);
    let class = |id| graph.element(id).map_or("", |element| element.class.as_str());
    let flow = click::flow::resolve(&graph, &|id| spec(class(id)), &mut diags);

    let mut out = String::from("== mistakes\n");
    out += &diags.render_short(&map);
    if !diags.is_empty() {
        out += "== shown\n";
        for line in diags.render(&map, false).lines() {
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out += "== graph\n";
    for package in &graph.packages {
        let _ = writeln!(out, "require(package {package});");
    }
    for id in graph.ids() {
        let element = graph.element(id).expect("ids are of this graph");
        let ports = flow.ports(id);
        let letters = |ports: &[Processing]| -> String {
            let letter = |port: &Processing| match port {
                Processing::Push => 'h',
                Processing::Pull => 'l',
                Processing::Agnostic => 'a',
            };
            ports.iter().map(letter).collect()
        };
        let _ = writeln!(
            out,
            "{} :: {}({}) {}/{}",
            element.name,
            element.class,
            element.config.text.split_whitespace().collect::<Vec<_>>().join(" "),
            letters(&ports.inputs),
            letters(&ports.outputs),
        );
    }
    for c in &graph.connections {
        let name = |id| graph.element(id).map_or("", |element| element.name.as_str());
        let (from, to) = (name(c.from), name(c.to));
        let _ = writeln!(out, "{from}[{}] -> [{}]{to} @ {}", c.from_port, c.to_port, map.location(c.span));
    }
    let formatted = click::format(&ast);
    if formatted != text {
        out += "== formatted\n";
        out += &formatted;
    }
    out
}

#[test]
fn golden() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bless = std::env::var_os("BLESS").is_some();
    let mut paths: Vec<_> = std::fs::read_dir(&dir)
        .expect("the folder of golden files is there")
        .map(|entry| entry.expect("folder is readable").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "click"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 10, "golden files are missing");
    let mut failed = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("golden file is readable");
        let name = path.file_name().expect("files have names").to_string_lossy();
        let actual = report(&name, &text);
        let expected_path = path.with_extension("expected");
        if bless {
            std::fs::write(&expected_path, &actual).expect("golden file is writable");
            continue;
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if expected != actual {
            failed.push(format!("--- {name}: expected\n{expected}\n--- {name}: found\n{actual}"));
        }
    }
    assert!(failed.is_empty(), "{}\nBLESS=1 rewrites the expectations", failed.join("\n"));
}
