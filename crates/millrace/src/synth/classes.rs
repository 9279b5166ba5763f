//! The traffic classes of a fused region, with the names of the chain's elements.

use chain::device_direction;
use ir::Verified;
use port::Direction;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use synth::classes::expr::Node as Expr;
use synth::classes::show::{Asked, Show};
use synth::classes::{Class, Classes, Counts, Exit, Options};
use synth::deadline::Deadline;
use synth::optimize;
use worker::fusion::{CompiledRegion, FastWork, FlowCache, FusedRegion, Leads, RegionPart};
use worker::graph::Node;

/// The longest time for the classes of a fused region: far more than the most classes take that are looked
/// for by default.
const LONGEST_WALK: Duration = Duration::from_secs(10);

/// The classes of a fused region.
pub struct Walked {
    /// When the search for classes ends.
    deadline: Deadline,
    /// The most classes of each kind of entry.
    most: usize,
    /// The classes of entries that only ports feed, and those of the other entries, whose packets may have
    /// any headers set.
    pub groups: Vec<Group>,
    /// Names of the fused region's elements.
    pub names: Vec<String>,
    /// The entries, as text.
    enters: Vec<String>,
    /// Where each output leads.
    pub leaves: Vec<String>,
    /// The same as node and input.
    targets: Vec<Option<(usize, usize)>>,
    /// The number of the elements' cells. The cells behind them count wires.
    cells: usize,
    /// The time of the walk in milliseconds.
    pub took_ms: f64,
}

/// The classes of some entries.
pub struct Group {
    /// The linked program, whose cells and tables have their elements in their names.
    pub program: Arc<Verified>,
    /// The entries, as indices into those of the fused region.
    pub entries: Vec<usize>,
    /// The classes.
    pub classes: Classes,
}

/// The work of a packet by its flow's entry.
pub struct TemplateWork {
    /// The most that it meets.
    pub met: optimize::Counts,
    /// What its class needs.
    pub least: Counts,
}

/// How much of each class is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Where its packets leave, and what is saved: for a summary.
    Exit,
    /// Everything.
    All,
}

/// A class as data.
#[derive(Debug, Serialize)]
pub struct ClassShown {
    /// From 1.
    pub number: usize,
    /// The index of the fused region's entry.
    #[serde(skip)]
    pub entry: usize,
    /// The node and input to which its packets are emitted.
    #[serde(skip)]
    pub to: Option<(usize, usize)>,
    /// Where its packets enter.
    pub enters: String,
    /// Its filter in readable form.
    pub filter: String,
    /// The same as data: all must hold.
    pub conditions: Vec<Asked>,
    /// The exit of its packets: a destination, a drop reason or a slow path.
    pub exit: String,
    /// `out`, `drop` or `slow`.
    pub ends: &'static str,
    /// Its writes: location and value.
    pub writes: Vec<(String, String)>,
    /// Its changes of counters and records.
    pub effects: Vec<String>,
    /// Operations of the elements one by one, the maximum over its paths.
    pub before: Counts,
    /// Operations that the class needs.
    pub after: Counts,
    /// Unnecessary writes of the elements: the packets are dropped.
    pub saved_writes: Vec<String>,
    /// The decisions, each with its element.
    pub steps: Vec<String>,
    /// Paths through the elements that were merged into this class.
    pub paths: usize,
}

impl ClassShown {
    /// The element that drops its packets, or whose slow path they take.
    pub fn decider(&self) -> &str {
        let by = self.exit.trim_start_matches("dropped by ").trim_start_matches("own code of ");
        by.split_once(": ").map_or(by, |(element, _)| element)
    }
}

/// Whether a node emits frames as a port received them or a capture has them: the MAC header is at the first
/// byte, no other header is set (unless it has FORCE_IP).
pub fn is_entrance(node: &Node) -> bool {
    device_direction(node.class.name) == Some(Direction::Receive) || node.class.name == "FromDump"
}

/// Whether ports or captures feed this input of a node, and no other element does.
pub fn is_fed_by_port(nodes: &[Node], entry: (usize, usize)) -> bool {
    let feeds = |node: &&Node| node.outputs.iter().flatten().any(|end| (end.node, end.port) == entry);
    let is_raw = |node: &Node| node.class.name == "FromDump" || !node.config.contains("FORCE_IP");
    nodes.iter().filter(feeds).all(|node| is_entrance(node) && is_raw(node))
}

/// Where each exit of a fused region leads.
pub fn leaves(region: &FusedRegion, nodes: &[Node]) -> Vec<String> {
    let shown = region.linked.outputs.iter().map(|&(part, port)| {
        let (node, name) = (region.parts[part], &nodes[region.parts[part]].name);
        match nodes[node].outputs.get(port).copied().flatten() {
            Some(end) => {
                let RegionPart { input, leads, .. } = &region.layout.parts[part];
                let how = match leads[port] {
                    Leads::Loop => ", which enters it again: a loop".into(),
                    Leads::Seldom if region.entry(end.node, end.port).is_some() => {
                        format!(", seldom from input {input}")
                    }
                    Leads::Seldom => format!(", seldom from input {input}: element by element from there"),
                    Leads::Inside(_) | Leads::Outside => String::new(),
                };
                format!("{name}[{port}] -> {}{how}", nodes[end.node].name)
            }
            None => format!("{name}[{port}], which is not wired"),
        }
    });
    shown.collect()
}

/// The classes of a program of a fused region: of the entries that only ports feed, and of the others.
fn groups(
    program: &Arc<Verified>,
    region: &FusedRegion,
    nodes: &[Node],
    options: &Options<'_>,
) -> Vec<Group> {
    let fed: Vec<bool> = region.entries().map(|entry| is_fed_by_port(nodes, entry)).collect();
    let of_kind = |frames: bool| {
        let entries: Vec<usize> = (0..fed.len()).filter(|entry| fed[*entry] == frames).collect();
        if entries.is_empty() {
            return None;
        }
        let classes = Classes::of(program, &Options { entries: Some(&entries), frames, ..*options });
        Some(Group { program: Arc::clone(program), entries, classes })
    };
    [true, false].into_iter().filter_map(of_kind).collect()
}

/// The most of each kind that a packet of some class meets.
fn most_met(groups: &[Group]) -> optimize::Counts {
    let classes = groups.iter().flat_map(|group| &group.classes.classes);
    classes.fold(optimize::Counts::default(), |most, class| most.max(&class.met))
}

impl Walked {
    /// The most that a packet meets in the linked program; `None` if there are packets without a class.
    pub fn most_met(&self) -> Option<optimize::Counts> {
        (self.left_paths() == 0).then(|| most_met(&self.groups))
    }

    /// The same in another program of the fused region, with the same cells; `None` if there are packets without
    /// a class, in either.
    pub fn most_met_in(
        &self,
        program: &Arc<Verified>,
        region: &FusedRegion,
        nodes: &[Node],
    ) -> Option<optimize::Counts> {
        self.most_met()?;
        let cells: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
        let options = Options {
            settled_cells: Some(&cells),
            max_paths: self.most,
            deadline: Some(&self.deadline),
            ..Options::default()
        };
        let groups = groups(program, region, nodes, &options);
        groups.iter().all(|group| group.classes.left.is_empty()).then(|| most_met(&groups))
    }

    /// The templates that flows have entries of (ADR 20), as far as packets of their classes were found: the
    /// work of a packet by its flow's entry, and what the packet's class needs.
    ///
    /// # Errors
    /// When a program breaks an invariant: a bug.
    pub fn templates(&self, made: &CompiledRegion) -> anyhow::Result<Vec<TemplateWork>> {
        let whole = &made.recorded;
        let cells: Vec<u64> = whole.cells.iter().map(|cell| cell.init).collect();
        let mut all = vec![];
        for Group { entries, classes, .. } in &self.groups {
            let found = prove::templates(whole, classes, entries, &cells, &self.deadline);
            let found = found.map_err(|error| anyhow::anyhow!("a bug: {error}"))?;
            let is_worth = |one: &prove::ClassTemplate| {
                let class = &classes.classes[one.class];
                let entry = entries.get(class.entry).copied();
                let takes = |fast: &&FastWork| matches!(class.exit, Exit::Emit(port) if fast.is_to(port));
                let fast = entry.and_then(|entry| made.fast_work(entry)).filter(takes);
                FlowCache::Auto.is_worth(&one.saved, fast)
            };
            all.extend(found.into_iter().filter(is_worth).map(|one| {
                let class = &classes.classes[one.class];
                TemplateWork {
                    met: optimize::Counts::at_most(&one.program),
                    least: class.after(&classes.pool),
                }
            }));
        }
        Ok(all)
    }

    /// Walks a fused region, for some seconds; at most `most` classes for each kind of entry.
    pub fn of(region: &FusedRegion, nodes: &[Node], most: usize) -> Walked {
        let start = Instant::now();
        let linked = &region.linked;
        let names: Vec<String> = region.parts.iter().map(|part| nodes[*part].name.clone()).collect();
        let mut program = linked.program.clone().into_program();
        let cells = program.cells.len() - linked.flow.counted.len();
        let settled: Vec<u64> = program.cells.iter().map(|cell| cell.init).collect();
        for (at, cell) in program.cells.iter_mut().take(cells).enumerate() {
            // The last part whose first cell is not behind this one: parts before it with the same start have
            // no cells.
            let part = linked.cells.partition_point(|start| *start <= at).saturating_sub(1);
            cell.name = format!("{}.{}", names[part], cell.name);
        }
        for (table, (part, _)) in program.tables.iter_mut().zip(&linked.tables) {
            table.name = format!("{}.{}", names[*part], table.name);
        }
        // Cannot fail: the program differs from the verified one only in names.
        let program = Arc::new(Verified::new(program).unwrap_or_else(|_| linked.program.clone()));
        let entries: Vec<(usize, usize)> = region.entries().collect();
        let deadline = Deadline::new(start + LONGEST_WALK, Arc::default());
        let options = Options {
            origins: &linked.origins,
            settled_cells: Some(&settled),
            max_paths: most,
            deadline: Some(&deadline),
            ..Options::default()
        };
        let groups = groups(&program, region, nodes, &options);
        let enters = entries.iter().map(|(node, port)| format!("[{port}]{}", nodes[*node].name));
        let targets = linked.outputs.iter().map(|&(part, port)| {
            let end = nodes[region.parts[part]].outputs.get(port).copied().flatten();
            end.map(|end| (end.node, end.port))
        });
        let took_ms = start.elapsed().as_secs_f64() * 1e3;
        let (enters, leaves, targets) = (enters.collect(), leaves(region, nodes), targets.collect());
        Walked { deadline, most, groups, names, enters, leaves, targets, cells, took_ms }
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.groups.iter().map(|group| group.classes.classes.len()).sum()
    }

    /// The classes, each with its group.
    pub fn classes(&self) -> impl Iterator<Item = (&Group, &Class)> {
        self.groups.iter().flat_map(|group| group.classes.classes.iter().map(move |class| (group, class)))
    }

    /// The printer of a class.
    pub fn show<'a>(&'a self, group: &'a Group, class: &'a Class) -> Show<'a> {
        Show::of_class(&group.program, &self.names, &group.classes, class)
    }

    /// The exit of a class as text.
    pub fn exit(&self, group: &Group, exit: Exit) -> String {
        let name = |names: &[String], at: u16| names.get(usize::from(at)).cloned().unwrap_or_default();
        match exit {
            Exit::Emit(port) => name(&self.leaves, port),
            Exit::EmitTo(_) => "by a port that a value names".into(),
            Exit::Drop(reason) => format!("dropped by {}", escaped(&name(&group.program.reasons, reason))),
            Exit::Slow(path) => format!("own code of {}", escaped(&name(&group.program.slow, path))),
        }
    }

    /// Whether an effect is on an element's cell, not on a cell that counts a wire.
    fn is_own_cell(&self, effect: &str, group: &Group) -> bool {
        let counting = &group.program.cells[self.cells..];
        !counting.iter().any(|cell| effect == format!("cell {} += 1", cell.name))
    }

    /// All classes as data. Without all detail, texts that no summary has are left out: with thousands of
    /// classes, they take longer than everything else.
    pub fn shown(&self, detail: Detail) -> Vec<ClassShown> {
        let shown = self.classes().enumerate().map(|(at, (group, class))| {
            let show = self.show(group, class);
            let has_all = detail == Detail::All;
            let effects = if has_all { show.effects(class) } else { vec![] };
            let effects = effects.into_iter().filter(|effect| self.is_own_cell(effect, group));
            ClassShown {
                number: at + 1,
                entry: group.entries[class.entry],
                to: match class.exit {
                    Exit::Emit(output) => self.targets.get(usize::from(output)).copied().flatten(),
                    _ => None,
                },
                enters: self.enters[group.entries[class.entry]].clone(),
                filter: if has_all { show.filter(&class.filter) } else { String::new() },
                conditions: if has_all { show.conditions(&class.filter) } else { vec![] },
                exit: self.exit(group, class.exit),
                ends: ends(class.exit),
                writes: match class.exit {
                    Exit::Drop(_) => vec![],
                    _ if has_all => show.writes(class),
                    _ => vec![],
                },
                effects: effects.map(|effect| effect.trim_start_matches("cell ").to_string()).collect(),
                before: class.before,
                after: class.after(&group.classes.pool),
                saved_writes: show.wasted(class),
                steps: if has_all { show.steps(class) } else { vec![] },
                paths: class.merged_paths,
            }
        });
        shown.collect()
    }

    /// The number of paths that are not covered because a limit was reached.
    pub fn left_paths(&self) -> usize {
        self.groups.iter().map(|group| group.classes.left.len()).sum()
    }

    /// Whether the time for the walk was over.
    pub fn is_late(&self) -> bool {
        self.groups.iter().any(|group| group.classes.is_late)
    }

    /// The elements that ask most, each with the number of its conditions on all paths: they make the
    /// classes.
    pub fn asking(&self) -> Vec<(String, usize)> {
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for (part, count) in self.groups.iter().flat_map(|group| &group.classes.asked) {
            if let Some(name) = self.names.get(*part) {
                *asked.entry(name).or_default() += count;
            }
        }
        let mut asked: Vec<(String, usize)> =
            asked.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
        asked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        asked
    }

    /// The packets that are not covered because the limit was reached, as filters: the first `most` of them.
    pub fn left(&self, most: usize) -> Vec<String> {
        let of = |group: &Group| {
            let show = |left: &synth::classes::Left| {
                let show = Show::new(&group.program, &self.names, &group.classes, &left.filter);
                format!("{}: {}", self.enters[group.entries[left.entry]], show.filter(&left.filter))
            };
            group.classes.left.iter().take(most).map(show).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of).take(most).collect()
    }

    /// The number of classes that look up in a table, and where their packets enter.
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

/// `element.reason` as `element: reason`. Reasons contain no dots; names of NF instances do.
fn escaped(of: &str) -> String {
    of.rsplit_once('.').map_or_else(|| of.to_string(), |(element, reason)| format!("{element}: {reason}"))
}

/// The kind of exit: `out`, `drop` or `slow`.
fn ends(exit: Exit) -> &'static str {
    match exit {
        Exit::Emit(_) | Exit::EmitTo(_) => "out",
        Exit::Drop(_) => "drop",
        Exit::Slow(_) => "slow",
    }
}
