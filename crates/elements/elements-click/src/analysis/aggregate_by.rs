//! Elements that set the aggregate annotation by other things than a field, and that choose packets by it.

use click::config::{Args, parse, split_words};
use diag::Spanned;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use elements::ip::header::from_network;
use packet::Access;
use packet::anno::{AGGREGATE, EXTRA_LENGTH, PAINT};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;
use std::collections::{HashMap, HashSet};

/// The class.
pub const LENGTH: Class = Class {
    name: "AggregateLength",
    summary: "sets aggregate annotation based on packet length",
    page: "\
# AggregateLength([keyword IP])

Sets the aggregate annotation to the packet's length, with that in its extra length annotation.

- **ports**: 1 input, 1 or 2 outputs, agnostic. With `IP`, packets without a network header leave by output 1,
  where that is wired and packets are pushed
- **arguments**: `IP` (default false): the length from the network header on
- **annotations**: reads `EXTRA_LENGTH`, sets `AGGREGATE`
- **drop reasons**: `no-ip-header`: there is no output 1
",
    codes: PortCodes::new("1/1-2", "a/ah"),
    state: StateScope::None,
    make: |cx| cx.opaque(|args| Some(Length { ip: args.keyword("IP", parse::bool).unwrap_or(false) })),
};

/// The class.
pub const BY_PAINT: Class = Class {
    name: "AggregatePaint",
    summary: "sets aggregate annotation based on paint annotation",
    page: "\
# AggregatePaint([LENGTH, keyword INCREMENTAL])

Sets the aggregate annotation to the paint annotation.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `LENGTH` (1 to 8, default 8): the lower bits of the paint that are used; `INCREMENTAL`
  (default false): they follow the bits of the old value
- **annotations**: reads `PAINT`, sets `AGGREGATE`
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::None,
    make: |cx| {
        cx.opaque(|args| {
            let bits = args.positional("LENGTH", parse::int_in(1..=8)).unwrap_or(8);
            let incremental = args.keyword("INCREMENTAL", parse::bool).unwrap_or(false);
            Some(ByPaint { bits: bits as u32, incremental })
        })
    },
};

/// The class.
pub const FILTER: Class = Class {
    name: "AggregateFilter",
    summary: "filters packets based on aggregate annotation",
    page: "\
# AggregateFilter(ACTION_1 AGGREGATES, ..., ACTION_N AGGREGATES)

Sends packets where the first filter says that has their aggregate. Packets of no filter are dropped.

- **ports**: 1 input, 1 or more outputs, push
- **arguments**: `ACTION`: an output, `allow` (output 0), `drop` or `deny`; `AGGREGATES`: numbers and ranges
  (`0-98`), or `all` or `-`. A warning says which match no packet because of filters before
- **annotations**: reads `AGGREGATE`
- **drop reasons**: `denied`, `no-filter`
",
    codes: PortCodes::new("1/1-", "h/h"),
    state: StateScope::None,
    make: make_filter,
};

/// The class.
pub const FIRST: Class = Class {
    name: "AggregateFirst",
    summary: "lets through first packet per aggregate annotation",
    page: "\
# AggregateFirst

Passes the first packet of each aggregate. The others leave by output 1, if that is wired.

- **ports**: 1 input, 1 or 2 outputs, agnostic
- **annotations**: reads `AGGREGATE`
- **handlers**: `clear` (write): all aggregates are new again
- **drop reasons**: `not-first`: there is no output 1
- **workers**: one worker knows all aggregates
- **difference**: `NOTIFIER` does not exist. At most 16777216 aggregates are known; packets of others are not
  the first
",
    codes: PortCodes::new("1/1-2", "a/ah"),
    state: StateScope::OneWorker,
    make: |cx| cx.opaque(|_| Some(First::default())),
};

/// The class.
pub const PAIR: Class = Class {
    name: "AggregateIPAddrPair",
    summary: "sets aggregate annotation based on IP source/destination address pair",
    page: "\
# AggregateIPAddrPair([keywords TIMEOUT, REAP])

Numbers pairs of addresses, from 1 on, and sets the aggregate annotation to the number of the packet's pair.
The paint annotation becomes 0 in the direction of the pair's first packet, and 1 in the other.

- **ports**: 1 input, 1 or 2 outputs, agnostic. Packets that are not IP leave by output 1, where that is wired
  and packets are pushed
- **needs**: the network header annotation
- **arguments**: `TIMEOUT` (seconds; default none): a pair without packets for so long, by their timestamps,
  gets a new number; `REAP` (default 20 min): how often such pairs are removed
- **annotations**: sets `AGGREGATE`, `PAINT`
- **handlers**: `clear` (write): forgets all pairs
- **drop reasons**: `no-ip-header`, `too-many-pairs`: there is no output 1
- **workers**: one worker numbers all pairs
- **difference**: at most 4194304 pairs are known
",
    codes: PortCodes::new("1/1-2", "a/ah"),
    state: StateScope::OneWorker,
    make: |cx| {
        cx.opaque(|args| {
            let timeout_ns = args.keyword("TIMEOUT", parse::seconds_ns).unwrap_or(u64::MAX);
            let reap_ns = args.keyword("REAP", parse::seconds_ns).unwrap_or(1_200_000_000_000).max(1);
            Some(Pairs { timeout_ns, reap_ns, reap_at_ns: None, next: 1, known: HashMap::new() })
        })
    },
};

struct Length {
    ip: bool,
}

impl Length {
    fn set(&self, packet: &mut Packet) -> bool {
        let from_net = if self.ip { from_network(packet) } else { Some(*packet) };
        let Some(from_net) = from_net else { return false };
        let length = u64::from(from_net.total()) + EXTRA_LENGTH.load(&packet.anno);
        AGGREGATE.store(&mut packet.anno, length & 0xffff_ffff);
        true
    }
}

impl Opaque for Length {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.set(batch.packet_mut(index)) {
                true => batch.emit(index, 0),
                false => batch.emit_or_drop(index, 1, 0),
            }
        }
    }
}

impl Element for Length {
    element::facts!(writes: false, reasons: &["no-ip-header"]);
}

struct ByPaint {
    bits: u32,
    incremental: bool,
}

impl Opaque for ByPaint {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let packet = batch.packet_mut(index);
            let paint = PAINT.load(&packet.anno) & ((1 << self.bits) - 1);
            let old = if self.incremental { AGGREGATE.load(&packet.anno) << self.bits } else { 0 };
            AGGREGATE.store(&mut packet.anno, (old + paint) & 0xffff_ffff);
            batch.emit(index, 0);
        }
    }
}

impl Element for ByPaint {
    element::facts!(writes: false);
}

/// Aggregates from one to another, and the output for them; `None` to drop them.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
    output: Option<usize>,
}

/// Ranges in order that do not overlap.
struct Filter(Vec<Range>);

fn make_filter(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let outputs = cx.shape.outputs;
    let mut args = cx.args();
    let filters = args.rest();
    let mut ranges: Vec<(Range, Spanned)> = vec![];
    for filter in &filters {
        read_filter(&mut args, filter, outputs, &mut ranges);
    }
    if !args.finish() {
        return None;
    }
    let mut kept: Vec<Range> = vec![];
    for (range, text) in ranges {
        if !add_free(&mut kept, range) {
            let message = format!("`{text}` matches no packet: filters before it have its aggregates");
            cx.diags.warning(text.span, message).help("remove it, or put it before them");
        }
    }
    Some(BoxElement::opaque(Filter(kept)))
}

fn read_filter(args: &mut Args<'_>, filter: &Spanned, outputs: usize, ranges: &mut Vec<(Range, Spanned)>) {
    let words = split_words(filter);
    let Some((action, aggregates)) = words.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        args.error(filter.span, "expected `ACTION AGGREGATES`")
            .help("for example `allow 1 5-9`, or `drop all`");
        return;
    };
    let output = match action.as_str() {
        "allow" => Some(0),
        "drop" | "deny" => None,
        number => match number.parse::<usize>() {
            Ok(output) if output < outputs => Some(output),
            _ => {
                let message =
                    format!("`{action}` is no action: expected an output below {outputs}, `allow` or `drop`");
                args.error(action.span, message);
                return;
            }
        },
    };
    for text in aggregates {
        let range = match text.as_str() {
            "all" | "-" => Some((0, u32::MAX)),
            range => {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                first.parse().ok().zip(last.parse().ok()).filter(|(first, last)| first <= last)
            }
        };
        match range {
            Some((first, last)) => ranges.push((Range { first, last, output }, text.clone())),
            None => {
                args.error(text.span, format!("`{text}` is no aggregate")).help("write `7`, `0-98` or `all`");
            }
        }
    }
}

/// Adds the parts of a range that no range has; whether there are any.
fn add_free(kept: &mut Vec<Range>, range: Range) -> bool {
    let (mut free, mut from) = (vec![], u64::from(range.first));
    for other in kept.iter().filter(|other| other.last >= range.first && other.first <= range.last) {
        if from < u64::from(other.first) {
            free.push(Range { first: from as u32, last: other.first - 1, ..range });
        }
        from = u64::from(other.last) + 1;
    }
    if from <= u64::from(range.last) {
        free.push(Range { first: from as u32, ..range });
    }
    let any = !free.is_empty();
    kept.extend(free);
    kept.sort_unstable_by_key(|range| range.first);
    any
}

impl Opaque for Filter {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            let aggregate = AGGREGATE.load(&batch.packet(index).anno) as u32;
            let behind = self.0.partition_point(|range| range.first <= aggregate);
            let range =
                behind.checked_sub(1).and_then(|at| self.0.get(at)).filter(|range| aggregate <= range.last);
            match range {
                Some(Range { output: Some(output), .. }) => batch.emit(index, *output),
                Some(_) => batch.drop(index, 0),
                None => batch.drop(index, 1),
            }
        }
    }
}

impl Element for Filter {
    element::facts!(writes: false, reasons: &["denied", "no-filter"]);
}

/// The most aggregates that are remembered: some 300 MB.
const MOST_AGGREGATES: usize = 1 << 24;

#[derive(Default)]
struct First(HashSet<u32>);

impl First {
    fn is_first(&mut self, packet: &Packet) -> bool {
        let aggregate = AGGREGATE.load(&packet.anno) as u32;
        self.0.len() < MOST_AGGREGATES && self.0.insert(aggregate)
    }
}

impl Opaque for First {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.is_first(batch.packet(index)) {
                true => batch.emit(index, 0),
                false => batch.emit_or_drop(index, 1, 0),
            }
        }
    }
}

impl Element for First {
    element::facts!(writes: false, reasons: &["not-first"], handlers: FIRST_HANDLERS);
}

const FIRST_HANDLERS: &[Row<First>] = &[Row::button("clear", |first, _| first.0.clear())];

/// The most pairs that are remembered: some 200 MB.
const MOST_PAIRS: usize = 1 << 22;

#[derive(Clone, Copy)]
struct Pair {
    number: u32,
    /// The source address of the first packet.
    source: u32,
    last_ns: u64,
}

struct Pairs {
    timeout_ns: u64,
    reap_ns: u64,
    reap_at_ns: Option<u64>,
    next: u32,
    known: HashMap<(u32, u32), Pair>,
}

impl Pairs {
    /// Sets the annotations of a packet.
    ///
    /// # Errors
    /// The drop reason.
    fn set(&mut self, packet: &mut Packet) -> Result<(), usize> {
        let addresses = from_network(packet).and_then(|from_net| {
            let bytes = PacketBytes::new(&from_net);
            let is_ip4 = bytes.u8(0)? >> 4 == 4;
            is_ip4.then_some((bytes.u32(12)?, bytes.u32(16)?))
        });
        let (source, destination) = addresses.ok_or(0usize)?;
        let now_ns = packet.timestamp_ns;
        self.reap(now_ns);
        let key = (source.min(destination), source.max(destination));
        let is_full = self.known.len() >= MOST_PAIRS;
        let new = Pair { number: self.next, source, last_ns: now_ns };
        let pair = match self.known.get_mut(&key) {
            Some(pair) if now_ns.saturating_sub(pair.last_ns) <= self.timeout_ns => pair,
            Some(pair) => {
                *pair = new;
                pair
            }
            None if is_full => return Err(1),
            None => self.known.entry(key).or_insert(new),
        };
        pair.last_ns = pair.last_ns.max(now_ns);
        let (number, is_back) = (pair.number, pair.source != source);
        if number == self.next {
            self.next = self.next.checked_add(1).unwrap_or(1);
        }
        AGGREGATE.store(&mut packet.anno, number.into());
        PAINT.store(&mut packet.anno, is_back.into());
        Ok(())
    }

    /// Removes old pairs from time to time.
    fn reap(&mut self, now_ns: u64) {
        if self.timeout_ns == u64::MAX {
            return;
        }
        let at_ns = *self.reap_at_ns.get_or_insert(now_ns.saturating_add(self.reap_ns));
        if now_ns >= at_ns {
            self.reap_at_ns = Some(now_ns.saturating_add(self.reap_ns));
            self.known.retain(|_, pair| now_ns.saturating_sub(pair.last_ns) <= self.timeout_ns);
        }
    }
}

impl Opaque for Pairs {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.set(batch.packet_mut(index)) {
                Ok(()) => batch.emit(index, 0),
                Err(reason) => batch.emit_or_drop(index, 1, reason),
            }
        }
    }
}

impl Element for Pairs {
    element::facts!(writes: false, reasons: &["no-ip-header", "too-many-pairs"], handlers: PAIR_HANDLERS);
}

const PAIR_HANDLERS: &[Row<Pairs>] = &[Row::button("clear", |pairs, _| pairs.known.clear())];
