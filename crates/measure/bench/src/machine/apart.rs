//! How far apart two cores are at this moment: how long a cache line takes from one to the other and back.
//!
//! On a machine of one's own that never changes. A hypervisor moves virtual cores about, and whether two of them share a
//! last-level cache decides what a packet costs that goes from one to the other: on an AMD EPYC 135 ns there and back,
//! or 570 ns, and 1.7 times as much for a packet through an NF in a process. Nothing in the guest tells it but this.

use super::Machine;
use chain::Chain;
use runtime::running::pin;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Cores are far apart where a line takes so many times as long as it ever took between them. Where two virtual cores
/// are threads of one physical core it takes half as long as on neighbours: that is not far yet.
const FAR: f64 = 2.5;
/// How long a measurement waits for cores that are far apart.
pub const NEAR_IN: Duration = Duration::from_secs(1);
/// Rounds that are timed together, and how often: the fastest counts, in which nothing else had one of the cores.
const ROUNDS: u64 = 20;
const BATCHES: usize = 100;
/// How long all of it may take, on cores that are busy.
const PATIENCE: Duration = Duration::from_millis(30);
/// Looks at a line between two looks at the clock.
const SPINS: u32 = 4096;

/// What lines have taken at the least, by cores, in nanoseconds.
static NEAREST: Mutex<BTreeMap<(usize, usize), f64>> = Mutex::new(BTreeMap::new());

/// Two cores that work on the same packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Apart(Option<(usize, usize)>);

impl Apart {
    /// The first packet thread's core and the first other one that its packets go to: another packet thread's, or an
    /// NF's. Of a chain on one core there is nothing to tell.
    pub fn of(packet_cores: &[usize], nf_cores: &[usize]) -> Apart {
        let Some(first) = packet_cores.first() else { return Apart::default() };
        let others = packet_cores.iter().skip(1).chain(nf_cores);
        Apart(others.copied().find(|core| core != first).map(|other| (*first, other)))
    }

    /// The same of a chain. NFs whose cores are not said may be on any.
    pub fn of_chain(chain: &Chain, packet_cores: &[usize]) -> Apart {
        let said = chain.processes.iter().flat_map(|nf| nf.terms.cores.iter().copied());
        let nf_cores: Vec<usize> = match chain.processes.is_empty() {
            true => vec![],
            false => said.chain(Machine::look().cores).collect(),
        };
        Apart::of(packet_cores, &nf_cores)
    }

    /// Whether they are further apart now than they were at other times.
    pub fn is_far(self) -> bool {
        let Some((one, other)) = self.0 else { return false };
        let Some(now) = round_trip_ns(one, other) else { return false };
        judge(&mut NEAREST.lock().unwrap_or_else(PoisonError::into_inner), (one, other), now)
    }

    /// Waits until they are near, for so long at most; whether they are.
    pub fn await_near(self, most: Duration) -> bool {
        let end = Instant::now() + most;
        loop {
            match self.is_far() {
                false => return true,
                true if Instant::now() > end => return false,
                // Cores that have nothing to do are put anywhere when they wake: they are kept busy.
                true => {}
            }
        }
    }
}

/// Whether that is far for two cores, of which more is known then.
fn judge(nearest: &mut BTreeMap<(usize, usize), f64>, cores: (usize, usize), now: f64) -> bool {
    let least = nearest.entry(cores).or_insert(now);
    *least = least.min(now);
    now > *least * FAR
}

/// A line of its own: neighbours are fetched in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

/// How long a line takes from one core to another and back, in nanoseconds. `None` where threads cannot be pinned there,
/// or are never there at the same time.
pub fn round_trip_ns(one: usize, other: usize) -> Option<f64> {
    let (there, back, over) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)), AtomicBool::new(false));
    let end = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if pin(other).is_err() {
                over.store(true, Ordering::Relaxed);
                return;
            }
            let mut seen = 0;
            while let Some(number) = next(&there.0, seen, &over, end) {
                back.0.store(number, Ordering::Release);
                seen = number;
            }
        });
        let timing = scope.spawn(|| {
            let mut least: Option<f64> = None;
            let mut number = 0;
            'all: for _ in 0..if pin(one).is_ok() { BATCHES } else { 0 } {
                let start = Instant::now();
                for _ in 0..ROUNDS {
                    number += 1;
                    there.0.store(number, Ordering::Release);
                    if next(&back.0, number - 1, &over, end).is_none() {
                        break 'all;
                    }
                }
                let ns = start.elapsed().as_nanos() as f64 / ROUNDS as f64;
                least = Some(least.map_or(ns, |least| least.min(ns)));
            }
            over.store(true, Ordering::Relaxed);
            least
        });
        timing.join().ok().flatten()
    })
}

/// Waits for another number than the one that was seen.
fn next(line: &AtomicU64, seen: u64, over: &AtomicBool, end: Instant) -> Option<u64> {
    let mut spins = 0u32;
    loop {
        let number = line.load(Ordering::Acquire);
        if number != seen {
            return Some(number);
        }
        spins += 1;
        if spins.is_multiple_of(SPINS) && (over.load(Ordering::Relaxed) || Instant::now() > end) {
            return None;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_those_that_share_packets() {
        assert_eq!(Apart::of(&[3], &[]), Apart(None));
        assert_eq!(Apart::of(&[3, 2], &[]), Apart(Some((3, 2))));
        assert_eq!(Apart::of(&[3], &[3, 1]), Apart(Some((3, 1))));
        assert_eq!(Apart::of(&[3, 3], &[3]), Apart(None), "one core is never far from itself");
        assert!(!Apart(None).is_far() && Apart(None).await_near(Duration::ZERO));
    }

    #[test]
    fn a_line_takes_its_time() {
        let cores = crate::machine::Machine::look().cores;
        let [one, other, ..] = cores[..] else {
            eprintln!("SKIP: there is one core here");
            return;
        };
        // Others may have the cores all the time.
        let Some(ns) = (0..20).find_map(|_| round_trip_ns(one, other)) else {
            eprintln!("SKIP: both cores are never there at the same time");
            return;
        };
        assert!(ns > 5.0 && ns < 1e6, "{ns}");
        assert_eq!(round_trip_ns(one, 1 << 20), None, "no such core");
    }

    #[test]
    fn what_takes_much_longer_than_ever_is_far() {
        let mut nearest = BTreeMap::new();
        let mut far = |ns: f64| judge(&mut nearest, (0, 1), ns);
        assert_eq!(
            [570.0, 135.0, 150.0, 570.0, 67.0, 135.0].map(&mut far),
            [false, false, false, true, false, false]
        );
        assert!(!judge(&mut nearest, (1, 0), 570.0), "other cores are another matter");
    }
}
