//! Configurations as files, one test each. `BLESS=1` writes the comments behind `// becomes`. Commands of a
//! file's first line:
//!
//! - `check`: the errors, in short form and as users see them
//! - `flatten`: the flat graph, and which of its ports push and pull
//! - `format`: the formatted text, if it differs

use std::fmt::Write;
use std::path::Path;

use click::flow::{PortSpec, Processing};
use diag::{Diagnostics, SourceMap};
use testkit::golden;

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

/// Returns one library for every name.
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

/// The classes of [`CLASSES`].
struct Known;

impl click::Classes for Known {
    fn is_known(&self, name: &str) -> bool {
        CLASSES.iter().any(|entry| entry.0 == name)
    }

    fn names(&self) -> Vec<String> {
        CLASSES.iter().map(|entry| entry.0.to_owned()).collect()
    }
}

/// A configuration after each step of reading.
struct Read<'a> {
    text: &'a str,
    map: SourceMap,
    diags: Diagnostics,
    ast: click::ast::Ast,
    graph: click::Graph,
    flow: click::flow::Flow,
}

impl Read<'_> {
    fn new<'a>(name: &str, text: &'a str) -> Read<'a> {
        let mut map = SourceMap::new();
        let mut diags = Diagnostics::new();
        let id = map.add(name, text);
        let ast = click::parse_with(&mut map, id, &mut OneLibrary, &mut diags);
        let rate = diag::Spanned::derived("2000", diag::Span::NONE);
        let defines = [("RATE".to_owned(), rate)];
        let graph = click::flatten(&ast, &Known, &defines, &mut diags);
        let class = |id| graph.element(id).map_or("", |element| element.class.as_str());
        let flow = click::flow::resolve(&graph, &|id| spec(class(id)), &mut diags);
        Read { text, map, diags, ast, graph, flow }
    }

    /// The errors, in short form and as users see them.
    fn mistakes(&self) -> String {
        let mut out = String::from("== mistakes\n");
        out += &self.diags.render_short(&self.map);
        if !self.diags.is_empty() {
            out += "== shown\n";
            for line in self.diags.render(&self.map, false).lines() {
                let _ = writeln!(out, "{}", line.trim_end());
            }
        }
        out
    }

    /// The flat graph, with push (h), pull (l) and agnostic (a) ports.
    fn flat(&self) -> String {
        let Read { map, graph, flow, .. } = self;
        let mut out = String::from("== graph\n");
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
            let _ =
                writeln!(out, "{from}[{}] -> [{}]{to} @ {}", c.from_port, c.to_port, map.location(c.span));
        }
        out
    }

    /// The text from the formatter, if it differs.
    fn formatted(&self) -> String {
        let formatted = click::format(&self.ast);
        if formatted == self.text { String::new() } else { format!("== formatted\n{formatted}") }
    }
}

fn file(path: &Path) -> golden::Outcome {
    let file = golden::File::read(path)?;
    let name = path.file_name().ok_or("files have names")?.to_string_lossy();
    let read = Read::new(&name, file.source());
    let mut now = String::new();
    for command in file.command()? {
        now += &match command {
            "check" => read.mistakes(),
            "flatten" => read.flat(),
            "format" => read.formatted(),
            _ => return Err(file.unknown()),
        };
    }
    file.becomes(&now)
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.click$" },
}
