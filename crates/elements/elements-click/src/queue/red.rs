//! `RED` and `AdaptiveRED`: drop packets early, before a queue is full.
//!
//! The average and the marking are those of Floyd and Jacobson, *Random Early Detection Gateways for
//! Congestion Avoidance* (1993), in the gentle variant of Floyd, *Optimum functions for computing the drop
//! probability* (1997); `AdaptiveRED` adapts the probability as Floyd, Gummadi and Shenker, *Adaptive RED* (2001).
//! Each packet of a batch sees the length that the queues have after the packets before
//! it went in or out.

use super::watched::WatchedQueues;
use click::config::{Args, parse};
use element::random;
use element::value::{fixed_point_text, written};
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use shm::burst::Batch;

/// The class.
pub const CLASS: Class = Class {
    name: "RED",
    summary: "drops packets according to Random Early Detection",
    page: "\
# RED(MIN_THRESH, MAX_THRESH, MAX_P [, keywords QUEUES, STABILITY, GENTLE])

Keeps a running average of the length of its queues. Up to MIN_THRESH it passes all packets; from there to
MAX_THRESH it marks them with a probability that grows from 0 to MAX_P, and from there to twice MAX_THRESH
from MAX_P to 1. Marked packets are dropped, or leave by output 1 where that is wired.

- **ports**: 1 input, 1 or 2 outputs, agnostic; marked packets are pushed out of output 1
- **arguments**: `MIN_THRESH`, `MAX_THRESH`: packets; `MAX_P`: probability (0 to 1); `QUEUES`: the queues, by
  default the nearest downstream of a RED that pushes, the nearest upstream of one that is pulled;
  `STABILITY` (default 4): a packet changes the average by 1/2^STABILITY of the difference; `GENTLE` (default
  true): false marks all packets above MAX_THRESH
- **handlers**: `min_thresh`, `max_thresh`, `max_p` (read/write); `drops`, `avg_queue_size`, `queues`, `stats`
  (read)
- **drop reasons**: `early-drop`
- **difference**: each worker averages its own queues. A pushed packet sees their length before its batch.
  While they are empty, the average falls as if a packet arrived each millisecond. Random numbers depend on
  the element's name and worker only
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| make(cx, "RED", fixed),
};

/// The class.
pub const ADAPTIVE: Class = Class {
    name: "AdaptiveRED",
    summary: "drops packets according to Adaptive RED",
    page: "\
# AdaptiveRED(TARGET, MAX_P [, keywords QUEUES, STABILITY])

RED with a MIN_THRESH of TARGET / 2 and a MAX_THRESH of 3 * TARGET / 2. Each half second it changes its MAX_P, which
begins as given: it grows while the average is above TARGET (by 0.01, at most a quarter of itself, up to 0.5), and falls
while that is below (by a tenth of itself, down to 0.01).

- **ports**: 1 input, 1 or 2 outputs, agnostic; marked packets are pushed out of output 1
- **arguments**: `TARGET`: the queue length that is aimed at, at least 10 packets; `MAX_P`, `QUEUES`, `STABILITY`: as
  for RED
- **handlers**: `min_thresh`, `max_thresh`, `max_p` (read/write); `drops`, `avg_queue_size`, `queues`, `stats`
  (read)
- **drop reasons**: `early-drop`
- **difference**: as for RED
",
    make: |cx| make(cx, "AdaptiveRED", adaptive),
    ..CLASS
};

const EARLY_DROP: usize = 0;
/// Fraction bits of probabilities, as in Click.
const SHIFT: u32 = 16;
const ONE: u32 = 1 << SHIFT;
/// While the queues are empty, the average falls as if a packet arrived at this interval.
const EMPTY_STEP_NS: u64 = 1_000_000;
/// How often an adaptive one changes its probability, by how much at most, and after how many times that has found
/// its limit.
const ADAPT_NS: u64 = 500_000_000;
const HUNDREDTH: u32 = ONE / 100;
const MOST_ROUNDS: u64 = 100;
/// The least queue length that an adaptive one aims at.
const LEAST_TARGET: u32 = 10;

struct Red {
    min_thresh: u32,
    max_thresh: u32,
    max_p: u32,
    stability: u32,
    /// Whether marking grows beyond MAX_THRESH; else all are marked there.
    gentle: bool,
    /// Of an adaptive one: when it changes `max_p` the next time, if it has begun.
    adapts: Option<Option<u64>>,
    queues: WatchedQueues,
    marks: Marks,
    drops: u64,
}

/// The average length, and the state of marking.
struct Marks {
    average: f64,
    last_ns: u64,
    /// Packets since the last mark; `None` if the probability was 0 or 1.
    since: Option<u32>,
    /// The next random number, 0 to 1.
    draw: f64,
    state: u64,
}

/// The arguments by which the two classes differ.
struct Thresholds {
    min: u32,
    max: u32,
    max_p: u32,
    gentle: bool,
    adapts: bool,
}

fn fixed(args: &mut Args<'_>) -> Option<Thresholds> {
    let min = args.mandatory_positional("MIN_THRESH", parse::u32);
    let max = args.mandatory_positional("MAX_THRESH", parse::u32);
    let max_p = args.mandatory_positional("MAX_P", parse::fixed_point(SHIFT));
    let gentle = args.keyword("GENTLE", parse::bool).unwrap_or(true);
    Some(Thresholds { min: min?, max: max?, max_p: max_p?, gentle, adapts: false })
}

fn adaptive(args: &mut Args<'_>) -> Option<Thresholds> {
    let target = args.mandatory_positional("TARGET", parse::u32);
    let max_p = args.mandatory_positional("MAX_P", parse::fixed_point(SHIFT));
    let (target, max_p) = (target?.max(LEAST_TARGET), max_p?);
    let min = target / 2;
    Some(Thresholds { min, max: target.saturating_add(min), max_p, gentle: true, adapts: true })
}

fn make(
    cx: &mut Configure<'_>,
    class: &str,
    read: fn(&mut Args<'_>) -> Option<Thresholds>,
) -> Option<BoxElement> {
    let state = random::seed(cx);
    let mut args = cx.args();
    let thresholds = read(&mut args);
    let queues = args.keyword("QUEUES", parse::any);
    let stability = args.keyword("STABILITY", parse::int_in(0..=32)).unwrap_or(4) as u32;
    let span = args.span();
    let fine = args.finish();
    let queues = WatchedQueues::find(cx, queues.as_ref(), (class, span));
    let Thresholds { min: min_thresh, max: max_thresh, max_p, gentle, adapts } = thresholds?;
    if let Err(message) = check(min_thresh, max_thresh, max_p) {
        cx.error(span, message);
        return None;
    }
    let queues = queues.filter(|_| fine)?;
    let marks = Marks { average: 0.0, last_ns: 0, since: None, draw: 0.0, state };
    Some(BoxElement::opaque(Red {
        min_thresh,
        max_thresh,
        max_p,
        stability,
        gentle,
        adapts: adapts.then_some(None),
        queues,
        marks,
        drops: 0,
    }))
}

fn check(min_thresh: u32, max_thresh: u32, max_p: u32) -> Result<(), String> {
    if min_thresh > max_thresh {
        return Err(format!("MIN_THRESH {min_thresh} is greater than MAX_THRESH {max_thresh}"));
    }
    if max_p > ONE {
        return Err("MAX_P is a probability: 0 to 1".into());
    }
    Ok(())
}

impl Red {
    /// The probability of a mark at the average.
    fn probability(&self) -> f64 {
        let (average, max_p) = (self.marks.average, f64::from(self.max_p) / f64::from(ONE));
        let (min, max) = (f64::from(self.min_thresh), f64::from(self.max_thresh));
        if average <= min {
            0.0
        } else if average <= max {
            max_p * (average - min) / (max - min)
        } else if self.gentle && average < 2.0 * max {
            max_p + (1.0 - max_p) * (average - max) / max
        } else {
            1.0
        }
    }

    /// Changes the probability for each half second that has passed (`AdaptiveRED`).
    fn adapt(&mut self, now_ns: u64) {
        let Some(next_ns) = &mut self.adapts else { return };
        let due_ns = next_ns.unwrap_or(now_ns.saturating_add(ADAPT_NS));
        let rounds = now_ns.checked_sub(due_ns).map_or(0, |late_ns| late_ns / ADAPT_NS + 1);
        *next_ns = Some(due_ns.saturating_add(rounds.saturating_mul(ADAPT_NS)));
        let (min, max) = (f64::from(self.min_thresh), f64::from(self.max_thresh));
        let part = f64::from(self.max_thresh.saturating_sub(self.min_thresh) / 2);
        // The average is the same in all of them. After so many the probability does not change any more.
        for _ in 0..rounds.min(MOST_ROUNDS) {
            if self.marks.average < min + part && self.max_p > HUNDREDTH {
                self.max_p = self.max_p * 9 / 10;
            } else if self.marks.average > max - part && self.max_p < ONE / 2 {
                self.max_p += HUNDREDTH.min(self.max_p / 4);
            }
        }
    }

    /// Updates the average with the queue length that a packet saw. Returns whether the packet is marked.
    fn marks(&mut self, length: usize, now_ns: u64) -> bool {
        let weight = 0.5f64.powi(self.stability as i32);
        if length > 0 {
            self.marks.average += (length as f64 - self.marks.average) * weight;
        } else {
            let empty_ns = now_ns.saturating_sub(self.marks.last_ns);
            let steps = (empty_ns / EMPTY_STEP_NS).clamp(1, i32::MAX as u64);
            self.marks.average *= (1.0 - weight).powi(steps as i32);
        }
        self.marks.last_ns = now_ns;
        let probability = self.probability();
        if probability <= 0.0 || probability >= 1.0 {
            self.marks.since = None;
            return probability >= 1.0;
        }
        // Marks are spread evenly (section 7 of the paper).
        let since = self.marks.since.map_or(0, |since| since.saturating_add(1));
        let is_marked = since > 0 && f64::from(since) * probability >= self.marks.draw;
        self.marks.since = Some(if is_marked { 0 } else { since });
        if is_marked || since == 0 {
            self.marks.draw = random::next_unit(&mut self.marks.state);
        }
        is_marked
    }
}

impl Opaque for Red {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let (now_ns, list, queued) = (work.now_ns(), batch.list(), self.queues.length());
        self.adapt(now_ns);
        for (at, &index) in list.iter().enumerate() {
            // Upstream, the later packets of the batch have left the queues already and count. Downstream,
            // the earlier ones do not count: a batch that is received at once is no queue.
            let beside = if self.queues.downstream { 0 } else { list.len() - at - 1 };
            if self.marks(queued + beside, now_ns) {
                self.drops += 1;
                batch.emit_or_drop(index, 1, EARLY_DROP);
            } else {
                batch.emit(index, 0);
            }
        }
    }
}

impl Element for Red {
    element::facts!(writes: false, reasons: &["early-drop"], handlers: HANDLERS);

    fn tick(&mut self, now_ns: u64) {
        self.adapt(now_ns);
    }
}

impl Red {
    fn set(&mut self, min_thresh: u32, max_thresh: u32, max_p: u32) -> Result<(), String> {
        check(min_thresh, max_thresh, max_p)?;
        (self.min_thresh, self.max_thresh, self.max_p) = (min_thresh, max_thresh, max_p);
        Ok(())
    }

    fn average_text(&self) -> String {
        format!("{:.3}", self.marks.average)
    }
}

const HANDLERS: &[Row<Red>] = &[
    Row::read_write(
        "min_thresh",
        |red, _| Some(red.min_thresh.to_string()),
        |red, value, _| red.set(written(value, parse::u32)?, red.max_thresh, red.max_p),
    ),
    Row::read_write(
        "max_thresh",
        |red, _| Some(red.max_thresh.to_string()),
        |red, value, _| red.set(red.min_thresh, written(value, parse::u32)?, red.max_p),
    ),
    Row::read_write(
        "max_p",
        |red, _| Some(fixed_point_text(red.max_p.into(), SHIFT)),
        |red, value, _| red.set(red.min_thresh, red.max_thresh, written(value, parse::fixed_point(SHIFT))?),
    ),
    Row::sum("drops", |red, _| Some(red.drops.to_string())),
    Row::sum("avg_queue_size", |red, _| Some(red.average_text())),
    Row::read("queues", |red, _| Some(red.queues.names.join("\n"))),
    Row::concat("stats", |red, _| {
        let (length, average, drops) = (red.queues.length(), red.average_text(), red.drops);
        Some(format!("{length} current queue\n{average} avg queue\n{drops} drops"))
    }),
];
