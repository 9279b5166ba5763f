//! `AggregateCounter`: counts packets or bytes by aggregate annotation.

use super::aggregates::{Aggregates, Format};
use click::config::{Args, parse};
use element::value::written;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use elements::basic::handler_call::{HandlerCall, Trigger};
use packet::anno::{AGGREGATE, EXTRA_LENGTH, EXTRA_PACKETS};
use shm::Packet;
use shm::burst::{Batch, Vector};
use shm::descriptor::NO_HEADER;
use std::path::{Path, PathBuf};

/// The class.
pub const CLASS: Class = Class {
    name: "AggregateCounter",
    summary: "counts packets per aggregate annotation",
    page: "\
# AggregateCounter([keywords])

Counts packets, or their bytes, for each value of the aggregate annotation.

- **ports**: 1 or 2 inputs, 1 or 2 outputs, agnostic. Packets from input 1 are counted only if their aggregate has been
  counted before, as all packets are while the element is frozen. Pushed packets that were not counted leave by output
  1, if it is wired
- **arguments**: `BYTES` (default false): count bytes; `IP_BYTES` (default false): without the bytes in front of the
  network header; `MULTIPACKET` (default true): a packet counts as 1 and its extra packets annotation;
  `EXTRA_LENGTH` (default true): bytes include the extra length annotation; `AGGREGATE_FREEZE`, `AGGREGATE_STOP`
  (`N`), `AGGREGATE_CALL` (`N HANDLER [VALUE]`): freeze, stop the run or write a handler when the aggregate after the
  first N comes; `COUNT_FREEZE`, `COUNT_STOP`, `COUNT_CALL`: the same when the total count reaches N; `BANNER`: a text
  at the beginning of written files
- **annotations**: reads `AGGREGATE`, `EXTRA_PACKETS`, `EXTRA_LENGTH`
- **handlers**: `nagg`, `count` (read): aggregates that have been counted, and the total; `write_text_file`
  (`write_ascii_file`), `write_ip_file`, `write_pdf_file`, `write_file` (write): write the counts to the file of
  that name (`-`: the standard output), with a line for each aggregate and its count, with aggregates as IP
  addresses, with parts of the total, or as pairs of 32-bit numbers; `freeze`, `active`, `banner`, `aggregate_call`,
  `count_call` (read/write); `reaggregate_counts` (write): makes each count an aggregate; `clear`, `stop` (write)
- **workers**: one worker counts
- **difference**: at most 16777216 aggregates are counted; packets of others are treated as while the element is frozen
",
    codes: PortCodes::new("1-2/1-2", "a/a"),
    state: StateScope::OneWorker,
    make,
};

/// What to do when a limit is reached.
enum Action {
    Freeze,
    Stop,
    Call(HandlerCall),
}

/// A limit that has not been reached yet, and the action.
struct AtLimit {
    limit: u64,
    action: Action,
}

/// The unit of counts.
struct Unit {
    bytes: bool,
    ip_bytes: bool,
    extra_packets: bool,
    extra_length: bool,
}

struct AggregateCounter {
    name: String,
    unit: Unit,
    inputs: usize,
    aggregates: Aggregates,
    frozen: bool,
    active: bool,
    at_aggregates: Option<AtLimit>,
    at_count: Option<AtLimit>,
    banner: String,
    folder: PathBuf,
    /// Whether the handler `stop` was written and the run does not end yet.
    stop_asked: bool,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (name, inputs) = (cx.name.to_string(), cx.shape.inputs);
    let folder = cx.services.path(Path::new(""));
    cx.opaque(|args| {
        let mut flag = |keyword, default| args.keyword(keyword, parse::bool).unwrap_or(default);
        let (bytes, ip_bytes) = (flag("BYTES", false), flag("IP_BYTES", false));
        let (extra_packets, extra_length) = (flag("MULTIPACKET", true), flag("EXTRA_LENGTH", true));
        let unit = Unit { bytes, ip_bytes, extra_packets, extra_length };
        let at_aggregates = limit(args, ["AGGREGATE_FREEZE", "AGGREGATE_STOP", "AGGREGATE_CALL"]);
        let at_count = limit(args, ["COUNT_FREEZE", "COUNT_STOP", "COUNT_CALL"]);
        let banner = args.keyword("BANNER", parse::string);
        let banner = banner.map_or_else(String::new, |banner| banner.text.to_string());
        Some(AggregateCounter {
            name,
            unit,
            inputs,
            aggregates: Aggregates::default(),
            frozen: false,
            active: true,
            at_aggregates,
            at_count,
            banner,
            folder,
            stop_asked: false,
        })
    })
}

/// Reads the keywords of a limit, of which one can be given.
fn limit(args: &mut Args<'_>, [freeze, stop, call]: [&'static str; 3]) -> Option<AtLimit> {
    let frozen = args.keyword(freeze, parse::u64).map(|limit| AtLimit { limit, action: Action::Freeze });
    let stopped = args.keyword(stop, parse::u64).map(|limit| AtLimit { limit, action: Action::Stop });
    let called = args.keyword(call, Trigger::parse).and_then(at_call);
    let given = [frozen, stopped, called];
    if given.iter().flatten().count() > 1 {
        let span = args.span();
        args.error(span, format!("{freeze}, {stop} and {call} exclude each other")).help("state one of them");
    }
    given.into_iter().flatten().next()
}

fn at_call(trigger: Trigger) -> Option<AtLimit> {
    Some(AtLimit { limit: trigger.at, action: Action::Call(trigger.call?) })
}

impl Unit {
    /// What a packet counts as.
    fn amount(&self, packet: &Packet) -> u32 {
        if !self.bytes {
            let extra = if self.extra_packets { EXTRA_PACKETS.load(&packet.anno) } else { 0 };
            return 1u32.wrapping_add(extra as u32);
        }
        let extra = if self.extra_length { EXTRA_LENGTH.load(&packet.anno) } else { 0 };
        let front = if packet.net == NO_HEADER { 0 } else { packet.net.saturating_sub(packet.data()) };
        let skipped = if self.ip_bytes { u32::from(front) } else { 0 };
        packet.total().wrapping_add(extra as u32).wrapping_sub(skipped)
    }
}

impl AggregateCounter {
    /// Counts a packet; whether it was counted.
    fn count(&mut self, packet: &Packet, frozen: bool, work: &mut Work<'_>) -> bool {
        if !self.active {
            return false;
        }
        let aggregate = AGGREGATE.load(&packet.anno) as u32;
        let amount = self.unit.amount(packet);
        let is_new = !self.aggregates.has(aggregate);
        if is_new && amount > 0 {
            let seen = self.aggregates.len() as u64;
            if !frozen && let Some(at) = self.at_aggregates.take_if(|at| seen >= at.limit) {
                self.act(at.action, work);
                return self.count(packet, frozen || self.frozen, work);
            }
        }
        if is_new && frozen || !self.aggregates.add(aggregate, amount) {
            return false;
        }
        let total = self.aggregates.total();
        if let Some(at) = self.at_count.take_if(|at| total >= at.limit) {
            self.act(at.action, work);
        }
        true
    }

    fn act(&mut self, action: Action, work: &mut Work<'_>) {
        match action {
            Action::Freeze => self.frozen = true,
            Action::Stop => {
                self.active = false;
                work.stop();
            }
            Action::Call(call) => call.call(&self.name, work),
        }
    }

    /// Ends the run if a handler asked for it.
    fn stop_if_asked(&mut self, work: &mut Work<'_>) {
        if std::mem::take(&mut self.stop_asked) {
            work.stop();
        }
    }

    fn write_file(&self, name: &str, format: Format) -> Result<(), String> {
        let name = written(name, parse::filename).map_err(|_| "the name of a file is expected")?;
        let path = if name == Path::new("-") { name } else { self.folder.join(name) };
        self.aggregates.write(&path, &self.banner, format)
    }
}

impl Opaque for AggregateCounter {
    fn push(&mut self, input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        self.stop_if_asked(work);
        for &index in batch.list() {
            let counted = self.count(batch.packet(index), self.frozen || input == 1, work);
            batch.emit(index, usize::from(!counted && batch.outputs() > 1));
        }
    }

    fn answers_pull(&self) -> bool {
        true
    }

    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        self.stop_if_asked(work);
        let before = into.len();
        let pulled = work.pull(if self.inputs == 1 { 0 } else { output }, most, into);
        for packet in into.iter().skip(before) {
            self.count(packet, self.frozen || output == 1, work);
        }
        pulled
    }
}

impl Element for AggregateCounter {
    element::facts!(writes: false, handlers: HANDLERS);

    fn packets_until_call(&self, _cells: &[u64]) -> u64 {
        if !self.active {
            return u64::MAX;
        }
        let left = |at: &Option<AtLimit>, count: u64, step: u64, ahead: u64| match at {
            Some(AtLimit { limit, .. }) => (limit.saturating_sub(count) / step).saturating_add(ahead),
            None => u64::MAX,
        };
        let step = if self.unit.bytes { MOST_BYTES } else { 1 };
        // The aggregate behind the last acts, and the packet with which the count is reached.
        let of_aggregates = left(&self.at_aggregates, self.aggregates.len() as u64, 1, 1);
        of_aggregates.min(left(&self.at_count, self.aggregates.total(), step, 0))
    }

    fn start(&mut self, work: &mut Work<'_>) {
        work.fire_at(work.now_ns());
    }

    /// Looks whether the handler `stop` was written while no packets come.
    fn fire(&mut self, work: &mut Work<'_>) {
        self.stop_if_asked(work);
        work.fire_at(work.now_ns().saturating_add(LOOK_NS));
    }
}

/// Bytes of a long frame: so many may come with each packet.
const MOST_BYTES: u64 = 1 << 11;
/// How often it looks whether the handler `stop` was written.
const LOOK_NS: u64 = 100_000_000;

fn limit_text(at: Option<&AtLimit>) -> Option<String> {
    Some(match at {
        Some(AtLimit { limit, action: Action::Call(call) }) => format!("{limit} {}", call.text()),
        Some(AtLimit { limit, action: Action::Freeze }) => format!("{limit} freeze true"),
        Some(AtLimit { limit, action: Action::Stop }) => format!("{limit} stop"),
        None => String::new(),
    })
}

/// Reads the value of `aggregate_call` or `count_call`; empty for no call.
fn set_limit(at: &mut Option<AtLimit>, value: &str) -> Result<(), String> {
    if value.trim().is_empty() {
        *at = None;
        return Ok(());
    }
    let call = at_call(written(value, Trigger::parse)?);
    *at = Some(call.ok_or("`N HANDLER [VALUE]` is expected")?);
    Ok(())
}

const HANDLERS: &[Row<AggregateCounter>] = &[
    Row::sum("nagg", |counter, _| Some(counter.aggregates.len().to_string())),
    Row::sum("count", |counter, _| Some(counter.aggregates.total().to_string())),
    Row::write("write_text_file", |counter, name, _| counter.write_file(name, Format::Text)),
    Row::write("write_ascii_file", |counter, name, _| counter.write_file(name, Format::Text)),
    Row::write("write_ip_file", |counter, name, _| counter.write_file(name, Format::Addresses)),
    Row::write("write_pdf_file", |counter, name, _| counter.write_file(name, Format::Parts)),
    Row::write("write_file", |counter, name, _| counter.write_file(name, Format::Binary)),
    Row::read_write(
        "freeze",
        |counter, _| Some(counter.frozen.to_string()),
        |counter, value, _| element::value::set(&mut counter.frozen, value, parse::bool),
    ),
    element::field!(active, parse::bool),
    Row::read_write(
        "banner",
        |counter, _| Some(counter.banner.clone()),
        |counter, value, _| {
            counter.banner = value.to_string();
            Ok(())
        },
    ),
    Row::read_write(
        "aggregate_call",
        |counter, _| limit_text(counter.at_aggregates.as_ref()),
        |counter, value, _| set_limit(&mut counter.at_aggregates, value),
    ),
    Row::read_write(
        "count_call",
        |counter, _| limit_text(counter.at_count.as_ref()),
        |counter, value, _| set_limit(&mut counter.at_count, value),
    ),
    Row::button("reaggregate_counts", |counter, _| counter.aggregates.reaggregate()),
    Row::button("clear", |counter, _| counter.aggregates = Aggregates::default()),
    Row::button("stop", |counter, _| (counter.active, counter.stop_asked) = (false, true)),
];
