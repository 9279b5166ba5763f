//! A summary of generated frames: number, bytes, sizes, flows.

use crate::generator::FrameMeta;
use crate::size::{FCS_BYTES, LONGEST_FRAME_BYTES};

/// A summary of a sequence of frames. Sizes exclude FCS unless a name states otherwise.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// Number of frames.
    pub frames: u64,
    /// Sum of all lengths.
    pub bytes: u64,
    /// Frames whose size was raised to the length of their headers.
    pub raised: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    by_size: Vec<u64>,
    /// A bit for each flow that occurred.
    seen: Vec<u64>,
}

/// Upper limits of the classes of [`Summary::classes`], counting FCS, as in RFC 2819.
const CLASS_ENDS: [usize; 7] = [64, 127, 255, 511, 1023, 1518, LONGEST_FRAME_BYTES as usize];

impl Summary {
    /// Counts one frame.
    pub fn count(&mut self, frame: &FrameMeta) {
        self.frames += 1;
        self.bytes += frame.len_bytes as u64;
        self.raised += u64::from(frame.raised);
        self.first_ns.get_or_insert(frame.timestamp_ns);
        self.last_ns = frame.timestamp_ns;
        if self.by_size.len() <= frame.len_bytes {
            self.by_size.resize(frame.len_bytes + 1, 0);
        }
        if let Some(count) = self.by_size.get_mut(frame.len_bytes) {
            *count += 1;
        }
        let word = (frame.flow / 64) as usize;
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if let Some(bits) = self.seen.get_mut(word) {
            *bits |= 1 << (frame.flow % 64);
        }
    }

    /// Flows of at least one frame.
    pub fn flows(&self) -> u64 {
        self.seen.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// The time from the first frame to the last.
    pub fn duration_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns.unwrap_or(0))
    }

    /// Shortest, median and longest frame. The median is the lower of the two middle ones.
    pub fn min_median_max_bytes(&self) -> Option<(usize, usize, usize)> {
        let min = self.by_size.iter().position(|count| *count > 0)?;
        let max = self.by_size.iter().rposition(|count| *count > 0)?;
        let mut below = 0;
        let median = self.by_size.iter().position(|count| {
            below += count;
            below >= self.frames.div_ceil(2)
        })?;
        Some((min, median, max))
    }

    /// Mean length; 0 without frames.
    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.frames.max(1) as f64
    }

    /// Frames by size class: (smallest and largest size counting FCS, frames).
    pub fn classes(&self) -> Vec<(usize, usize, u64)> {
        let mut classes = Vec::new();
        let mut start = 0;
        for end in CLASS_ENDS {
            let sizes = (start..=end).filter_map(|size| size.checked_sub(FCS_BYTES.into()));
            let frames = sizes.filter_map(|size| self.by_size.get(size)).sum();
            classes.push((start, end, frames));
            start = end + 1;
        }
        classes
    }
}
