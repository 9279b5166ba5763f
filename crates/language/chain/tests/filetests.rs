//! Chain files, one test each: `# test load` compares the comments behind `# becomes` with the errors and the
//! chain that result from the file. `BLESS=1` writes these comments.

use chain::{Body, Chain, EndsWith, PortKind, PortSource, Program, SourceTexts, load_from};
use diag::{Diagnostics, SourceMap};
use runtime::KnownClasses;
use std::fmt::Write;
use std::path::Path;
use testkit::golden;

fn graph_text(chain: &Chain) -> String {
    let mut text = String::new();
    let name = |id: click::ElementId| chain.graph.element(id).map_or("?", |element| element.name.as_str());
    for element in &chain.graph.elements {
        let _ = writeln!(text, "{} :: {}({});", element.name, element.class, element.config);
    }
    for wire in &chain.graph.connections {
        let _ = writeln!(
            text,
            "{} [{}] -> [{}] {};",
            name(wire.from),
            wire.from_port,
            wire.to_port,
            name(wire.to)
        );
    }
    text
}

fn describe(chain: &Chain) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "workers {:?}, cores {:?}, burst {:?}, folder {}",
        chain.run.workers,
        chain.run.cores,
        chain.run.burst,
        chain.folder.display()
    );
    match &chain.run.ends_with {
        EndsWith::All => {}
        EndsWith::First => text.push_str("ends with the first NF\n"),
        EndsWith::Nfs(names) => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            let _ = writeln!(text, "ends with {}", names.join(", "));
        }
    }
    for port in &chain.ports {
        let kind = match &port.kind {
            PortKind::Local(PortSource::Traffic(traffic), sink) => {
                let keys: Option<toml::Table> = traffic.read(&mut Diagnostics::new());
                format!("traffic {:?} {:?}, {sink:?}", traffic.count, keys.expect("any table will do"))
            }
            PortKind::Device(device) => format!("Device({:?})", device.text),
            other => format!("{other:?}"),
        };
        let _ = writeln!(text, "port {}: {kind}", port.name);
    }
    for device in &chain.devices {
        let _ = writeln!(text, "device {}", device.describe());
    }
    for nf in &chain.nfs {
        let _ = writeln!(text, "nf {}: {:?} {}", nf.name, nf.elements, nf.interfaces.join(","));
    }
    for nf in &chain.processes {
        let body = match &nf.body {
            Body::Click(_) => "Click".to_string(),
            Body::External(config) => format!("attaches, with {config:?}"),
            Body::Program(Program { path, arguments, config, .. }) => {
                format!("{} {arguments:?} with {config:?}", path.display())
            }
        };
        let _ = writeln!(
            text,
            "process {}: {body}, when down {:?}, trusts {}, observes {}",
            nf.name,
            nf.terms.when_down,
            nf.terms.trust,
            nf.terms.observes()
        );
        if let Some(container) = nf.terms.container {
            let _ = writeln!(text, "    in a container: {:?} by {:?}", container.what, container.runtime);
        }
    }
    for (at, link) in chain.links.iter().enumerate() {
        let entry = if chain.entries.contains(&at) { " (entry)" } else { "" };
        let _ = writeln!(text, "link {:?} -> {:?}{entry}", link.from, link.to);
    }
    text + &graph_text(chain)
}

/// The path is relative to where tests run, so that no message names a folder of one machine.
fn file(path: &Path) -> golden::Outcome {
    let file = golden::File::read(path)?;
    if file.command()? != ["load"] {
        return Err(file.unknown());
    }
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let chain = load_from(&mut SourceTexts::of_files(), path, &[], &KnownClasses, &mut map, &mut diags);
    let chain = chain.filter(|_| !diags.has_errors());
    assert_eq!(chain.is_none(), diags.has_errors(), "mistakes, or a chain");
    file.becomes_comments(&(diags.render_short(&map) + &chain.as_ref().map_or(String::new(), describe)))
}

datatest_stable::harness! {
    { test = file, root = "tests/filetests", pattern = r"\.toml$" },
}
