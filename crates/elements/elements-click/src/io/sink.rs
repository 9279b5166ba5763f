//! The elements that write packets to a file.
//!
//! Without an output, they free what they wrote; with one, every packet goes on.

use element::{Element, Opaque, Progress, Row, Task, Work};
use elements::io::files::FLUSH_NS;
use port::PortStats;
use shm::Packet;
use shm::burst::{Batch, LIST_CAPACITY, Vector};
use shm::pool::Pool;

/// The drop reason `write-failed`.
pub(super) const WRITE_FAILED: usize = 0;

/// An element that writes packets to a file of the format `F`.
pub(super) struct Sink<F> {
    pub(super) format: F,
    pub(super) shown: String,
    pub(super) forwards: bool,
    pub(super) failed: bool,
    /// Set at the end of the run: then no packet may wait any more.
    pub(super) stopped: bool,
    pub(super) stats: PortStats,
    /// Bytes that are counted as sent.
    pub(super) counted_bytes: u64,
    pub(super) warnings: Vec<String>,
    next_flush_ns: u64,
}

impl<F> Sink<F> {
    pub(super) fn new(format: F, shown: String, forwards: bool) -> Sink<F> {
        Sink {
            format,
            shown,
            forwards,
            failed: false,
            stopped: false,
            stats: PortStats::default(),
            counted_bytes: 0,
            warnings: vec![],
            next_flush_ns: 0,
        }
    }
}

/// What a format does.
pub(super) trait Store: Sized + 'static {
    const HANDLERS: &'static [Row<Self>];
    /// Whether the element pulls packets itself although it has an output.
    const PULLS_THROUGH: bool;
    /// Writes what precedes the packets.
    fn begin(&mut self, work: &mut Work<'_>);
    /// Writes a packet; false when the file takes no more.
    fn store(&mut self, packet: &Packet, now_ns: u64) -> bool;
    /// Accounts for packets that were stored and freed, and for those that waited.
    fn settle(&mut self, stored: usize, work: &mut Work<'_>);
    fn flush(&mut self);
    /// Whether this worker writes the file.
    fn is_open(&self) -> bool;
}

impl<F: Send> Opaque for Sink<F>
where
    Sink<F>: Store,
{
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        let (now_ns, list) = (work.now_ns(), batch.list());
        let (mut stored, mut count) = ([0; LIST_CAPACITY], 0);
        for &index in list {
            let is_stored = self.store(batch.packet(index), now_ns);
            if self.forwards {
                batch.emit(index, 0);
            } else if is_stored {
                stored[count] = index;
                count += 1;
            } else {
                batch.drop(index, WRITE_FAILED);
            }
        }
        work.pool().free(batch.packets(), &stored[..count]);
        self.settle(count, work);
    }
}

impl<F: Send> Task for Sink<F>
where
    Sink<F>: Store,
{
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        let burst = work.burst();
        work.pull(0, burst, vector);
        if vector.is_empty() {
            return Progress::Idle;
        }
        let (now_ns, mut count) = (work.now_ns(), 0);
        for packet in vector.iter() {
            let is_stored = self.store(packet, now_ns);
            if self.forwards {
                continue;
            }
            if is_stored {
                work.pool().free_all(std::slice::from_ref(packet));
                count += 1;
            } else {
                work.drop(WRITE_FAILED, std::slice::from_ref(packet));
            }
        }
        if !self.forwards {
            vector.clear();
        }
        self.settle(count, work);
        Progress::Worked
    }

    fn takes_at_once(&self, _packets: usize) -> Result<(), &'static str> {
        Ok(())
    }
}

impl<F: Send> Element for Sink<F>
where
    Sink<F>: Store,
{
    element::facts!(writes: false, reasons: &["write-failed"], handlers: Self::HANDLERS);

    fn start(&mut self, work: &mut Work<'_>) {
        self.begin(work);
        self.flush();
    }

    fn task(&mut self) -> Option<&mut dyn Task> {
        (Self::PULLS_THROUGH || !self.forwards).then_some(self)
    }

    fn fire(&mut self, work: &mut Work<'_>) {
        self.flush();
        self.settle(0, work);
    }

    fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.next_flush_ns {
            self.next_flush_ns = now_ns + FLUSH_NS;
            self.flush();
        }
    }

    fn stop(&mut self, work: &mut Work<'_>) {
        self.stopped = true;
        self.fire(work);
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        self.is_open().then(|| (self.shown.clone(), self.stats))
    }
}
