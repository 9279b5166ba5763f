//! The operations of the walk that use vector registers. The only file of the classifier with unsafe
//! code.
//!
//! A value of [`Avx2`] or [`Avx512`] exists only where the processor has those instructions
//! ([`Avx2::detect`], [`Avx512::detect`]), so its methods are safe to call; they compile to single
//! instructions only when inlined into a function that enables the feature, which is what
//! [`Lanes::enter`] is for.
#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "vector intrinsics load through pointers"))]

use super::row::{BLOCK, Key, Lane, Row, SEPARATORS};

/// The operations that the walk needs from the processor.
pub(super) trait Lanes: Copy {
    /// Whether a rule matches a key.
    fn row_matches(self, key: &Key, row: &Row) -> bool;
    /// Number of separators below the value.
    fn rank(self, value: u32, separators: &[u32; SEPARATORS]) -> u32;
    /// One bit for each rule of a block (given by its lanes) that matches the key.
    fn block_matches(self, key: &Key, block: &[Lane]) -> u32;
    /// Runs the job compiled for these instructions.
    fn enter<J: Job>(self, job: J);
}

/// A job for [`Lanes::enter`]; `run` must be `#[inline(always)]`.
pub(super) trait Job {
    /// Runs the job with these operations.
    fn run<L: Lanes>(self, lanes: L);
}

/// Plain Rust, for every machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    fn row_matches(self, key: &Key, row: &Row) -> bool {
        let mut out = 0u32;
        for ((&value, &lo), &span) in key.0.iter().zip(&row.lo).zip(&row.span) {
            out |= u32::from(value.wrapping_sub(lo) > span);
        }
        out == 0
    }

    #[inline(always)]
    fn rank(self, value: u32, separators: &[u32; SEPARATORS]) -> u32 {
        separators.iter().map(|&last| u32::from(last < value)).sum()
    }

    #[inline(always)]
    fn block_matches(self, key: &Key, block: &[Lane]) -> u32 {
        let mut hits = u32::MAX >> (32 - BLOCK);
        for (lane, &value) in block.iter().zip(&key.0) {
            let mut mask = 0;
            for (bit, (&lo, &span)) in lane.lo.iter().zip(&lane.span).enumerate() {
                mask |= u32::from(value.wrapping_sub(lo) <= span) << bit;
            }
            hits &= mask;
        }
        hits
    }

    #[inline(always)]
    fn enter<J: Job>(self, job: J) {
        job.run(self);
    }
}

/// Prefetches `items[index]`; harmless for any index.
#[inline(always)]
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    crate::prefetch::prefetch(items.as_ptr().wrapping_add(index));
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::rule::MAX_DIMS;
    use super::{BLOCK, Job, Key, Lane, Lanes, Row, SEPARATORS};
    use std::arch::x86_64::*;

    /// 256-bit vectors.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Avx2(());

    /// 512-bit vectors with mask registers.
    #[derive(Debug, Clone, Copy)]
    pub(in super::super) struct Avx512(());

    impl Avx2 {
        /// The token, where the processor has AVX2 and BMI.
        pub(in super::super) fn detect() -> Option<Self> {
            (is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt"))
            .then_some(Self(()))
        }
    }

    impl Avx512 {
        /// The token, where the processor has AVX2, BMI and AVX-512 F and VL.
        pub(in super::super) fn detect() -> Option<Self> {
            Avx2::detect()?;
            (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")).then_some(Self(()))
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn run_avx2<J: Job>(token: Avx2, job: J) {
        job.run(token);
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512vl")]
    fn run_avx512<J: Job>(token: Avx512, job: J) {
        job.run(token);
    }

    /// The vector of eight lanes.
    ///
    /// # Safety
    ///
    /// The processor has AVX2.
    #[inline(always)]
    unsafe fn vector(lanes: &[u32; MAX_DIMS]) -> __m256i {
        // SAFETY: passed on to the caller; the array is 32 bytes, and the load is unaligned.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    impl Lanes for Avx2 {
        #[inline(always)]
        fn row_matches(self, key: &Key, row: &Row) -> bool {
            // SAFETY: the token proves AVX2.
            unsafe {
                let (key, lo, span) = (vector(&key.0), vector(&row.lo), vector(&row.span));
                let offset = _mm256_sub_epi32(key, lo);
                let inside = _mm256_cmpeq_epi32(_mm256_min_epu32(offset, span), offset);
                _mm256_movemask_epi8(inside) == -1
            }
        }

        #[inline(always)]
        fn rank(self, value: u32, separators: &[u32; SEPARATORS]) -> u32 {
            // SAFETY: the token proves AVX2 and popcnt; the array is 64 bytes, read as two halves.
            unsafe {
                let value = _mm256_set1_epi32(value as i32);
                let low = _mm256_loadu_si256(separators.as_ptr().cast());
                let high = _mm256_loadu_si256(separators.as_ptr().add(8).cast());
                let low = _mm256_cmpeq_epi32(_mm256_max_epu32(low, value), low);
                let high = _mm256_cmpeq_epi32(_mm256_max_epu32(high, value), high);
                let low = _mm256_movemask_ps(_mm256_castsi256_ps(low)) as u32;
                let high = _mm256_movemask_ps(_mm256_castsi256_ps(high)) as u32;
                SEPARATORS as u32 - (low | high << 8).count_ones()
            }
        }

        #[inline(always)]
        fn block_matches(self, key: &Key, block: &[Lane]) -> u32 {
            const { assert!(BLOCK == 16) };
            // SAFETY: the token proves AVX2; each lane array is 64 bytes, read as two halves.
            unsafe {
                let mut all_low = _mm256_set1_epi32(-1);
                let mut all_high = all_low;
                for (lane, &value) in block.iter().zip(&key.0) {
                    let value = _mm256_set1_epi32(value as i32);
                    let low = _mm256_sub_epi32(value, _mm256_loadu_si256(lane.lo.as_ptr().cast()));
                    let high = _mm256_sub_epi32(value, _mm256_loadu_si256(lane.lo.as_ptr().add(8).cast()));
                    let span_low = _mm256_loadu_si256(lane.span.as_ptr().cast());
                    let span_high = _mm256_loadu_si256(lane.span.as_ptr().add(8).cast());
                    let low = _mm256_cmpeq_epi32(_mm256_min_epu32(low, span_low), low);
                    let high = _mm256_cmpeq_epi32(_mm256_min_epu32(high, span_high), high);
                    all_low = _mm256_and_si256(all_low, low);
                    all_high = _mm256_and_si256(all_high, high);
                }
                let low = _mm256_movemask_ps(_mm256_castsi256_ps(all_low)) as u32;
                let high = _mm256_movemask_ps(_mm256_castsi256_ps(all_high)) as u32;
                low | high << 8
            }
        }

        #[inline(always)]
        fn enter<J: Job>(self, job: J) {
            // SAFETY: the token proves the features that the function enables.
            unsafe { run_avx2(self, job) }
        }
    }

    impl Lanes for Avx512 {
        #[inline(always)]
        fn row_matches(self, key: &Key, row: &Row) -> bool {
            // SAFETY: the token proves AVX2 and AVX-512 F and VL.
            unsafe {
                let (key, lo, span) = (vector(&key.0), vector(&row.lo), vector(&row.span));
                _mm256_cmpgt_epu32_mask(_mm256_sub_epi32(key, lo), span) == 0
            }
        }

        #[inline(always)]
        fn rank(self, value: u32, separators: &[u32; SEPARATORS]) -> u32 {
            // SAFETY: the token proves AVX-512 F; the array is 64 bytes.
            unsafe {
                let value = _mm512_set1_epi32(value as i32);
                let separators = _mm512_loadu_si512(separators.as_ptr().cast());
                u32::from(_mm512_cmplt_epu32_mask(separators, value)).count_ones()
            }
        }

        #[inline(always)]
        fn block_matches(self, key: &Key, block: &[Lane]) -> u32 {
            const { assert!(BLOCK == 16) };
            // SAFETY: the token proves AVX-512 F; each lane array is 64 bytes.
            unsafe {
                let mut hits: __mmask16 = !0;
                for (lane, &value) in block.iter().zip(&key.0) {
                    let value = _mm512_set1_epi32(value as i32);
                    let offset = _mm512_sub_epi32(value, _mm512_loadu_si512(lane.lo.as_ptr().cast()));
                    let span = _mm512_loadu_si512(lane.span.as_ptr().cast());
                    hits = _mm512_mask_cmple_epu32_mask(hits, offset, span);
                }
                u32::from(hits)
            }
        }

        #[inline(always)]
        fn enter<J: Job>(self, job: J) {
            // SAFETY: the token proves the features that the function enables.
            unsafe { run_avx512(self, job) }
        }
    }
}
