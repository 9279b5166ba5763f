//! Fused regions as a picture: their elements from left to right, on every wire a coloured line for each
//! output that it leads to, and the traffic classes below in the colour of their output.

use super::classes::{ClassShown, leaves};
use super::fused_region::RegionShown;
use maud::{Markup, PreEscaped, html};
use runtime::Assembly;
use std::collections::BTreeSet;
use worker::fusion::{FusedRegion, Leads};
use worker::graph::Node;

/// The most classes that are drawn.
const MOST_CLASSES: usize = 80;
const BOX: (i64, i64) = (150, 38);
const STEP: (i64, i64) = (206, 66);
/// Columns in a band: a longer chain continues in the next band below.
const COLUMNS: i64 = 8;
/// The space between two bands of columns, for wires.
const GAP: i64 = 26;
const MARGIN: i64 = 24;
/// The most characters on a line of the list of classes.
const LINE_CHARS: usize = 230;
const MOST_LINES: usize = 4;
const LINE: i64 = 15;

/// Colours that differ enough side by side, also for most colour-blind people.
const PATH_COLORS: [&str; 10] = [
    "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#7f3c8d", "#8c6d31", "#17becf", "#3969ac", "#80ba5a",
    "#6b6ecf",
];
const DROPPED: &str = "#d1242f";
const SLOW: &str = "#bf8700";
const INK: &str = "#1f2328";
const PALE: &str = "#59636e";

/// The text, or its last characters behind `…` if it has more than `most` characters.
fn fit(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        true => format!("…{}", text.chars().skip(count + 1 - most).collect::<String>()),
        false => text.to_string(),
    }
}

/// Text in lines of about [`LINE_CHARS`] characters, broken at spaces; `…` replaces the text behind
/// [`MOST_LINES`] lines.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < LINE_CHARS);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.chars().take(LINE_CHARS).collect()),
        }
    }
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.iter_mut().last().into_iter().for_each(|line| line.push_str(" …"));
    }
    lines
}

/// An element's place in the picture.
struct BoxPlace {
    node: usize,
    column: i64,
    row: i64,
    inside: bool,
}

impl BoxPlace {
    fn band(&self) -> i64 {
        self.column / COLUMNS
    }
}

/// A wire in the picture.
struct Wire {
    from: usize,
    port: usize,
    to: usize,
}

struct Graph {
    places: Vec<BoxPlace>,
    wires: Vec<Wire>,
}

/// The wires that lead back to an element before theirs.
fn back(nodes: usize, wires: &[Wire]) -> BTreeSet<usize> {
    let of_node = |node: usize| (0..wires.len()).filter(move |wire| wires[*wire].from == node);
    let next: Vec<Vec<Option<usize>>> =
        (0..nodes).map(|node| of_node(node).map(|wire| Some(wires[wire].to)).collect()).collect();
    let mut back = BTreeSet::new();
    chain::closing_edges(&next, 0..nodes, |path, edge, _| {
        back.extend(path.last().and_then(|(node, _)| of_node(*node).nth(edge)));
    });
    back
}

impl Graph {
    fn of(region: &FusedRegion, nodes: &[Node]) -> Graph {
        let inside: BTreeSet<usize> = region.parts.iter().copied().collect();
        let mut wires = vec![];
        for (from, node) in nodes.iter().enumerate() {
            for (port, end) in node.outputs.iter().enumerate() {
                let Some(end) = end else { continue };
                // By the wires that close loops and by those that packets seldom take, the region is left.
                let leads = region.layout.parts.iter().filter(|part| part.node == from);
                let is_left = |leads: &Leads| matches!(leads, Leads::Loop | Leads::Seldom);
                let is_left = inside.contains(&from) && leads.clone().all(|part| is_left(&part.leads[port]));
                if (inside.contains(&from) || inside.contains(&end.node)) && !is_left {
                    wires.push(Wire { from, port, to: end.node });
                }
            }
        }
        // An element's column is behind those of all elements that feed it. An element outside that the
        // region feeds may feed the region again: such a wire closes a loop and does not count; nor do wires
        // of the way back.
        let back = back(nodes.len(), &wires);
        let mut columns = vec![0i64; nodes.len()];
        for _ in 0..inside.len() + 2 {
            let mut moved = false;
            for (at, wire) in wires.iter().enumerate() {
                let outside_source = !inside.contains(&wire.from)
                    && wires.iter().any(|before| before.to == wire.from && inside.contains(&before.from));
                if !back.contains(&at) && !outside_source && columns[wire.to] < columns[wire.from] + 1 {
                    columns[wire.to] = columns[wire.from] + 1;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let mut shown: Vec<usize> = wires.iter().flat_map(|wire| [wire.from, wire.to]).collect();
        shown.extend(&inside);
        shown.sort_unstable();
        shown.dedup();
        shown.sort_by_key(|node| columns[*node]);
        let mut graph = Graph { places: vec![], wires };
        let last = shown.iter().map(|node| columns[*node]).max().unwrap_or(0);
        for column in 0..=last {
            let mut of_column: Vec<(i64, usize)> = shown
                .iter()
                .filter(|node| columns[**node] == column)
                .map(|node| (graph.pull(*node), *node))
                .collect();
            of_column.sort_unstable();
            let mut row = 0;
            for (pull, node) in of_column {
                // Where there is room, the row of the elements in front, so that wires are straight.
                row = row.max(pull / 1_000);
                graph.places.push(BoxPlace { node, column, row, inside: inside.contains(&node) });
                row += 1;
            }
        }
        // A band starts with its first row that has an element.
        for band in 0..=last / COLUMNS {
            let of_band = graph.places.iter_mut().filter(|place| place.band() == band);
            let mut of_band: Vec<&mut BoxPlace> = of_band.collect();
            let first = of_band.iter().map(|place| place.row).min().unwrap_or(0);
            of_band.iter_mut().for_each(|place| place.row -= first);
        }
        graph
    }

    /// The mean row of the elements that feed this one, in thousandths of a row. A higher output port counts
    /// as lower down.
    fn pull(&self, node: usize) -> i64 {
        let before = self.wires.iter().filter(|wire| wire.to == node);
        let rows: Vec<i64> = before
            .filter_map(|wire| self.place(wire.from).map(|place| place.row * 1_000 + wire.port as i64 * 100))
            .collect();
        if rows.is_empty() { 0 } else { rows.iter().sum::<i64>() / rows.len() as i64 }
    }

    /// The number of rows of a band.
    fn rows(&self, band: i64) -> i64 {
        let of_band = self.places.iter().filter(|place| place.band() == band);
        of_band.map(|place| place.row + 1).max().unwrap_or(0)
    }

    fn place(&self, node: usize) -> Option<&BoxPlace> {
        self.places.iter().find(|place| place.node == node)
    }

    /// The outputs of a fused region that packets on a wire leave by.
    fn behind(&self, region: &FusedRegion, nodes: &[Node], wire: &Wire) -> BTreeSet<usize> {
        let (parts, outputs) = (&region.layout.parts, &region.linked.outputs);
        let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
        let from = (0..parts.len()).filter(|part| parts[*part].node == wire.from);
        let mut open: Vec<(usize, usize)> = from.map(|part| (part, wire.port)).collect();
        let end = nodes[wire.from].outputs[wire.port].and_then(|end| region.entry(end.node, end.port));
        if open.is_empty()
            && let Some(part) = end
        {
            open.extend((0..parts[part].leads.len()).map(|port| (part, port)));
        }
        while let Some((part, port)) = open.pop() {
            if !seen.insert((part, port)) {
                continue;
            }
            found.extend(outputs.iter().position(|output| *output == (part, port)));
            if let Leads::Inside(to) = parts[part].leads[port] {
                open.extend((0..parts[to].leads.len()).map(|port| (to, port)));
            }
        }
        found
    }
}

/// The colour of a class: that of its output.
fn colour(class: &ClassShown, leaves: &[String]) -> &'static str {
    match class.ends {
        "drop" => DROPPED,
        "slow" => SLOW,
        _ => path(leaves.iter().position(|leave| *leave == class.exit).unwrap_or(0)),
    }
}

fn path(output: usize) -> &'static str {
    PATH_COLORS[output % PATH_COLORS.len()]
}

/// Adds text at a position.
fn label(out: &mut String, at: (i64, i64), size: i64, colour: &str, text: &str) {
    let (x, y) = at;
    let label = html! { text x=(x) y=(y) font-size=(size) fill=(colour) xml:space="preserve" { (text) } };
    add(out, label);
}

/// Adds an XML element on a line of its own.
fn add(out: &mut String, shape: Markup) {
    out.push_str(&shape.into_string());
    out.push('\n');
}

/// The picture of all fused regions.
pub fn picture(chain: &str, assembly: &Assembly, shown: &[RegionShown]) -> String {
    let (nodes, regions) = (&assembly.graphs[0], &assembly.regions[0]);
    let (mut body, mut y, mut width) = (String::new(), MARGIN + 18, 1_200);
    label(&mut body, (MARGIN, y), 18, INK, chain);
    y += 12;
    for (number, (region, shown)) in regions.iter().zip(shown).enumerate() {
        y += 30;
        let title = format!(
            "fused region {}: {} elements as one function, {} traffic classes",
            number + 1,
            shown.elements.len(),
            shown.classes.len()
        );
        label(&mut body, (MARGIN, y), 15, INK, &title);
        y += 20 + GAP;
        let graph = Graph::of(region, nodes);
        width = width.max(draw_graph(&mut body, &graph, region, nodes, shown, &mut y) + MARGIN);
        draw_classes(&mut body, shown, &mut y);
    }
    if regions.is_empty() {
        y += 30;
        label(&mut body, (MARGIN, y), 13, INK, "no elements run as one function");
    }
    let height = y + MARGIN;
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } font-family="ui-monospace, 'DejaVu Sans Mono', monospace"
        {
            "\n"
            rect width=(width) height=(height) fill="white" {}
            "\n"
            (PreEscaped(body))
        }
    };
    picture.into_string() + "\n"
}

/// Draws the elements and wires. Returns the width, and moves `y` below them.
fn draw_graph(
    out: &mut String,
    graph: &Graph,
    region: &FusedRegion,
    nodes: &[Node],
    shown: &RegionShown,
    y: &mut i64,
) -> i64 {
    let top = *y;
    let corner = |place: &BoxPlace| {
        let above: i64 = (0..place.band()).map(|band| graph.rows(band) * STEP.1 + GAP).sum();
        let x = MARGIN + GAP + place.column % COLUMNS * STEP.0;
        (x, top + above + place.row * STEP.1)
    };
    // Inputs of an element that leave by the same output are listed once.
    let leaves = leaves(region, nodes);
    let listed = |text: &String| shown.leaves.iter().position(|leave| leave == text);
    let mut around = 0;
    let (mut right, mut bottom) = (0, top);
    for wire in &graph.wires {
        let (Some(from), Some(to)) = (graph.place(wire.from), graph.place(wire.to)) else { continue };
        // Wires to other bands get different lanes, so that they do not overlap.
        around += i64::from(from.band() != to.band());
        let lane = around % 4 * 4 - 6;
        let ((x0, y0), (x1, y1)) = (corner(from), corner(to));
        let ports = nodes[wire.from].outputs.len().max(1) as i64;
        let start = y0 + BOX.1 * (2 * wire.port as i64 + 1) / (2 * ports);
        let ways = graph.behind(region, nodes, wire);
        let ways: BTreeSet<usize> = ways.into_iter().filter_map(|output| listed(&leaves[output])).collect();
        // Every path behind a wire that leads to no output ends in a drop or a slow path.
        let strands: Vec<&str> =
            if ways.is_empty() { vec![DROPPED] } else { ways.iter().map(|output| path(*output)).collect() };
        let count = strands.len() as i64;
        for (at, colour) in strands.into_iter().enumerate() {
            let shift = (2 * at as i64 - (count - 1)) * 3 / 2;
            let (from_x, to_x) = (x0 + BOX.0, x1);
            let (from_y, to_y) = (start + shift, y1 + BOX.1 / 2 + shift);
            let way = match from.band() == to.band() {
                true => {
                    let bend = ((to_x - from_x).abs() / 2).max(30);
                    format!("C{} {from_y} {} {to_y} {to_x} {to_y}", from_x + bend, to_x - bend)
                }
                // Around the right end of the band, and back to the start of the next one.
                false => {
                    let edge = MARGIN + COLUMNS * STEP.0 + shift + lane;
                    right = right.max(edge);
                    let between = y1 - to.row * STEP.1 - GAP / 2 - 4 + shift + lane;
                    format!("H{edge} V{between} H{} V{to_y} H{to_x}", MARGIN + GAP / 2 + shift + lane)
                }
            };
            let way = format!("M{from_x} {from_y} {way}");
            add(
                out,
                html! { path d=(way) fill="none" stroke=(colour) stroke-width="2" stroke-linejoin="round" {} },
            );
        }
    }
    for place in &graph.places {
        let (x, y) = corner(place);
        let node = &nodes[place.node];
        let (fill, stroke) = if place.inside { ("#eef4fb", "#0072b2") } else { ("#f6f8fa", "#8c959f") };
        let dash = (!place.inside).then_some("4 3");
        let config = node.config.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut names = String::new();
        label(&mut names, (x + 7, y + 16), 12, INK, &fit(&node.name, 19));
        label(&mut names, (x + 7, y + 31), 10, PALE, &fit(node.class.name, 24));
        let element = html! {
            g {
                title { (node.name) " :: " (node.class.name) "(" (config) ")" }
                rect x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="5" fill=(fill) stroke=(stroke)
                    stroke-dasharray=[dash] {}
                "\n"
                (PreEscaped(names))
            }
        };
        add(out, element);
        let mut badge_x = x + 2;
        for (ends, colour, what) in [("drop", DROPPED, "dropped"), ("slow", SLOW, "own code")] {
            let of_node = |class: &&ClassShown| class.ends == ends && class.decider() == node.name;
            let count = shown.classes.iter().filter(of_node).count();
            if count > 0 {
                let badge = format!("{count} {what}");
                label(out, (badge_x, y + BOX.1 + 12), 10, colour, &badge);
                badge_x += badge.chars().count() as i64 * 6 + 8;
            }
        }
        (right, bottom) = (right.max(x + BOX.0), bottom.max(y + STEP.1));
    }
    *y = bottom;
    right
}

/// Draws the list of classes: first those that leave by an output.
fn draw_classes(out: &mut String, shown: &RegionShown, y: &mut i64) {
    let leaves = &shown.leaves;
    *y += 18;
    label(
        out,
        (MARGIN, *y),
        11,
        PALE,
        "each wire has a strand for every way out that lies behind it; red: only drops and own code",
    );
    for (output, leave) in leaves.iter().enumerate() {
        *y += 18;
        add(out, html! { rect x=(MARGIN) y=(*y - 6) width="26" height="4" fill=(path(output)) {} });
        label(out, (MARGIN + 34, *y), 12, INK, &format!("leaves by {leave}"));
    }
    *y += 14;
    let mut classes: Vec<&ClassShown> = shown.classes.iter().collect();
    classes.sort_by_key(|class| ["out", "slow", "drop"].iter().position(|known| *known == class.ends));
    for class in classes.iter().take(MOST_CLASSES) {
        let (top, colour) = (*y, colour(class, leaves));
        let mut told = String::new();
        *y += LINE;
        label(&mut told, (MARGIN + 14, *y), 12, colour, &format!("{:>3}  {}", class.number, class.exit));
        for line in lines(&class.filter) {
            *y += LINE;
            label(&mut told, (MARGIN + 48, *y), 11, INK, &line);
        }
        let writes: Vec<String> = class.readable_writes();
        if !writes.is_empty() {
            for line in lines(&format!("sets {}", writes.join(", "))) {
                *y += LINE;
                label(&mut told, (MARGIN + 48, *y), 11, PALE, &line);
            }
        }
        let of_class = html! {
            g {
                title { (class.filter) }
                "\n"
                (PreEscaped(told))
                rect x=(MARGIN) y=(top + 4) width="6" height=(*y - top) fill=(colour) {}
            }
        };
        add(out, of_class);
        *y += 7;
    }
    if classes.len() > MOST_CLASSES {
        *y += LINE;
        let more = classes.len() - MOST_CLASSES;
        label(
            out,
            (MARGIN + 14, *y),
            12,
            PALE,
            &format!("and {more} more: millrace synth --classes shows all"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{INK, fit, label, lines};

    #[test]
    fn text_fits_and_stays_xml() {
        let mut told = String::new();
        label(&mut told, (1, 2), 9, INK, "a<b & \"c\">");
        assert!(told.contains(">a&lt;b &amp; &quot;c&quot;&gt;</text>"), "{told}");
        assert_eq!((fit("short", 9), fit("a/long/name", 6)), ("short".into(), "…/name".into()));
        assert_eq!(lines("one two"), ["one two"]);
        let long = lines(&"word ".repeat(400));
        assert_eq!(long.len(), super::MOST_LINES);
        assert!(long.last().is_some_and(|line| line.ends_with('…')));
    }
}
