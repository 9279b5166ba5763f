//! The elements that play the packets of a file, with sampling and pacing.

use click::config::parse;
use element::value::{fixed_point_text, written};
use element::{Configure, Element, Opaque, Progress, Row, Task, Work, random};
use port::PortStats;
use shm::burst::Vector;

/// An element that plays packets from a file of the format `F`.
pub(super) struct Replay<F> {
    pub(super) format: F,
    pub(super) shown: String,
    pub(super) active: bool,
    /// Whether the handler `stop` was written and the run does not end yet.
    pub(super) stop_asked: bool,
    pub(super) sampler: Sampler,
    pub(super) pace: Option<Pace>,
    /// Packets at a time; `None` for the run's burst.
    pub(super) burst: Option<usize>,
    pub(super) stats: PortStats,
    pub(super) warnings: Vec<String>,
    pub(super) wiring: Wiring,
}

/// How packets leave the element.
pub(super) struct Wiring {
    /// Whether it pushes them; else they are pulled.
    pushes: bool,
    /// Whether this worker plays the file.
    here: bool,
    /// Whether the last pull found that there will be no more packets.
    is_over: bool,
    /// The vector of a pull.
    pulled: Option<Box<Vector>>,
}

impl Wiring {
    /// As the element is wired.
    pub(super) fn of(cx: &Configure<'_>) -> Wiring {
        Wiring {
            pushes: cx.services.queues_near(cx.name).1,
            here: cx.worker == 0,
            is_over: false,
            pulled: None,
        }
    }
}

/// What a format does.
pub(super) trait Play: Sized + 'static {
    const HANDLERS: &'static [Row<Self>];
    const REASONS: &'static [&'static str];
    /// Runs the element's task.
    fn play(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress;
    /// Whether it has a file, whose statistics it reports.
    fn is_open(&self) -> bool;
}

impl<F: 'static> Replay<F> {
    pub(super) const SAMPLING_PROB: Row<Self> =
        Row::read("sampling_prob", |replay, _| Some(replay.sampler.text()));
    pub(super) const FILENAME: Row<Self> = Row::read("filename", |replay, _| Some(replay.shown.clone()));
    pub(super) const ACTIVE: Row<Self> = Row::read_write(
        "active",
        |replay, _| Some(replay.active.to_string()),
        |replay, value, _| {
            replay.active = written(value, parse::bool).map_err(|_| "`true` or `false` is expected")?;
            Ok(())
        },
    );
    pub(super) const STOP: Row<Self> =
        Row::button("stop", |replay, _| (replay.active, replay.stop_asked) = (false, true));
}

impl<F: Send> Opaque for Replay<F>
where
    Replay<F>: Play,
{
    fn answers_pull(&self) -> bool {
        true
    }

    fn pull(&mut self, output: usize, most: usize, into: &mut Vector, work: &mut Work<'_>) -> usize {
        if output > 0 || !self.wiring.here {
            return 0;
        }
        // Its own vector: what the other one has already is none of its packets.
        let mut pulled = self.wiring.pulled.take().unwrap_or_default();
        let burst = self.burst.unwrap_or(usize::MAX).min(most).min(into.room());
        let given = self.burst.replace(burst);
        if burst > 0 {
            self.wiring.is_over = self.play_once(&mut pulled, work) == Progress::Finished;
        }
        self.burst = given;
        let count = pulled.len();
        pulled.iter().for_each(|packet| _ = into.push(packet));
        pulled.clear();
        self.wiring.pulled = Some(pulled);
        count
    }
}

impl<F: Send> Task for Replay<F>
where
    Replay<F>: Play,
{
    /// Of an element whose packets are pulled, it only says whether more of them may come.
    fn run_task(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        match (self.wiring.pushes, self.wiring.is_over) {
            (true, _) => self.play_once(vector, work),
            (false, true) => Progress::Finished,
            (false, false) => Progress::Idle,
        }
    }
}

impl<F: Send> Replay<F>
where
    Replay<F>: Play,
{
    fn play_once(&mut self, vector: &mut Vector, work: &mut Work<'_>) -> Progress {
        if std::mem::take(&mut self.stop_asked) {
            work.stop();
        }
        self.play(vector, work)
    }
}

impl<F: Send> Element for Replay<F>
where
    Replay<F>: Play,
{
    element::facts!(reasons: Self::REASONS, handlers: Self::HANDLERS);

    fn task(&mut self) -> Option<&mut dyn Task> {
        Some(self)
    }

    // From here on as in `Sink`, which has the same fields and another task.
    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn port_stats(&self) -> Option<(String, PortStats)> {
        self.is_open().then(|| (self.shown.clone(), self.stats))
    }
}

/// The value of a handler that is a number about the file; `-` if it is not known.
pub(super) fn number_text(number: Option<u64>) -> Option<String> {
    Some(number.map_or_else(|| "-".to_string(), |number| number.to_string()))
}

/// Fraction bits of a sampling probability, as in Click.
pub(super) const SAMPLING_SHIFT: u32 = 28;
const ALWAYS: u32 = 1 << SAMPLING_SHIFT;

/// Samples packets at random. The choice is the same in every run.
pub(super) struct Sampler {
    probability: u32,
    state: u64,
}

impl Sampler {
    /// Samples with this probability, a fixed-point number; above 1 counts as 1.
    pub fn new(probability: u32) -> Sampler {
        Sampler { probability: probability.min(ALWAYS), state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// Whether the next packet is in the sample.
    pub fn picks(&mut self) -> bool {
        if self.probability == ALWAYS {
            return true;
        }
        ((random::next_number(&mut self.state) >> 32) as u32 & (ALWAYS - 1)) < self.probability
    }

    /// The probability as the shortest decimal number that is read as the same.
    pub fn text(&self) -> String {
        fixed_point_text(self.probability.into(), SAMPLING_SHIFT)
    }
}

/// Replays the times between packets; the first packet is due at once.
pub(super) struct Pace {
    /// Percent of the original speed.
    percent: u64,
    /// The clock and the packet's timestamp when the first packet was due.
    start_ns: Option<(u64, u64)>,
}

impl Pace {
    /// With this percentage of the original speed.
    pub fn new(percent: u64) -> Pace {
        Pace { percent: percent.max(1), start_ns: None }
    }

    /// Whether a packet with that timestamp is due. If not, the worker is told when it is.
    pub fn is_due(&mut self, timestamp_ns: u64, work: &mut Work<'_>) -> bool {
        let (due_ns, now_ns) = (self.due_ns(timestamp_ns, work.now_ns()), work.now_ns());
        if due_ns > now_ns {
            work.wake_at(due_ns);
        }
        due_ns <= now_ns
    }

    /// When a packet with that timestamp is due.
    fn due_ns(&mut self, timestamp_ns: u64, now_ns: u64) -> u64 {
        let (clock_ns, first_ns) = *self.start_ns.get_or_insert((now_ns, timestamp_ns));
        let since_ns = u128::from(timestamp_ns.saturating_sub(first_ns)) * 100 / u128::from(self.percent);
        clock_ns.saturating_add(u64::try_from(since_ns).unwrap_or(u64::MAX))
    }

    /// Starts over with the next packet.
    pub fn reset(&mut self) {
        self.start_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_picks_about_as_often_as_it_is_told_and_says_so() {
        let mut half = Sampler::new(ALWAYS / 2);
        let picked = (0..10_000).filter(|_| half.picks()).count();
        assert!((4_500..5_500).contains(&picked), "{picked}");
        assert!((0..1_000).all(|_| Sampler::new(u32::MAX).picks()));
        assert!(!(0..1_000).any(|_| Sampler::new(0).picks()));
        let texts = [0, 26_843_546, ALWAYS / 2, ALWAYS].map(|probability| Sampler::new(probability).text());
        assert_eq!(texts, ["0", "0.1", "0.5", "1"]);
    }

    #[test]
    fn pace_keeps_distances_and_scales_them() {
        let mut pace = Pace::new(200);
        assert_eq!(pace.due_ns(5_000, 1_000_000), 1_000_000);
        assert_eq!(pace.due_ns(7_000, 1_000_999), 1_001_000);
        assert_eq!(pace.due_ns(4_000, 1_000_000), 1_000_000, "times may go back");
        pace.reset();
        assert_eq!(pace.due_ns(u64::MAX, 0), 0);
        assert_eq!(Pace::new(1).due_ns(0, 7), 7);
    }
}
