//! The services of the host for elements that are being built: ports, files, shared state.

use crate::registry;
use click::flow::{Flow, Processing};
use click::{ElementId, Graph, NameIndex};
use element::configure::{Direction, MissingDevice};
use element::nf::NfLink;
use element::{Scope, Services};
use packet::MacAddr;
use port::Port;
use port::interface::Interface;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::exchange::{Shared, SharedState};
use worker::graph::End;

/// An opened port, or a sentence with the cause and the remedy.
pub type Opened = Result<Box<dyn Port>, String>;

/// Opens what configurations name: ports, and NFs in processes of their own. One for the whole chain.
pub trait Opener {
    /// Opens a worker's queue of a port.
    ///
    /// # Errors
    /// A sentence with the cause and the remedy.
    fn open_port(&mut self, name: &str, direction: Direction, worker: usize) -> Opened;

    /// What this machine lacks for the port that was opened last, where a check goes on without it. Each
    /// device is returned once.
    fn take_missing(&mut self) -> Option<MissingDevice> {
        None
    }

    /// Whether this is a check, in which nothing is opened.
    fn opens_nothing(&self) -> bool {
        false
    }

    /// Counts what the machine refuses to an element that opens something by itself.
    fn count_refusal_by_machine(&mut self) {}

    /// A link to a worker's instance of an NF that runs in a process of its own.
    ///
    /// # Errors
    /// A sentence: there is no such NF.
    fn open_nf(&mut self, name: &str, _worker: usize) -> Result<Box<dyn NfLink>, String> {
        Err(format!("there is no NF `{name}` in a process of its own"))
    }

    /// The L3 interface of that name, if the chain file has one.
    fn l3_interface(&self, _name: &str) -> Option<Arc<Interface>> {
        None
    }

    /// The hardware address of a port that was opened.
    ///
    /// # Errors
    /// A sentence: it has none.
    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        Err(format!("port `{name}` has no hardware address"))
    }

    /// The capture file of a port in a direction, if it has one.
    fn port_file(&self, _name: &str, _direction: Direction) -> Option<PathBuf> {
        None
    }
}

/// The services for elements of one worker.
pub struct WorkerServices<'a> {
    /// The worker.
    pub worker: usize,
    /// Opens ports and NFs.
    pub opener: &'a mut dyn Opener,
    /// Shared state of all workers.
    pub shared: &'a mut SharedState,
    /// Folder of relative file names in the configuration.
    pub folder: &'a Path,
    /// The flat configuration.
    pub graph: &'a Graph,
    /// The kinds of its ports: push or pull.
    pub flow: &'a Flow,
    /// Its elements by name.
    pub index: &'a NameIndex<'a>,
    /// The wires between its elements.
    pub wires: &'a Wires,
    /// The names of the NFs that it is composed of.
    pub nfs: &'a [String],
}

/// The wires between elements.
pub struct Wires {
    /// For each element, its outputs that are wired, each with the input that its packets enter.
    pub after: Vec<Vec<(usize, End)>>,
    /// For each element, its inputs that are wired, each with an output from which its packets come.
    pub before: Vec<Vec<(usize, End)>>,
}

impl Wires {
    /// The wires of a configuration.
    pub fn new(graph: &Graph) -> Wires {
        let none = vec![vec![]; graph.elements.len()];
        let mut wires = Wires { after: none.clone(), before: none };
        for wire in &graph.connections {
            let (from_port, to_port) = (wire.from_port as usize, wire.to_port as usize);
            wires.after[wire.from.0].push((from_port, End { node: wire.to.0, port: to_port }));
            wires.before[wire.to.0].push((to_port, End { node: wire.from.0, port: from_port }));
        }
        wires
    }
}

impl Services for WorkerServices<'_> {
    fn open_port(&mut self, name: &str, direction: Direction) -> Opened {
        self.opener.open_port(name, direction, self.worker)
    }

    fn take_missing(&mut self) -> Option<MissingDevice> {
        self.opener.take_missing()
    }

    fn opens_nothing(&self) -> bool {
        self.opener.opens_nothing()
    }

    fn count_refusal_by_machine(&mut self) {
        self.opener.count_refusal_by_machine();
    }

    fn open_nf(&mut self, name: &str) -> Result<Box<dyn NfLink>, String> {
        self.opener.open_nf(name, self.worker)
    }

    fn l3_interface(&self, name: &str) -> Option<Arc<Interface>> {
        self.opener.l3_interface(name)
    }

    fn port_mac(&self, name: &str) -> Result<MacAddr, String> {
        self.opener.port_mac(name)
    }

    fn port_file(&self, name: &str, direction: Direction) -> Option<PathBuf> {
        self.opener.port_file(name, direction)
    }

    fn path(&self, name: &Path) -> PathBuf {
        self.folder.join(name)
    }

    fn shared_any(&mut self, scope: Scope, key: &str, make: &mut dyn FnMut() -> Shared) -> Shared {
        self.shared.get(self.worker, scope, key, make)
    }

    fn element(&self, from: &str, name: &str) -> Option<(String, &'static str)> {
        let id = self.index.find(name, from)?;
        let element = self.graph.element(id)?;
        Some((element.name.clone(), registry::find(element.class.as_str())?.name))
    }

    fn is_compound(&self, from: &str, name: &str) -> bool {
        let inside = |scope| {
            let prefix = format!("{scope}{name}/");
            self.graph.elements.iter().any(|element| element.name.starts_with(&prefix))
        };
        click::scopes(from).any(inside)
    }

    fn is_named_by(&self, element: &str, class: &str) -> bool {
        let Some(id) = self.index.find(element, "") else { return false };
        self.graph.elements.iter().filter(|other| other.class.as_str() == class).any(|other| {
            let words = other.config.as_str().split(|c: char| c == ',' || c.is_whitespace());
            words.filter(|word| !word.is_empty()).any(|word| self.index.find(word, &other.name) == Some(id))
        })
    }

    fn nf(&self, element: &str) -> usize {
        let id = self.index.find(element, "");
        let name = id.map(|id| self.graph.configuration(id));
        self.nfs.iter().position(|known| Some(known.as_str()) == name).unwrap_or(0)
    }

    fn is_queue(&self, class: &str) -> bool {
        registry::is_queue(class)
    }

    fn queues_that_stop(&self, element: &str) -> Vec<String> {
        let Some(asking) = self.index.find(element, "") else { return vec![] };
        let (mut queues, mut seen, mut open) = (vec![], HashSet::from([asking]), vec![asking]);
        while let Some(id) = open.pop() {
            let mut wires =
                self.wires.after[id.0].iter().filter(|(port, _)| id != asking || *port == 0).peekable();
            if wires.peek().is_none() {
                return vec![];
            }
            for &(_, End { node, .. }) in wires {
                let next = ElementId(node);
                let Some(element) = self.graph.element(next).filter(|_| seen.insert(next)) else { continue };
                match element.class.as_str() {
                    class if registry::stops_sources(class) => queues.push(element.name.clone()),
                    // Packets that do not fit into it end here.
                    class if registry::is_queue(class) => return vec![],
                    _ => open.push(next),
                }
            }
        }
        queues.sort();
        queues
    }

    fn queues_near(&self, element: &str) -> (Vec<String>, bool) {
        let Some(id) = self.index.find(element, "") else { return (vec![], true) };
        let downstream = self.flow.ports(id).outputs.first() != Some(&Processing::Pull);
        let wires = if downstream { &self.wires.after } else { &self.wires.before };
        let asking = id;
        let (mut queues, mut seen, mut open) = (vec![], HashSet::from([id]), vec![id]);
        while let Some(id) = open.pop() {
            for &(port, End { node, .. }) in &wires[id.0] {
                let next = ElementId(node);
                // Packets at other outputs of the calling element take other paths.
                if downstream && id == asking && port > 0 {
                    continue;
                }
                let Some(element) = self.graph.element(next).filter(|_| seen.insert(next)) else { continue };
                match registry::is_queue(element.class.as_str()) {
                    true => queues.push(element.name.clone()),
                    false => open.push(next),
                }
            }
        }
        queues.sort();
        (queues, downstream)
    }
}
