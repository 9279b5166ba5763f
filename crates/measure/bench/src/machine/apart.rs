//! Measures how far apart two cores are at the moment: the time that a cache line takes from one to the other
//! and back.
//!
//! On a physical machine this never changes. A hypervisor moves virtual cores, and the cost of a packet that
//! moves between two cores depends on whether they share a last-level cache. On an AMD EPYC a round trip
//! takes 135 ns or 570 ns, and a packet through an NF in a process 1.7 times as long. The guest has no other
//! way to find out.

use super::Machine;
use chain::Chain;
use runtime::running::pin;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Cores are far apart where a line takes this many times as long as it ever took between them. Between two
/// threads of one physical core it takes half as long as between neighbours: neighbours must not count as
/// far.
const FAR: f64 = 2.5;
/// How long a measurement waits for cores that are far apart.
pub const NEAR_IN: Duration = Duration::from_secs(1);
/// The rounds that are timed together, and the number of such batches. The fastest batch counts, in which
/// nothing else had one of the cores.
const ROUNDS: u64 = 20;
const BATCHES: usize = 100;
/// The longest time of a measurement, for busy cores.
const PATIENCE: Duration = Duration::from_millis(30);
/// Reads of the line between two reads of the clock.
const SPINS: u32 = 4096;

/// The shortest time that a line took for each pair of cores, in nanoseconds.
static NEAREST: Mutex<BTreeMap<(usize, usize), f64>> = Mutex::new(BTreeMap::new());

/// Two cores that process the same packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Apart(Option<(usize, usize)>);

impl Apart {
    /// The first worker's core, and the first other core that its packets move to: another worker's, or an
    /// NF's. A chain on one core has no such pair.
    pub fn of(packet_cores: &[usize], nf_cores: &[usize]) -> Apart {
        let Some(first) = packet_cores.first() else { return Apart::default() };
        let others = packet_cores.iter().skip(1).chain(nf_cores);
        Apart(others.copied().find(|core| core != first).map(|other| (*first, other)))
    }

    /// The pair of cores of a chain. NFs without `cores` may be on any core.
    pub fn of_chain(chain: &Chain, packet_cores: &[usize]) -> Apart {
        let said = chain.processes.iter().flat_map(|nf| nf.terms.cores.iter().copied());
        let nf_cores: Vec<usize> = match chain.processes.is_empty() {
            true => vec![],
            false => said.chain(Machine::look().cores).collect(),
        };
        Apart::of(packet_cores, &nf_cores)
    }

    /// Whether the cores are further apart now than at other times.
    pub fn is_far(self) -> bool {
        let Some((one, other)) = self.0 else { return false };
        let Some(now) = round_trip_ns(one, other) else { return false };
        judge(&mut NEAREST.lock().unwrap_or_else(PoisonError::into_inner), (one, other), now)
    }

    /// Waits up to `most` until the cores are near; returns whether they are.
    pub fn await_near(self, most: Duration) -> bool {
        let end = Instant::now() + most;
        loop {
            match self.is_far() {
                false => return true,
                true if Instant::now() > end => return false,
                // No sleep: the hypervisor may move an idle core anywhere when it wakes.
                true => {}
            }
        }
    }
}

/// Whether `now` is far for two cores; updates their shortest time.
fn judge(nearest: &mut BTreeMap<(usize, usize), f64>, cores: (usize, usize), now: f64) -> bool {
    let least = nearest.entry(cores).or_insert(now);
    *least = least.min(now);
    now > *least * FAR
}

/// A cache line, aligned to two lines because CPUs fetch them in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

/// The time that a line takes from one core to another and back, in nanoseconds. `None` where threads cannot
/// be pinned to the cores, or never run on both at the same time.
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

/// Waits until the line has a number other than `seen`.
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
            eprintln!("SKIP: there is one core here, and this needs two");
            return;
        };
        // Other processes may have the cores all the time.
        let Some(ns) = (0..20).find_map(|_| round_trip_ns(one, other)) else {
            eprintln!("SKIP: both cores were never there at the same time: run it while nothing else runs");
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
