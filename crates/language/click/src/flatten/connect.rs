//! The ports that an arrow connects: one to one, one to many, many to one, many to many.

use diag::{Diagnostics, Span};

use super::class::{NodeId, Wire, plural};
use crate::ast::{Arrow, Ports};

/// The largest number of ports on one side of a connection statement.
const MAX_PORTS_PER_SIDE: usize = 65_536;

/// An element on one side of an arrow.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) node: NodeId,
    pub(super) span: Span,
    /// The written ports (or all ports of a group); empty without any.
    pub(super) ports: Vec<u32>,
    /// Whether the list extends to the number of ports of the other side.
    pub(super) open: bool,
    /// The first and the last port of each written number and range, and its location.
    pub(super) entries: Vec<(u32, u32, Span)>,
    /// The location of the written ports; `None` for those assumed for a group.
    pub(super) written: Option<Span>,
}

impl End {
    pub(super) fn new(node: NodeId, span: Span, ports: Option<&Ports>) -> End {
        End {
            node,
            span,
            ports: ports.map_or_else(Vec::new, |ports| ports.list.clone()),
            open: ports.is_some_and(|ports| ports.open),
            entries: ports.map_or_else(Vec::new, |ports| ports.entries.clone()),
            written: ports.map(|ports| ports.span),
        }
    }

    /// Where a port is named; without a written number, where the element is.
    fn place(&self, port: u32) -> Span {
        let entry = self.entries.iter().find(|(first, last, _)| (*first..=*last).contains(&port));
        entry.map(|(.., span)| *span).or(self.written).unwrap_or(self.span)
    }

    fn count(&self) -> usize {
        self.ports.len().max(1)
    }
}

/// A port of an arrow's side: its node, its number, where the element is and where the port is named.
type SidePort = (NodeId, u32, Span, Span);

/// One side of an arrow.
struct Side<'a> {
    ends: &'a [End],
    count: usize,
    /// The end that takes the additional ports of the other side.
    open: Option<usize>,
}

impl<'a> Side<'a> {
    fn new(ends: &'a [End]) -> Side<'a> {
        Side { ends, count: ends.iter().map(End::count).sum(), open: ends.iter().position(|end| end.open) }
    }

    /// Whether the side has more than one port.
    fn steps(&self) -> bool {
        self.count > 1 || self.open.is_some()
    }

    /// With `=>`, a single element without written ports takes as many ports as the other side has.
    fn open_for(&mut self, other_count: usize) {
        if let [only] = self.ends
            && only.ports.is_empty()
            && other_count > 1
        {
            self.open = Some(0);
        }
    }

    /// All ports of the side; the open end is extended so that there are `wanted` ports.
    fn ports(&self, wanted: usize) -> Vec<SidePort> {
        let mut all = Vec::new();
        for (i, end) in self.ends.iter().enumerate() {
            let ports = if end.ports.is_empty() { &[0][..] } else { &end.ports };
            all.extend(ports.iter().map(|&port| (end.node, port, end.span, end.place(port))));
            if self.open == Some(i) {
                let more = wanted.saturating_sub(self.count);
                let last = ports.last().copied().unwrap_or(0);
                let more = (1..=more).filter_map(|n| u32::try_from(n).ok());
                let place = end.place(last);
                all.extend(more.map(|n| (end.node, last.saturating_add(n), end.span, place)));
            }
        }
        all
    }
}

/// The wires of `outputs -> inputs`.
pub(super) fn connect(outputs: &[End], inputs: &[End], arrow: Arrow, diags: &mut Diagnostics) -> Vec<Wire> {
    let mut from = Side::new(outputs);
    let mut to = Side::new(inputs);
    let open_ends = outputs.iter().chain(inputs).filter(|end| end.open).count();
    if open_ends > 1 {
        diags
            .error(arrow.span, "more than one open port list around this arrow")
            .help("close all but one, as in `[0, 1]` instead of `[0, 1,]`");
        return Vec::new();
    }
    if arrow.many {
        let (from_count, to_count) = (from.count, to.count);
        from.open_for(to_count);
        to.open_for(from_count);
    }
    if from.count > MAX_PORTS_PER_SIDE || to.count > MAX_PORTS_PER_SIDE {
        diags.error(arrow.span, format!("more than {MAX_PORTS_PER_SIDE} ports around this arrow"));
        return Vec::new();
    }
    if from.steps() && to.steps() {
        if !arrow.many {
            diags
                .error(arrow.span, "`->` connects one port to many or many to one")
                .label("many on both sides")
                .help("write `=>` to connect the ports of both sides one by one");
        } else {
            check_counts(&from, &to, arrow, diags);
        }
        let wanted = from.count.max(to.count);
        let pairs = from.ports(wanted).into_iter().zip(to.ports(wanted));
        pairs.map(|(from, to)| wire(from, to)).collect()
    } else {
        let to_ports = to.ports(1);
        from.ports(1).into_iter().flat_map(|from| to_ports.iter().map(move |&to| wire(from, to))).collect()
    }
}

fn check_counts(from: &Side<'_>, to: &Side<'_>, arrow: Arrow, diags: &mut Diagnostics) {
    let fits = match (from.open.is_some(), to.open.is_some()) {
        (false, false) => from.count == to.count,
        (true, false) => from.count <= to.count,
        (false, true) => to.count <= from.count,
        (true, true) => true,
    };
    if !fits {
        let or_more = |side: &Side<'_>| if side.open.is_some() { " or more" } else { "" };
        let outputs = plural(from.count, "output");
        let inputs = plural(to.count, "input");
        diags
            .error(arrow.span, format!("{outputs}{} connected to {inputs}{}", or_more(from), or_more(to)))
            .help("list the same number of ports on both sides of `=>`");
    }
}

fn wire(from: SidePort, to: SidePort) -> Wire {
    let span = Span::join(from.2, to.2);
    Wire { from: (from.0, from.1), to: (to.0, to.1), span, ends: (from.3, to.3) }
}
