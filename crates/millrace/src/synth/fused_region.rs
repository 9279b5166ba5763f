//! A fused region as data and as text.

use super::classes::{ClassShown, Detail, Walked};
use crate::text::{self, titled};
use anyhow::Result;
use codegen::CodeBuilder;
use element::StateScope;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use synth::classes;
use synth::optimize::Counts;
use worker::fusion::{CompiledRegion, FusedRegion};
use worker::graph::Node;

/// A fused region as data.
#[derive(Debug, Serialize)]
pub struct RegionShown {
    pub elements: Vec<String>,
    enters: Vec<String>,
    pub leaves: Vec<String>,
    drops: usize,
    slow_paths: Vec<String>,
    tables: Vec<TableShown>,
    blocks: usize,
    instructions: usize,
    /// Wires whose packets are counted by a cell, because paths split and join: other wires do not give their
    /// count.
    counted_wires: usize,
    /// Operations in the program.
    program: BeforeAfter,
    /// The most operations of each kind on one packet's path.
    packet: BeforeAfter,
    /// Whether these are the most of all classes. Else packets are not covered by classes, and it is the most
    /// of all paths through the program's graph, which may be more: tests on one path may contradict each other.
    packet_of_classes: bool,
    /// The same on the fast path, where the program has one.
    fast_path: Option<Operations>,
    /// The most that a packet of a flow meets that has an entry in the flow cache; none where such flows save
    /// nothing, or none were found.
    flow_entry: Option<FlowWork>,
    /// The most that a class needs, where each field is read once and written once, and nothing is written to
    /// what is dropped.
    least: classes::Counts,
    pub classes: Vec<ClassShown>,
    /// Packets without a class, because there are more classes than the limit. Without all detail, only the
    /// first of them are here.
    pub not_covered: Vec<String>,
    /// The number of paths of such packets.
    not_covered_paths: usize,
    /// Whether the time for finding classes was over.
    is_late: bool,
    /// The elements that make the classes: how many conditions each has on all paths.
    asking: Vec<(String, usize)>,
    build: Build,
}

/// Work by the flow cache's entries.
#[derive(Debug, Serialize)]
struct FlowWork {
    /// The number of templates that were found.
    templates: usize,
    /// The most operations of each kind: the lookup of the entry, with its key, and the template.
    packet: Operations,
    /// The most that a class of such packets needs.
    least: classes::Counts,
}

/// Operations of the elements one by one, and of the fused program.
#[derive(Debug, Serialize)]
struct BeforeAfter {
    before: Operations,
    after: Operations,
}

/// Numbers of operations.
#[derive(Debug, Serialize)]
struct Operations {
    instructions: usize,
    reads: usize,
    writes: usize,
    annotations: usize,
    checksums_computed: usize,
    checksums_updated: usize,
    checks: usize,
    tests: usize,
    lookups: usize,
}

impl From<Counts> for Operations {
    fn from(counts: Counts) -> Operations {
        Operations {
            instructions: counts.insts,
            reads: counts.loads,
            writes: counts.stores,
            annotations: counts.annos,
            checksums_computed: counts.sums,
            checksums_updated: counts.updates,
            checks: counts.checks,
            tests: counts.branches,
            lookups: counts.lookups,
        }
    }
}

/// A state table.
#[derive(Debug, Serialize)]
struct TableShown {
    name: String,
    key_bytes: usize,
    record_bytes: usize,
    /// The workers that share it, if the chain runs on several.
    #[serde(rename = "owner")]
    worker: &'static str,
    /// The number of traffic classes that look up in it; `entries` is where their packets enter.
    classes: usize,
    entries: Vec<String>,
    /// Its size, if it is known.
    size: Option<SizeShown>,
}

/// The size of a table.
#[derive(Clone, Debug, Serialize)]
pub struct SizeShown {
    entries: u64,
    bytes: u64,
    most_entries: Option<u64>,
    most_bytes: Option<u64>,
    how: String,
}

impl From<ir::TableSize> for SizeShown {
    fn from(size: ir::TableSize) -> SizeShown {
        SizeShown {
            entries: size.entries,
            bytes: size.bytes,
            most_entries: size.most.map(|most| most.0),
            most_bytes: size.most.map(|most| most.1),
            how: size.how,
        }
    }
}

impl SizeShown {
    fn text(&self) -> String {
        let mib = |bytes: u64| match bytes {
            bytes if bytes < 1 << 20 => format!("{:.1} KiB", bytes as f64 / 1024.0),
            bytes => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        };
        let most = self.most_entries.zip(self.most_bytes).map(|(entries, bytes)| {
            format!(
                " ({entries} at most in {}, {:.0} bytes each)",
                mib(bytes),
                bytes as f64 / entries.max(1) as f64
            )
        });
        format!("entries: {} in {}{}; {}", self.entries, mib(self.bytes), most.unwrap_or_default(), self.how)
    }
}

/// The time and memory that it took to compile the fused region and find its classes.
#[derive(Debug, Serialize)]
struct Build {
    optimise_ms: f64,
    code_ms: f64,
    code_bytes: usize,
    classes_ms: f64,
    /// Expressions of the classes.
    expressions: usize,
}

fn scope(scope: StateScope) -> &'static str {
    match scope {
        StateScope::None => "configuration",
        StateScope::PerWorker | StateScope::PerFlow => "one for each worker",
        StateScope::Shared => "one for all workers",
        StateScope::OneWorker => "of one worker",
    }
}

/// What tables take, by the number of their element and their own.
pub type Sizes = BTreeMap<(usize, usize), SizeShown>;

/// Each once: the inputs of an element have the same exits.
fn distinct<T: Ord + Clone>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.filter(|one| seen.insert(one.clone())).collect()
}

/// Describes a fused region.
///
/// # Errors
/// When the fused program cannot be compiled.
pub fn describe(
    region: &FusedRegion,
    nodes: &[Node],
    walked: &Walked,
    sizes: &Sizes,
    detail: Detail,
) -> Result<RegionShown> {
    let linked = &region.linked;
    let name = |part: usize| nodes[region.parts[part]].name.clone();
    let ms = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let cells: Vec<u64> = linked.program.cells.iter().map(|cell| cell.init).collect();
    let made = CompiledRegion::of(linked, &cells);
    let optimise_ms = ms(start);
    let start = Instant::now();
    let mut builder = CodeBuilder::new()?;
    builder.add(&made.program)?;
    let code_bytes = builder.code_bytes();
    builder.finish()?;
    let code_ms = ms(start);
    let tables =
        linked.tables.iter().zip(&linked.program.tables).enumerate().map(|(at, (&(part, index), table))| {
            let (classes, entries) = walked.users(at);
            TableShown {
                name: format!("{}.{}", name(part), table.name),
                key_bytes: usize::from(table.key_words) * 8,
                record_bytes: table.record_bytes.into(),
                worker: scope(nodes[region.parts[part]].class.state),
                classes,
                entries,
                size: sizes.get(&(region.parts[part], index)).cloned(),
            }
        });
    let classes = walked.shown(detail);
    let report = &made.report;
    let runs = made.fast.as_ref().unwrap_or(&made.program);
    let met = walked.most_met().zip(walked.most_met_in(runs, region, nodes));
    let (before, after) = met.unwrap_or_else(|| (report.packet_before, Counts::at_most(runs)));
    let fast_path = made.fast.as_ref().and_then(|fast| {
        let met = synth::fast_path::met(&made.program, fast, |_| 1, &region.linked.seldom);
        met.into_iter().flatten().map(|met| met.counts).reduce(|most, one| most.max(&one))
    });
    let templates = walked.templates(&made)?;
    let flow_entry = (!templates.is_empty()).then(|| FlowWork {
        templates: templates.len(),
        packet: templates.iter().fold(Counts::default(), |most, one| most.max(&one.met)).into(),
        least: most(templates.iter().map(|one| &one.least)),
    });
    Ok(RegionShown {
        elements: region.nodes().map(|node| nodes[node].name.clone()).collect(),
        enters: region.entries().map(|(node, port)| format!("[{port}]{}", nodes[node].name)).collect(),
        leaves: distinct(walked.leaves.iter().cloned()),
        drops: distinct(linked.reasons.iter().map(|&(part, reason)| (region.parts[part], reason))).len(),
        slow_paths: distinct(linked.program.slow.iter().cloned()),
        tables: tables.collect(),
        blocks: linked.program.blocks.len(),
        instructions: linked.program.instructions(linked.program.topological_order()),
        counted_wires: linked.flow.counted.len(),
        program: BeforeAfter { before: report.before.into(), after: report.after.into() },
        packet: BeforeAfter { before: before.into(), after: after.into() },
        packet_of_classes: met.is_some(),
        fast_path: fast_path.map(Operations::from),
        flow_entry,
        least: most(classes.iter().map(|class| &class.after)),
        classes,
        not_covered: walked.left(if detail == Detail::All { usize::MAX } else { MOST_NOT_COVERED }),
        not_covered_paths: walked.left_paths(),
        is_late: walked.is_late(),
        asking: walked.asking(),
        build: Build {
            optimise_ms,
            code_ms,
            code_bytes,
            classes_ms: walked.took_ms,
            expressions: walked.groups.iter().map(|group| group.classes.pool.len()).sum(),
        },
    })
}

/// The most of each kind.
fn most<'a>(all: impl Iterator<Item = &'a classes::Counts> + Clone) -> classes::Counts {
    let most = |of: fn(&classes::Counts) -> usize| all.clone().map(of).max().unwrap_or(0);
    classes::Counts {
        reads: most(|counts| counts.reads),
        writes: most(|counts| counts.writes),
        annotations: most(|counts| counts.annotations),
        checksums: most(|counts| counts.checksums),
    }
}

fn classes(count: usize) -> String {
    format!("{count} {}", if count == 1 { "class" } else { "classes" })
}

impl RegionShown {
    /// As text; with every class, or with what they come to.
    pub fn text(&self, number: usize, every_class: bool) -> String {
        let mut out = format!(
            "\nfused region {number}: {}, {} blocks of {} instructions\n",
            text::plural(self.elements.len(), "element"),
            self.blocks,
            self.instructions,
        );
        let mut list = |title: &str, of: &[String]| out += &titled(&format!("  {title}"), 10, of);
        list("enters", &self.enters);
        list("leaves", &self.leaves);
        list("tables", &self.tables.iter().map(TableShown::text).collect::<Vec<_>>());
        list("slow", &self.slow_paths);
        list("elements", &[self.elements.join(", ")]);
        list("work", &self.work());
        list("classes", &self.summary());
        let Build { optimise_ms, code_ms, code_bytes, classes_ms, expressions } = self.build;
        let kib = code_bytes as f64 / 1024.0;
        list(
            "built",
            &[format!(
                "program in {optimise_ms:.1} ms, {kib:.1} KiB of machine code in {code_ms:.1} ms, classes of \
                 {expressions} expressions in {classes_ms:.1} ms"
            )],
        );
        if every_class {
            self.classes.iter().for_each(|class| out += &class.text());
        }
        for left in self.not_covered.iter().take(MOST_NOT_COVERED) {
            out += &format!("\n  not covered: {}\n", cut(left, MOST_NOT_COVERED_CHARS));
        }
        let more = self.not_covered_paths.saturating_sub(MOST_NOT_COVERED);
        if more > 0 {
            out += &format!("\n  not covered: {} more\n", text::plural(more, "path"));
        }
        if self.not_covered_paths > 0 {
            let asking = self.asking.iter().take(MOST_ASKING);
            let asking: Vec<String> = asking.map(|(name, count)| format!("{name} {count}")).collect();
            out += &format!(
                "  {}. The elements that ask most, with their conditions on all paths: {}. The chain runs all \
                 the same: execution needs no classes\n",
                match self.is_late {
                    true => "finding classes takes too long",
                    false => "there are more classes than were asked for: raise --max-classes",
                },
                asking.join(", ")
            );
        }
        out
    }

    /// The table of operations before and after fusion.
    fn work(&self) -> Vec<String> {
        let title = match self.packet_of_classes {
            true => "the most that one packet meets",
            false => "the most on a path of the graph",
        };
        let row = |name: &str, counts: &Operations| {
            format!(
                "{name:<32}{:>7}{:>8}{:>13}{:>11}{:>9}{:>8}{:>7}{:>9}",
                counts.reads,
                counts.writes,
                counts.annotations,
                counts.checksums_computed,
                counts.checksums_updated,
                counts.checks,
                counts.tests,
                counts.lookups
            )
        };
        let least = |name: &str, counts: &classes::Counts| {
            let classes::Counts { reads, writes, annotations, checksums } = counts;
            format!("{name:<32}{reads:>7}{writes:>8}{annotations:>13}{checksums:>11}")
        };
        let mut rows = vec![
            format!("{title:<32}  reads  writes  annotations  checksums  updates  checks  tests  lookups"),
            row("  elements one by one", &self.packet.before),
            row("  fused", &self.packet.after),
        ];
        rows.extend(self.fast_path.iter().map(|met| row("  fused, by the fast path", met)));
        rows.push(least("  a class by itself needs", &self.least));
        match &self.flow_entry {
            Some(FlowWork { packet, least: needed, .. }) => {
                rows.push(row("  a flow by its entry", packet));
                rows.push(least("  a class of such flows needs", needed));
            }
            None => rows.push("  no flow was found whose entry in the flow cache saves enough".into()),
        }
        rows
    }

    /// A summary of the classes.
    fn summary(&self) -> Vec<String> {
        let of = |ends: &str| self.classes.iter().filter(|class| class.ends == ends).count();
        let mut lines = vec![format!(
            "{}: {} leave, {} are dropped, {} go on in an element's own code",
            self.classes.len(),
            of("out"),
            of("drop"),
            of("slow")
        )];
        let mut exits: Vec<(&str, &str, usize)> = vec![];
        for class in &self.classes {
            match exits.iter_mut().find(|(ends, exit, _)| (*ends, *exit) == (class.ends, &class.exit)) {
                Some((.., count)) => *count += 1,
                None => exits.push((class.ends, &class.exit, 1)),
            }
        }
        exits.sort_by_key(|(ends, ..)| ["out", "slow", "drop"].iter().position(|known| known == ends));
        lines.extend(exits.iter().map(|(_, exit, count)| format!("  {count:>4}  {exit}")));
        let mut saved: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
        for class in self.classes.iter().filter(|class| !class.saved_writes.is_empty()) {
            let (count, writes) = saved.entry(&class.exit).or_default();
            *count += 1;
            for write in &class.saved_writes {
                if !writes.contains(&write.as_str()) {
                    writes.push(write);
                }
            }
        }
        if !saved.is_empty() {
            lines.push("written for nothing by the elements, and not at all here:".into());
        }
        for (exit, (count, writes)) in saved {
            let classes = classes(count);
            lines.push(format!("  {classes} {exit}: {}", by_element(&writes)));
        }
        lines
    }
}

/// Writes of the form `element: field`, grouped by element.
fn by_element(writes: &[&str]) -> String {
    let mut all: Vec<(&str, Vec<&str>)> = vec![];
    for (element, field) in writes.iter().filter_map(|write| write.split_once(": ")) {
        match all.iter_mut().find(|(known, _)| *known == element) {
            Some((_, fields)) => fields.push(field),
            None => all.push((element, vec![field])),
        }
    }
    let all = all.into_iter().map(|(element, fields)| format!("{element} {}", fields.join(" ")));
    all.collect::<Vec<_>>().join(", ")
}

/// The most filters of packets without a class that are shown, and the most characters of each.
const MOST_NOT_COVERED: usize = 8;
const MOST_NOT_COVERED_CHARS: usize = 400;
/// The most elements that are named as those that ask most.
const MOST_ASKING: usize = 5;

/// A text, cut to so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… (all of it with --json)", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

/// A value as short text. The expression of a checksum update is not shown: it repeats the other writes.
fn readable(name: &str, value: &str) -> String {
    const MOST_CHARS: usize = 100;
    if name.ends_with(".sum") && value.contains(['(', ' ']) {
        return "mended for what is written".into();
    }
    cut(value, MOST_CHARS)
}

impl TableShown {
    fn text(&self) -> String {
        format!(
            "{}: keys of {} bytes, records of {}; {}; {} from {} share it{}",
            self.name,
            self.key_bytes,
            self.record_bytes,
            self.worker,
            classes(self.classes),
            if self.entries.is_empty() { "nowhere".into() } else { self.entries.join(" and ") },
            self.size.as_ref().map(|size| format!("\n             {}", size.text())).unwrap_or_default(),
        )
    }
}

impl ClassShown {
    /// Its writes as short text.
    pub fn readable_writes(&self) -> Vec<String> {
        self.writes.iter().map(|(name, value)| format!("{name} = {}", readable(name, value))).collect()
    }

    fn text(&self) -> String {
        let mut out = format!(
            "\n  class {}: {}\n    from  {}\n    goes  {}\n",
            self.number, self.filter, self.enters, self.exit
        );
        out += &titled("    sets", 9, &self.readable_writes());
        out += &titled("    state", 9, &self.effects);
        let classes::Counts { reads, writes, checksums, .. } = self.before;
        out += &format!(
            "    needs {} of {reads} reads, {} of {writes} writes, {} of {checksums} checksums\n",
            self.after.reads, self.after.writes, self.after.checksums
        );
        if !self.saved_writes.is_empty() {
            let saved: Vec<&str> = self.saved_writes.iter().map(String::as_str).collect();
            out += &format!("    saved {}\n", by_element(&saved));
        }
        out
    }
}
