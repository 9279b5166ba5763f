//! Clocks: the clock of a run, and the processor's time stamp counter for figures in cycles.
//!
//! Only reports read the counter, and the packet path while probes are on ([`crate::profile`]).
#![expect(unsafe_code, reason = "reads the time stamp counter")]

use crate::virtual_clock::VirtualClock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long the counter is compared with the clock.
const CALIBRATION: Duration = Duration::from_millis(20);

/// The clock of a run.
#[derive(Clone)]
pub enum Clock {
    /// The machine's clock.
    Real {
        /// When the run started.
        start: Instant,
        /// The same moment in nanoseconds since the epoch.
        epoch_ns: u64,
    },
    /// A clock that a test or a replay sets.
    Manual(Arc<AtomicU64>),
    /// A clock that goes on when all workers are idle.
    Virtual(Arc<VirtualClock>),
}

impl Clock {
    /// The machine's clock, starting now.
    pub fn real() -> Clock {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock::Real { start: Instant::now(), epoch_ns: epoch.as_nanos() as u64 }
    }

    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Clock::Real { start, epoch_ns } => epoch_ns + start.elapsed().as_nanos() as u64,
            Clock::Manual(now) => now.load(Ordering::Relaxed),
            Clock::Virtual(clock) => clock.now_ns(),
        }
    }

    /// The virtual clock, if it is one.
    pub fn as_virtual(&self) -> Option<&Arc<VirtualClock>> {
        match self {
            Clock::Virtual(clock) => Some(clock),
            Clock::Real { .. } | Clock::Manual(_) => None,
        }
    }
}

/// Ticks of the time stamp counter in a nanosecond, measured once; `None` on machines without a counter.
pub fn cycles_per_ns() -> Option<f64> {
    static MEASURED: OnceLock<Option<f64>> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let (start, from) = (Instant::now(), ticks()?);
        while start.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        let to = ticks()?;
        Some((to - from) as f64 / start.elapsed().as_nanos() as f64)
    })
}

/// The counter's present value.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> Option<u64> {
    // SAFETY: every x86-64 processor has the counter, and Linux lets programs read it.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// `None`: this machine has no time stamp counter.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> Option<u64> {
    None
}
