//! `RecordTimestamp`: records when packets pass.

use super::number_packet::{NumberOrder, NumberPlace};
use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, Scope, StateScope, Work};
use shm::burst::Batch;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The class.
pub const CLASS: Class = Class {
    name: "RecordTimestamp",
    summary: "records the time at which packets pass, for TimestampDiff",
    page: "\
# RecordTimestamp([keywords COUNTER, N, OFFSET, DYNAMIC, NET_ORDER])

Records the time at which each packet passes. A TimestampDiff further down the path of the packets looks the time up
by the number that NumberPacket wrote into the packet.

- **ports**: 1 input, 1 output, push
- **arguments**: `COUNTER`: the NumberPacket in front, whose byte order counts; `N` (1 to 67108864, default 65536):
  times that there is room for; `OFFSET`: where the packet's number begins; without it, packets are taken to be
  numbered in the order in which they pass; `DYNAMIC` (default false): make more room when it is used up; `NET_ORDER`
  (default false): the number is in network byte order
- **handlers**: `recorded`, `missed` (read): packets whose times were recorded, and for which there was no room or
  that have no number
- **workers**: one worker records
- **difference**: packets of a burst get the same time: the clock is read once for each burst. Without OFFSET, room is
  made as with `DYNAMIC true`, up to 67108864 times. Where FastClick ends for lack of room, packets pass unrecorded
",
    codes: PortCodes::new("1/1", "h/h"),
    state: StateScope::OneWorker,
    make,
};

/// The most times: 512 MB.
const MOST: i64 = 1 << 26;

/// The times at which packets passed, by their numbers; 0 for those that did not. The worker's shared state has
/// it under the element's name; it is locked once for a burst.
#[derive(Default)]
pub(super) struct PassTimes {
    by_number: Mutex<Vec<u64>>,
    order: NumberOrder,
}

impl PassTimes {
    /// The times.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.by_number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether numbers are in network byte order.
    pub(super) fn is_net_order(&self) -> bool {
        self.order.is_net()
    }
}

struct RecordTimestamp {
    /// `None` if packets are numbered as they pass.
    place: Option<NumberPlace>,
    /// Of the element that numbers the packets, if it is known.
    counter: Option<Arc<NumberOrder>>,
    /// The most times.
    most: usize,
    times: Arc<PassTimes>,
    recorded: u64,
    missed: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let counter = args.keyword("COUNTER", parse::element);
    let room = args.keyword("N", parse::int_in(1..=MOST)).unwrap_or(65_536) as usize;
    let offset = args.keyword("OFFSET", parse::int_in(-1..=65_000)).and_then(|at| usize::try_from(at).ok());
    let dynamic = args.keyword("DYNAMIC", parse::bool).unwrap_or(false);
    let net_order = args.keyword("NET_ORDER", parse::bool).unwrap_or(false);
    let fine = args.finish();
    let counter = match counter {
        None => None,
        Some(counter) => match cx.element(&counter)? {
            (full, "NumberPacket") => Some(cx.shared(Scope::Worker, &full, NumberOrder::default)?),
            (_, class) => {
                cx.error(counter.span, format!("`{counter}` is a {class}, not a NumberPacket"));
                return None;
            }
        },
    };
    let times = cx.shared(Scope::Worker, cx.name, PassTimes::default)?;
    times.lock().reserve(room);
    times.order.set(net_order);
    let grows = dynamic || offset.is_none();
    let most = if grows { MOST as usize } else { room };
    let place = offset.map(|offset| NumberPlace { offset, net_order });
    fine.then(|| BoxElement::opaque(RecordTimestamp { place, counter, most, times, recorded: 0, missed: 0 }))
}

impl Opaque for RecordTimestamp {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let now_ns = work.clock_ns();
        if let (Some(place), Some(counter)) = (&mut self.place, &self.counter) {
            // The counter may have been made after this element.
            place.net_order = counter.is_net();
        }
        if let Some(counter) = &self.counter {
            self.times.order.set(counter.is_net());
        }
        let mut times = self.times.lock();
        for &index in batch.list() {
            let number = match self.place {
                Some(place) => place.read(batch.packet(index)).and_then(|at| usize::try_from(at).ok()),
                None => Some(times.len()),
            };
            match number.filter(|number| *number < self.most) {
                Some(number) => {
                    if number >= times.len() {
                        times.resize(number + 1, 0);
                    }
                    times[number] = now_ns;
                    self.recorded += 1;
                }
                None => self.missed += 1,
            }
            batch.emit(index, 0);
        }
    }
}

impl Element for RecordTimestamp {
    element::facts!(writes: false, handlers: HANDLERS);
}

const HANDLERS: &[Row<RecordTimestamp>] = &[
    Row::sum("recorded", |record, _| Some(record.recorded.to_string())),
    Row::sum("missed", |record, _| Some(record.missed.to_string())),
];
