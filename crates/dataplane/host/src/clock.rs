//! The processor's time stamp counter, for figures in cycles.
//!
//! Only reports read it, and the packet path while it has probes ([`crate::probe`]).
#![expect(unsafe_code, reason = "reads the time stamp counter")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the counter is compared with the clock.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Ticks of the time stamp counter in a nanosecond, measured once; `None` on machines without one.
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

/// The counter now.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> Option<u64> {
    // SAFETY: every x86-64 processor has the counter, and Linux lets programs read it.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The counter now.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> Option<u64> {
    None
}
