//! `RoundRobinIPMapper` and `SourceIPHashMapper`: elements that choose a pattern for each new flow.

use super::model::{Outputs, Request};
use super::pattern::Choice;
use super::pattern::SharedPattern;
use super::reader::SpecReader;
use crate::basic::information::Information;
use click::config::{parse, split_words};
use diag::Spanned;
use element::{BoxElement, Class, Configure, PortCodes, Scope, StateScope};
use std::sync::{Arc, Mutex};
use table::Random;

/// `RoundRobinIPMapper`.
pub const ROUND_ROBIN: Class = Class {
    name: "RoundRobinIPMapper",
    summary: "round-robin mapper for IPRewriter",
    page: "\
# RoundRobinIPMapper(PATTERN1, ..., PATTERNn)

Chooses patterns for rewriters (`IPRewriter` and related classes) whose input specification names this element:
tries the patterns in round-robin order, and takes the first that gives a mapping. A load balancer in one line.

- **ports**: none
- **arguments**: each `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`; a name given by
  `IPRewriterPatterns` may stand for the first four
- **workers**: each goes round by itself
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::PerFlow,
    make: make_round_robin,
};

/// `SourceIPHashMapper`.
pub const SOURCE_HASH: Class = Class {
    name: "SourceIPHashMapper",
    summary: "source IP hash mapper for IPRewriter",
    page: "\
# SourceIPHashMapper(NNODES SEED, PATTERN1 ID1, ..., PATTERNn IDn)

As `RoundRobinIPMapper`, but the source address decides which pattern is used, by consistent hashing:
each pattern has NNODES positions on a ring, which depend on SEED and its ID, and the address's position decides.
When patterns are added or removed, most addresses keep their pattern.

- **ports**: none
- **arguments**: `NNODES SEED`: two integers; each further one a pattern with its outputs as in
  `RoundRobinIPMapper`, and an ID, an integer that is not negative
- **difference**: which address goes to which pattern differs from Click, because Click takes its
  ring from the C library's `random`
",
    make: make_source_hash,
    ..ROUND_ROBIN
};

/// Whether elements of a class are mappers.
pub fn is_mapper(class: &str) -> bool {
    [ROUND_ROBIN.name, SOURCE_HASH.name].contains(&class)
}

struct MapperEntry {
    pattern: SharedPattern,
    outputs: Outputs,
}

enum Turn {
    RoundRobin(usize),
    /// Places on the ring, in order, with the entry that each belongs to.
    Ring(Vec<(u32, usize)>),
}

/// A mapper's state of one worker; empty until the mapper is made.
#[derive(Default)]
pub struct MapperCell(Option<(Vec<MapperEntry>, Turn)>);

/// A mapper's state as rewriters hold it. Locked when a mapping is made.
pub type SharedMapper = Arc<Mutex<MapperCell>>;

impl MapperCell {
    /// The outputs of its patterns.
    pub fn outputs(&self) -> Vec<Outputs> {
        let entries = self.0.as_ref().map_or(&[][..], |(entries, _)| entries);
        entries.iter().map(|entry| entry.outputs).collect()
    }

    /// Chooses what a new flow becomes.
    pub fn choose(&mut self, request: &Request<'_>, random: &mut Random) -> Option<Choice> {
        let (entries, turn) = self.0.as_mut()?;
        let mut attempt = |entry: &MapperEntry| {
            let to = entry.pattern.lock().ok()?.choose(request, random)?;
            let pattern = Some(entry.pattern.clone());
            Some(Choice { to, outputs: entry.outputs, pattern, takes_value: true })
        };
        match turn {
            Turn::RoundRobin(next) => (0..entries.len()).find_map(|_| {
                let entry = entries.get(*next)?;
                *next = (*next + 1) % entries.len();
                attempt(entry)
            }),
            Turn::Ring(places) => {
                let place = Random::new(u64::from(request.flow.src)).bits() as u32;
                let at = places.partition_point(|(on_ring, _)| *on_ring < place);
                let (_, entry) = places.get(at).or_else(|| places.first())?;
                attempt(entries.get(*entry)?)
            }
        }
    }
}

fn make_round_robin(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let patterns = cx.read(|args| Some(args.rest()))?;
    let (entries, _) = entries(cx, &patterns, false)?;
    install(cx, entries, Turn::RoundRobin(0))
}

fn make_source_hash(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let arguments = cx.read(|args| Some(args.rest()))?;
    let Some((nodes, patterns)) = arguments.split_first() else {
        cx.error(cx.span, "no hash seed given");
        return None;
    };
    let words = split_words(nodes);
    let numbers: Result<Vec<u32>, _> = words.iter().map(|word| parse::u32(word, cx.names)).collect();
    let (nodes_each, seed) = match numbers.as_deref() {
        Ok([nodes_each @ 1..=65_536, seed]) => (*nodes_each, *seed),
        // Without patterns there is another mistake to report.
        _ if patterns.is_empty() => (0, 0),
        _ => {
            cx.error(nodes.span, "expected the number of nodes of each pattern and a seed");
            return None;
        }
    };
    let (entries, ids) = entries(cx, patterns, true)?;
    let mut places = vec![];
    for (at, id) in ids.into_iter().enumerate() {
        let mut random = Random::new(u64::from(seed) << 32 | u64::from(id));
        places.extend((0..nodes_each).map(|_| (random.bits() as u32, at)));
    }
    places.sort_unstable();
    install(cx, entries, Turn::Ring(places))
}

/// Reads patterns with their outputs, and their IDs.
fn entries(
    cx: &mut Configure<'_>,
    patterns: &[Spanned],
    with_id: bool,
) -> Option<(Vec<MapperEntry>, Vec<u32>)> {
    if patterns.is_empty() {
        cx.error(cx.span, "no patterns given");
    }
    let read: Vec<_> = patterns.iter().map(|text| entry(cx, text, with_id)).collect();
    let read: Option<Vec<_>> = read.into_iter().collect();
    read.filter(|read| !read.is_empty()).map(|read| read.into_iter().unzip())
}

/// Reads a pattern with its outputs, and its ID where it has one.
fn entry(cx: &mut Configure<'_>, text: &Spanned, with_id: bool) -> Option<(MapperEntry, u32)> {
    let words = split_words(text);
    let (words, id) = match words.split_last() {
        Some((id, words)) if with_id => match parse::u32(id, cx.names) {
            Ok(id) => (words, id),
            Err(_) => {
                cx.error(id.span, "bad server ID in pattern spec");
                return None;
            }
        },
        _ => (words.as_slice(), 0),
    };
    let Some(at) = words.len().checked_sub(2).filter(|&at| at > 0) else {
        cx.error(text.span, "syntax error, expected `SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`");
        return None;
    };
    let (pattern, ports) = words.split_at(at);
    // The rewriter that uses the mapper checks the outputs.
    let reader = SpecReader::new(cx, 256);
    let outputs = reader.outputs(ports, text.span);
    let state = if let [name] = pattern {
        let registry = super::named::registry(cx);
        let known = registry.lock().ok().and_then(|known| known.find(cx.name, name.as_str()));
        known.ok_or_else(|| {
            let message = format!("no such pattern `{name}`; declare its IPRewriterPatterns before this");
            (name.span, message)
        })
    } else {
        reader.pattern(pattern, text.span).map(|state| Arc::new(Mutex::new(state)))
    };
    match (outputs, state) {
        (Ok(outputs), Ok(pattern)) => Some((MapperEntry { pattern, outputs }, id)),
        (Err((span, message)), _) | (_, Err((span, message))) => {
            cx.error(span, message);
            None
        }
    }
}

fn install(cx: &mut Configure<'_>, entries: Vec<MapperEntry>, turn: Turn) -> Option<BoxElement> {
    let name = cx.name;
    let cell = cx.shared(Scope::Worker, name, || Mutex::new(MapperCell::default()))?;
    cell.lock().ok()?.0 = Some((entries, turn));
    Some(BoxElement::opaque(Information))
}
