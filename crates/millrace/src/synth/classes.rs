//! The traffic classes of a fused region, in its user's names.

use ir::Verified;
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use synth::classes::expr::Node as Expr;
use synth::classes::show::{Asked, Numbers, Show};
use synth::classes::{Class, Classes, Exit, Options};
use worker::fusion::{Cut, FusedRegion};
use worker::graph::Node;

/// Classes that deliver frames: the MAC header is where the packet starts, no other is known.
const PORTS: [&str; 2] = ["FromDevice", "FromDPDKDevice"];

/// The classes of a fused region.
pub struct Walked {
    /// Of entries that ports feed, and of the others: less is known of what comes in there.
    pub groups: Vec<Group>,
    /// Names of the fused region's elements.
    pub names: Vec<String>,
    /// Where each entry is.
    enters: Vec<String>,
    /// Where each output leads.
    pub leaves: Vec<String>,
    /// The same as node and input.
    targets: Vec<Option<(usize, usize)>>,
    /// Cells behind this one count wires, and are nothing that an element has.
    cells: usize,
    /// What the walk took.
    pub took_ms: f64,
}

/// The classes of some entries.
pub struct Group {
    /// The linked program, with names that say whose things are.
    pub program: Arc<Verified>,
    /// The entries, as numbers of the fused region's.
    pub entries: Vec<usize>,
    /// The classes.
    pub classes: Classes,
}

/// A class as plain data.
#[derive(Debug, Serialize)]
pub struct ClassShown {
    /// From 1.
    pub number: usize,
    /// The fused region's entry.
    #[serde(skip)]
    pub entry: usize,
    /// The node and input that its packets go to.
    #[serde(skip)]
    pub to: Option<(usize, usize)>,
    /// Where its packets enter.
    pub enters: String,
    /// Its filter in readable form.
    pub filter: String,
    /// The same as data: all must hold.
    pub conditions: Vec<Asked>,
    /// Where its packets go.
    pub exit: String,
    /// `out`, `drop` or `slow`.
    pub ends: &'static str,
    /// What is written: place and value.
    pub writes: Vec<(String, String)>,
    /// What is done to counters and records.
    pub effects: Vec<String>,
    /// Operations of the elements one by one, the most on any way.
    pub before: Numbers,
    /// Operations that the class needs.
    pub after: Numbers,
    /// Writes of the elements that were for nothing, since the packets are dropped.
    pub saved_writes: Vec<String>,
    /// Which element asked what.
    pub steps: Vec<String>,
    /// Ways through the elements that are this class.
    pub ways: usize,
}

impl ClassShown {
    /// The element that drops its packets, or has them in its own code.
    pub fn decider(&self) -> &str {
        let by = self.exit.trim_start_matches("dropped by ").trim_start_matches("own code of ");
        by.split_once(": ").map_or(by, |(element, _)| element)
    }
}

/// Whether a port delivers what enters at a node's input, and nothing else does.
pub fn is_fed_by_port(nodes: &[Node], entry: (usize, usize)) -> bool {
    let feeds = |node: &&Node| node.outputs.iter().flatten().any(|end| (end.node, end.port) == entry);
    nodes.iter().filter(feeds).all(|node| {
        let is_port = PORTS.contains(&node.class.name) && !node.config.contains("FORCE_IP");
        is_port || node.class.name == "FromDump"
    })
}

/// Where each exit of a fused region leads.
fn leaves(region: &FusedRegion, nodes: &[Node], cuts: &[Cut]) -> Vec<String> {
    let shown = region.linked.outputs.iter().map(|&(part, port)| {
        let (node, name) = (region.parts[part], &nodes[region.parts[part]].name);
        match nodes[node].outputs.get(port).copied().flatten() {
            Some(end) => {
                let loops =
                    if cuts.contains(&Cut { node, port }) { ", which enters it again: a loop" } else { "" };
                format!("{name}[{port}] -> {}{loops}", nodes[end.node].name)
            }
            None => format!("{name}[{port}], which is not wired"),
        }
    });
    shown.collect()
}

impl Walked {
    /// Walks a fused region; at most `most` classes for each kind of entry.
    pub fn of(region: &FusedRegion, nodes: &[Node], cuts: &[Cut], most: usize) -> Walked {
        let start = Instant::now();
        let linked = &region.linked;
        let names: Vec<String> = region.parts.iter().map(|part| nodes[*part].name.clone()).collect();
        let mut program = linked.program.clone().into_program();
        let cells = program.cells.len() - linked.flow.counted.len();
        let settled: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
        for (at, cell) in program.cells.iter_mut().take(cells).enumerate() {
            // The last part that starts there: those before it have no cells.
            let part = linked.cells.partition_point(|start| *start <= at).saturating_sub(1);
            cell.name = format!("{}.{}", names[part], cell.name);
        }
        for (table, (part, _)) in program.tables.iter_mut().zip(&linked.tables) {
            table.name = format!("{}.{}", names[*part], table.name);
        }
        // Names mean nothing to the verifier.
        let program = Arc::new(Verified::new(program).unwrap_or_else(|_| linked.program.clone()));
        let entries: Vec<(usize, usize)> = region.entries().collect();
        let (fed, others): (Vec<usize>, Vec<usize>) =
            (0..entries.len()).partition(|at| is_fed_by_port(nodes, entries[*at]));
        let mut groups = vec![];
        for (frames, of) in [(true, fed), (false, others)] {
            if of.is_empty() {
                continue;
            }
            let options = Options {
                entries: Some(&of),
                origins: &linked.origins,
                frames,
                settled_cells: Some(&settled),
                max_ways: most,
                ..Options::default()
            };
            let classes = Classes::of(&program, &options);
            groups.push(Group { program: Arc::clone(&program), entries: of, classes });
        }
        let enters = entries.iter().map(|(node, port)| format!("[{port}]{}", nodes[*node].name));
        let targets = linked.outputs.iter().map(|&(part, port)| {
            let end = nodes[region.parts[part]].outputs.get(port).copied().flatten();
            end.map(|end| (end.node, end.port))
        });
        let took_ms = start.elapsed().as_secs_f64() * 1e3;
        let (enters, leaves, targets) = (enters.collect(), leaves(region, nodes, cuts), targets.collect());
        Walked { groups, names, enters, leaves, targets, cells, took_ms }
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.groups.iter().map(|group| group.classes.classes.len()).sum()
    }

    /// The classes, each with its group.
    pub fn classes(&self) -> impl Iterator<Item = (&Group, &Class)> {
        self.groups.iter().flat_map(|group| group.classes.classes.iter().map(move |class| (group, class)))
    }

    /// What shows a class.
    pub fn show<'a>(&'a self, group: &'a Group, class: &'a Class) -> Show<'a> {
        Show::of_class(&group.program, &self.names, &group.classes, class)
    }

    /// Where packets of a class go.
    pub fn exit(&self, group: &Group, exit: Exit) -> String {
        let name = |names: &[String], at: u16| names.get(usize::from(at)).cloned().unwrap_or_default();
        match exit {
            Exit::Emit(port) => name(&self.leaves, port),
            Exit::EmitTo(_) => "by a port that a value names".into(),
            Exit::Drop(reason) => format!("dropped by {}", escaped(&name(&group.program.reasons, reason))),
            Exit::Slow(path) => format!("own code of {}", escaped(&name(&group.program.slow, path))),
        }
    }

    /// Whether a cell is an element's.
    fn is_own_cell(&self, effect: &str, group: &Group) -> bool {
        let counting = &group.program.cells[self.cells..];
        !counting.iter().any(|cell| effect == format!("cell {} += 1", cell.name))
    }

    /// Everything as plain data.
    pub fn shown(&self) -> Vec<ClassShown> {
        let shown = self.classes().enumerate().map(|(at, (group, class))| {
            let show = self.show(group, class);
            let report = show.report(class);
            let effects = report.effects.into_iter().filter(|effect| self.is_own_cell(effect, group));
            ClassShown {
                number: at + 1,
                entry: group.entries[class.entry],
                to: match class.exit {
                    Exit::Emit(output) => self.targets.get(usize::from(output)).copied().flatten(),
                    _ => None,
                },
                enters: self.enters[group.entries[class.entry]].clone(),
                filter: show.filter(&class.filter),
                conditions: report.filter,
                exit: self.exit(group, class.exit),
                ends: ends(class.exit),
                writes: if matches!(class.exit, Exit::Drop(_)) { vec![] } else { report.writes },
                effects: effects.map(|effect| effect.trim_start_matches("cell ").to_string()).collect(),
                before: report.before,
                after: report.after,
                saved_writes: report.wasted,
                steps: report.steps,
                ways: report.ways,
            }
        });
        shown.collect()
    }

    /// What was not covered, where the limit was reached.
    pub fn left(&self) -> Vec<String> {
        let of = |group: &Group| {
            let show = |left: &synth::classes::Left| {
                let show = Show::new(&group.program, &self.names, &group.classes, &left.filter);
                format!("{}: {}", self.enters[group.entries[left.entry]], show.filter(&left.filter))
            };
            group.classes.left.iter().map(show).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of).collect()
    }

    /// For a table, how many classes ask it, and where their packets enter.
    pub fn users(&self, table: usize) -> (usize, Vec<String>) {
        let (mut count, mut enters) = (0, vec![]);
        for (group, class) in self.classes() {
            let asks = |id: &synth::classes::expr::Id| match group.classes.pool.node(*id) {
                Expr::Found(find) => usize::from(find.table) == table,
                _ => false,
            };
            if !class.end.finds.iter().any(asks) {
                continue;
            }
            count += 1;
            let entry = &self.enters[group.entries[class.entry]];
            if !enters.contains(entry) {
                enters.push(entry.clone());
            }
        }
        (count, enters)
    }
}

/// `element.reason` as it is told. Reasons have no dots; names of instances have.
fn escaped(of: &str) -> String {
    of.rsplit_once('.').map_or_else(|| of.to_string(), |(element, reason)| format!("{element}: {reason}"))
}

/// The word for how a class ends.
fn ends(exit: Exit) -> &'static str {
    match exit {
        Exit::Emit(_) | Exit::EmitTo(_) => "out",
        Exit::Drop(_) => "drop",
        Exit::Slow(_) => "slow",
    }
}
