//! The time stamp counter, and medians: for the examples that print cycles.
#![expect(unsafe_code, reason = "reads the time stamp counter")]

use std::time::{Duration, Instant};

/// The time stamp counter; nanoseconds where a processor has none that programs can read.
#[must_use]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC is part of the x86-64 baseline, reads a counter, and Linux lets programs use it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// How often the counter counts in a nanosecond, measured against the clock for 50 ms.
#[must_use]
pub fn per_ns() -> f64 {
    let (start, from) = (Instant::now(), now());
    while start.elapsed() < Duration::from_millis(50) {
        std::hint::spin_loop();
    }
    (now() - from) as f64 / start.elapsed().as_nanos() as f64
}

/// Median, first and ninth decile of at least one figure, which this sorts.
#[must_use]
pub fn deciles(figures: &mut [f64]) -> (f64, f64, f64) {
    figures.sort_by(f64::total_cmp);
    let at = |tenths: usize| figures[(figures.len() - 1) * tenths / 10];
    (at(5), at(1), at(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_advances_and_deciles_are_sorted() {
        let before = now();
        assert!(per_ns() > 0.0 && now() > before);
        let mut figures = Vec::from_iter((0..=10).rev().map(f64::from));
        assert_eq!(deciles(&mut figures), (5.0, 1.0, 9.0));
    }
}
