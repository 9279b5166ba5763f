//! The entry for fuzzing all code that reads a user's text.

use diag::{Diagnostics, SourceMap, Spanned};

use crate::ast::Ast;
use crate::config::{Args, NameTable, parse};
use crate::flow::PortSpec;
use crate::{AnyClass, Graph, flatten, flow, format};

fn read(text: &str) -> (Ast, Graph, Diagnostics, SourceMap) {
    let mut map = SourceMap::new();
    let mut diags = Diagnostics::new();
    let id = map.add("fuzz.click", text);
    let ast = crate::parse(&mut map, id, &mut diags);
    let graph = flatten(&ast, &AnyClass, &[], &mut diags);
    (ast, graph, diags, map)
}

/// The parts of a graph that must survive formatting.
fn shape(graph: &Graph) -> impl PartialEq + std::fmt::Debug {
    let elements: Vec<[String; 3]> = graph
        .elements
        .iter()
        .map(|e| [e.name.clone(), e.class.text.clone(), e.config.text.clone()])
        .collect();
    let connections: Vec<_> =
        graph.connections.iter().map(|c| (c.from, c.from_port, c.to, c.to_port)).collect();
    (elements, connections)
}

/// Runs every step on arbitrary bytes.
///
/// # Panics
/// When an invariant of this crate is violated: formatting is not idempotent or changes the graph, or an
/// error has no location. Any other panic is a defect, too.
pub fn fuzz_parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (ast, graph, mut diags, map) = read(&text);
    let shown = diags.render(&map, false) + &diags.render_short(&map);
    assert!(diags.is_empty() || !shown.is_empty());
    let ports = ["1/1", "-/-", "0-1/-"];
    let processing = ["a/a", "h/h", "l/l", "h/l", "l/h", "a/ah"];
    let spec = |id: crate::ElementId| {
        let (count, processing) = (ports[id.0 % 3], processing[id.0 % 6]);
        PortSpec::new(count, processing, "xy/x").expect("the codes above are well formed")
    };
    flow::resolve(&graph, &spec, &mut diags);
    let mut names = NameTable::new();
    for element in graph.elements.iter().take(64) {
        names.address_info(&element.name, &element.config, &mut diags);
        names.port_info(&element.name, &element.config, &mut diags);
    }
    for element in graph.elements.iter().take(64) {
        fuzz_args(&element.config, &names, &mut diags);
    }
    if ast.valid {
        let once = format(&ast);
        let (again, same_graph, _, _) = read(&once);
        assert!(again.valid, "formatting broke the text:\n{text}\n---\n{once}");
        assert_eq!(format(&again), once, "formatting is not idempotent:\n{text}");
        assert!(shape(&graph) == shape(&same_graph), "formatting changed the graph:\n{text}\n---\n{once}");
    }
}

fn fuzz_args(config: &Spanned, names: &NameTable, diags: &mut Diagnostics) {
    let names = names.scoped("");
    let mut args = Args::new("Fuzz", config, &names, diags);
    args.keyword("ALL", parse::bytes);
    args.mandatory_positional("IP", parse::ip4);
    args.positional("NET", parse::ip4_or_prefix);
    args.positional("IP6", parse::ip6_or_prefix);
    args.positional("ETH", parse::ether);
    args.keyword("BOOL", parse::bool);
    args.keyword("REAL", parse::fixed_point(16));
    args.keyword("TIME", parse::seconds_ns);
    args.keyword("BANDWIDTH", parse::bandwidth_bytes_per_s);
    args.keyword("WORD", parse::word);
    args.keyword("FILE", parse::filename);
    args.keyword("HANDLER", parse::handler);
    args.keyword("PORT", parse::udp_port);
    args.keyword("PROTO", parse::protocol);
    args.keyword("LIST", parse::list(parse::i64));
    args.finish();
}
