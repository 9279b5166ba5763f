//! The element behind all rewriter classes.

use super::flavor::Flavor;
use super::flow::Kind;
use super::input::{self, Spec};
use super::mappings::{Budget, DEFAULT_CAPACITY, Input, Mappings, REFUSALS, Refusal, Settings};
use super::model::Outputs;
use super::program::{self, Lowering};
use super::reader::SpecReader;
use super::table::SharedMappings;
use super::timeouts::Timeouts;
use crate::ip::header::{from_network, transport_offset};
use click::config::{Args, NoNames, parse};
use diag::{SourceMap, Spanned};
use element::steering::OwnerWorker;
use element::value::annotation;
use element::{BoxElement, Configure, Element, Handlers, Row, Scope, Transparent, Work};
use ir::{Builder, Table};
use packet::anno::Anno;
use packet::view::protocol::{TCP, UDP};
use shm::burst::Batch;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use table::Random;

/// Classes whose elements have mappings.
pub const CLASSES: &[&str] =
    &["IPRewriter", "TCPRewriter", "UDPRewriter", "IPAddrRewriter", "IPAddrPairRewriter", "ICMPPingRewriter"];

/// Keywords of old configurations for the reap interval.
const OLD_INTERVALS: &[&str] = &["REAP_TCP", "REAP_TCP_DONE", "REAP_UDP"];

/// A rewriter on one worker.
pub struct Rewriter {
    mappings: SharedMappings,
    lowering: Lowering,
    outputs: usize,
    worker: (usize, usize),
    warnings: Vec<String>,
}

/// The mappings of a rewriter, which elements of its worker share under its name.
pub fn mappings_of(cx: &mut Configure<'_>, name: &str) -> Option<SharedMappings> {
    cx.shared(Scope::Worker, name, Default::default).map(SharedMappings)
}

/// The arguments; input specifications are not parsed yet.
struct Arguments {
    settings: Settings,
    capacity: Option<Spanned>,
    dst_anno: bool,
    reply_anno: Option<Anno>,
    specs: Vec<Spanned>,
}

fn read_arguments(cx: &mut Configure<'_>, flavor: &Flavor) -> Option<Arguments> {
    let mut args = cx.args();
    let mut timeouts = Timeouts::new(flavor.has_tcp_timeouts, flavor.timeout_s);
    // Sets a time to the last of the keywords that is given.
    let set = |args: &mut Args<'_>, place: &mut u64, keywords: &[&'static str]| {
        for keyword in keywords {
            *place = args.keyword(keyword, parse::seconds_ns).unwrap_or(*place);
        }
    };
    if flavor.has_tcp_timeouts {
        set(&mut args, &mut timeouts.tcp_data_ns, &["TIMEOUT", "TCP_TIMEOUT"]);
        set(&mut args, &mut timeouts.tcp_done_ns, &["TCP_DONE_TIMEOUT"]);
        set(&mut args, &mut timeouts.tcp_nodata_ns, &["TCP_NODATA_TIMEOUT"]);
        set(&mut args, &mut timeouts.tcp_guarantee_ns, &["GUARANTEE", "TCP_GUARANTEE"]);
    } else {
        set(&mut args, &mut timeouts.other_ns, &["TIMEOUT"]);
        set(&mut args, &mut timeouts.guarantee_ns, &["GUARANTEE"]);
    }
    if flavor.has_udp_timeouts {
        set(&mut args, &mut timeouts.other_ns, &["UDP_TIMEOUT"]);
        set(&mut args, &mut timeouts.guarantee_ns, &["UDP_GUARANTEE"]);
        let streaming = args.keyword("UDP_STREAMING_TIMEOUT", parse::seconds_ns);
        let plain = (!flavor.has_tcp_timeouts).then(|| args.keyword("STREAMING_TIMEOUT", parse::seconds_ns));
        timeouts.streaming_ns = streaming.or(plain.flatten()).unwrap_or(timeouts.other_ns);
    } else {
        timeouts.streaming_ns = timeouts.other_ns;
    }
    let mut reap_interval_ns = 900_000_000_000;
    set(&mut args, &mut reap_interval_ns, &["REAP_TIME", "REAP_INTERVAL"]);
    for old in OLD_INTERVALS {
        if let Some(interval_ns) = args.keyword(old, parse::seconds_ns) {
            reap_interval_ns = reap_interval_ns.min(interval_ns.max(1));
        }
    }
    for ignored in ["TCP_DONE_GC_INCR", "HANDLE_MIGRATION"] {
        args.keyword(ignored, parse::bool);
    }
    let capacity = args.keyword("CAPACITY", parse::any);
    let capacity = args.keyword("MAPPING_CAPACITY", parse::any).or(capacity);
    let dst_anno = !flavor.has_dst_anno || args.keyword("DST_ANNO", parse::bool).unwrap_or(true);
    let reply_anno = args.keyword("REPLY_ANNO", annotation(1));
    let words = [("ADDRESS_AND_PORT_DEPENDENT", false), ("ENDPOINT_INDEPENDENT", true)];
    let (mut endpoint_independent, mut open_filter, mut sets_aggregate) = (false, false, false);
    if flavor.kind == Kind::Ports {
        endpoint_independent = args.keyword("MAPPING", parse::keyword(&words)).unwrap_or(false);
        open_filter = args.keyword("FILTERING", parse::keyword(&words)).unwrap_or(false);
        sets_aggregate = args.keyword("SET_AGGREGATE", parse::bool).unwrap_or(false);
    }
    let seed = args.keyword("SEED", parse::u64);
    let specs = args.rest();
    let span = args.span();
    if open_filter && !endpoint_independent {
        args.error(span, "FILTERING ENDPOINT_INDEPENDENT needs MAPPING ENDPOINT_INDEPENDENT");
    }
    let fine = args.finish();
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(cx.name));
    let settings = Settings {
        kind: flavor.kind,
        name: cx.name.to_string(),
        timeouts,
        reap_interval_ns,
        endpoint_independent,
        open_filter,
        reply_anno,
        sets_aggregate,
        seed: Random::new(seed.wrapping_add(cx.worker as u64)).bits(),
        capacity: DEFAULT_CAPACITY,
        owner_worker: OwnerWorker::of(cx),
    };
    fine.then_some(Arguments { settings, capacity, dst_anno, reply_anno, specs })
}

/// Makes a rewriter of one of the classes.
pub fn make(cx: &mut Configure<'_>, flavor: &'static Flavor) -> Option<BoxElement> {
    let arguments = read_arguments(cx, flavor)?;
    let before = cx.diags.errors();
    let (needed, given) = (cx.shape.inputs, arguments.specs.len());
    if given < needed {
        let message = format!("{} needs {needed} arguments, one for each input, not {given}", flavor.class);
        cx.error(cx.span, message)
            .help("write an input specification such as `pattern 1.0.0.1 1024-65535 - - 0 1`");
    }
    let (mut specs, mut drops_replies) = (vec![], false);
    for (number, text) in arguments.specs.iter().enumerate() {
        match input::read(text, cx).and_then(|spec| flavor.check(text.span, spec)) {
            Ok(_) if number >= needed => {
                let message = format!("nothing is wired to input {number} of `{}`", cx.name);
                cx.diags.warning(text.span, message).help(format!(
                    "wire it, as in `... -> [{number}]{}`, if packets are to come back by it",
                    cx.name
                ));
            }
            Ok(spec) => {
                let outputs = cx.shape.outputs;
                // A mapper that is declared behind it does not tell its outputs yet.
                drops_replies |= matches!(spec, Spec::Mapper(..));
                let unwired = |made: &Outputs| usize::from(made.reply) >= outputs;
                if let Some(made) = spec.mapping_outputs().iter().find(|made| unwired(made)) {
                    drops_replies = true;
                    let message = format!(
                        "replies leave `{}` by output {}, which is wired to nothing: they are dropped",
                        cx.name, made.reply
                    );
                    cx.diags.warning(text.span, message).help(format!(
                        "wire it, as in `{}[{}] -> ...`; if no replies come, `Discard` will do",
                        cx.name, made.reply
                    ));
                }
                specs.push(spec);
            }
            Err((span, message)) => {
                cx.error(span, format!("input spec {number}: {message}"));
            }
        }
    }
    let (budget, limit) = budget(cx, arguments.capacity.as_ref())?;
    if cx.diags.errors() > before {
        return None;
    }
    let lowering = Lowering {
        flavor,
        dst_anno: arguments.dst_anno,
        reply_anno: arguments.reply_anno,
        drops_replies,
        adjusts: arguments.settings.sets_aggregate || flavor.has_tcp_timeouts && is_in_front(cx),
        passes: specs.iter().map(Spec::passes_to).collect(),
    };
    let settings = Settings { capacity: limit.unwrap_or(DEFAULT_CAPACITY), ..arguments.settings };
    let mappings = Mappings::new(settings, specs, budget);
    let mappings = cx.accept(cx.span, mappings.map_err(|error| format!("{}: {error}", flavor.class)))?;
    let shared = mappings_of(cx, cx.name)?;
    *shared.0.lock().ok()? = Some(mappings);
    Some(BoxElement::transparent(Rewriter {
        mappings: shared,
        lowering,
        outputs: cx.shape.outputs,
        worker: (cx.worker, cx.workers),
        warnings: vec![],
    }))
}

/// Whether an element changes payloads before they come to the rewriter that is being made.
fn is_in_front(cx: &Configure<'_>) -> bool {
    cx.services.is_named_by(cx.name, "FTPPortMapper")
}

/// The budget of mappings: the rewriter's own, or that of another rewriter which it shares.
fn budget(cx: &mut Configure<'_>, text: Option<&Spanned>) -> Option<(Arc<Budget>, Option<u32>)> {
    let number = text.map(|text| parse::int_in(1..=i64::from(i32::MAX))(text, cx.names));
    let name = match (&number, text) {
        (Some(Err(_)), Some(text)) => match cx.services.element(cx.name, text.as_str()) {
            Some((name, class)) if CLASSES.contains(&class) => name,
            _ => {
                cx.error(text.span, "bad MAPPING_CAPACITY: expected a number or the name of a rewriter");
                return None;
            }
        },
        _ => cx.name.to_string(),
    };
    let budget = cx.shared(Scope::Worker, &name, Budget::default)?;
    let limit = number.and_then(Result::ok).map(|limit| share(limit as u32, cx.workers));
    if let Some(limit) = limit {
        budget.limit.store(limit, Relaxed);
    }
    Some((budget, limit))
}

/// A worker's part of a capacity.
fn share(capacity: u32, workers: usize) -> u32 {
    (capacity / workers.max(1) as u32).max(1)
}

impl Transparent for Rewriter {
    fn build(&self, f: &mut Builder) {
        program::build(&self.lowering, f);
    }

    fn table(&mut self, index: usize) -> Option<&mut dyn Table> {
        (index == 0).then_some(&mut self.mappings as &mut dyn Table)
    }

    fn usual_outputs(&self, input: usize) -> Option<Vec<usize>> {
        self.mappings.with(|mappings| mappings.usual_outputs(input)).flatten()
    }

    fn slow(&mut self, path: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        // Which packets are refused is the first path of every program.
        if path > 0 {
            return self.adjust(batch);
        }
        self.mappings.with(|mappings| {
            for &index in batch.list() {
                batch.drop(index, mappings.next_refusal() as usize);
            }
        });
    }
}

impl Element for Rewriter {
    element::facts!(reasons: REFUSALS);

    fn start(&mut self, _work: &mut Work<'_>) {
        let outputs = self.outputs;
        let warnings = self.mappings.with(|mappings| mappings.resolve(outputs));
        self.warnings.extend(warnings.unwrap_or_default());
    }

    fn tick(&mut self, now_ns: u64) {
        self.mappings.with(|mappings| mappings.tick(now_ns));
    }

    fn handlers(&mut self) -> Handlers<'_> {
        let rows = match (self.lowering.flavor.has_tcp_timeouts, self.lowering.flavor.has_udp_timeouts) {
            (true, true) => BY_PROTOCOL,
            (true, false) => TCP_ONLY,
            (false, _) => OTHERS,
        };
        Handlers::of(self, rows)
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

impl Rewriter {
    /// Does to packets, whose addresses and ports are rewritten already, what their mappings have beside lines.
    fn adjust(&mut self, batch: &mut Batch<'_>) {
        self.mappings.with(|mappings| {
            for &index in batch.list() {
                let packet = batch.packet_mut(index);
                let headers = from_network(packet).zip(transport_offset(packet));
                let output =
                    headers.and_then(|(mut from_net, l4)| mappings.adjust(packet, &mut from_net, l4));
                let reason = Refusal::NoSuchOutput as usize;
                batch.emit_or_drop(index, output.map_or(usize::MAX, usize::from), reason);
            }
        });
    }

    fn text<T: ToString>(&self, of: impl FnOnce(&mut Mappings) -> T) -> Option<String> {
        self.mappings.with(of).map(|value| value.to_string())
    }

    fn sum(&self, of: fn(&Input) -> u64) -> Option<String> {
        self.text(|mappings| mappings.inputs.iter().map(of).sum::<u64>())
    }

    fn count(&self, _cells: &[u64]) -> Option<String> {
        self.sum(|input| input.count.into())
    }

    fn table(&self, protocol: Option<u8>) -> Option<String> {
        self.text(|mappings| mappings.show(protocol))
    }

    fn look_up(&self, flow: &str) -> Option<String> {
        self.mappings.with(|mappings| mappings.look_up(flow))?
    }

    fn capacity(&self, _cells: &[u64]) -> Option<String> {
        self.text(|mappings| mappings.budget.limit.load(Relaxed))
    }

    fn set_capacity(&mut self, value: &str, _cells: &mut [u64]) -> Result<(), String> {
        let limit = value.split_whitespace().next().and_then(|number| number.parse::<u32>().ok());
        let limit = limit.filter(|&limit| limit > 0).ok_or("a number of mappings is expected")?;
        let limit = share(limit, self.worker.1);
        self.mappings.with(|mappings| mappings.set_capacity(limit));
        Ok(())
    }

    fn set_pattern(&mut self, number: usize, value: &str, cells: &mut [u64]) -> Result<(), String> {
        let mut map = SourceMap::new();
        let source = map.add("handler", value);
        let text = Spanned::verbatim(value, map.whole(source));
        let home = self.mappings.with(|mappings| mappings.settings.owner_worker.clone()).flatten();
        let reader = SpecReader {
            names: &NoNames,
            outputs: self.outputs,
            allows_no_way_back: false,
            worker: self.worker,
            owner_worker: home,
        };
        let spec = input::read_plain(&text, &reader)
            .and_then(|spec| {
                spec.ok_or((text.span, "names of patterns and elements cannot be given here".into()))
            })
            .and_then(|spec| self.lowering.flavor.check(text.span, spec))
            .map_err(|(_, message)| message)?;
        if let Some(cell) = cells.get_mut(number) {
            *cell = program::pass_cell(spec.passes_to());
        }
        self.mappings.with(|mappings| mappings.set_spec(number, spec));
        Ok(())
    }
}

/// The handlers of one class, with those of all classes.
macro_rules! handlers {
    ($($own:expr),*) => {
        &[
            $($own,)*
            Row::sum("table_size", Rewriter::count),
            Row::sum("nmappings", Rewriter::count),
            Row::sum("mapping_failures", |rewriter, _| rewriter.sum(|input| input.failures)),
            Row::sum("size", |rewriter, _| rewriter.text(|mappings| mappings.budget.used.load(Relaxed))),
            Row::sum("evictions", |rewriter, _| rewriter.text(|mappings| mappings.evictions.count)),
            Row::concat("patterns", |rewriter, _| rewriter.text(|mappings| mappings.show_inputs())),
            Row::sum("capacity", Rewriter::capacity).or_write(Rewriter::set_capacity),
            Row::button("clear", |rewriter, _| {
                rewriter.mappings.with(|mappings| mappings.clear(None));
            }),
            Row::numbered(
                "pattern",
                |rewriter| rewriter.lowering.passes.len(),
                |rewriter, input| rewriter.mappings.with(|mappings| mappings.show_input(input))?,
                Rewriter::set_pattern,
            ),
        ]
    };
}

const BY_PROTOCOL: &[Row<Rewriter>] = handlers![
    Row::concat("tcp_table", |rewriter, _| rewriter.table(Some(TCP))),
    Row::concat("udp_table", |rewriter, _| rewriter.table(Some(UDP))),
    Row::concat("tcp_mappings", |rewriter, _| rewriter.table(Some(TCP))),
    Row::concat("udp_mappings", |rewriter, _| rewriter.table(Some(UDP))),
    Row::ask("tcp_lookup", Rewriter::look_up)
];
const TCP_ONLY: &[Row<Rewriter>] = handlers![
    Row::concat("table", |rewriter, _| rewriter.table(None)),
    Row::concat("mappings", |rewriter, _| rewriter.table(None)),
    Row::ask("lookup", Rewriter::look_up)
];
const OTHERS: &[Row<Rewriter>] = handlers![
    Row::concat("table", |rewriter, _| rewriter.table(None)),
    Row::concat("mappings", |rewriter, _| rewriter.table(None))
];
