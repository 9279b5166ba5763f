//! The sizes of frames: one size, a list, a range, weights, IMIX, the data-centre mix.
//!
//! A size is that of the whole Ethernet frame, with VLAN tags, without preamble and gap. [`FcsCounting`]
//! states whether it counts the four bytes of FCS; the named mixes always count them, as their sources do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::TrafficError;
use crate::random::Random;

/// Bytes of the frame check sequence, which captures and ports do not contain.
pub const FCS_BYTES: u16 = 4;
/// The longest generated frame, counting FCS: 9,216 bytes of frame and its FCS.
pub const LONGEST_FRAME_BYTES: u16 = 9_220;

/// Whether stated sizes count the four bytes of FCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FcsCounting {
    /// Counted (RFC 2544 section 9, RFC 6985): a "64-byte frame" is 60 bytes in a capture.
    #[default]
    Counted,
    /// Not counted: 64 is 64 bytes in a capture.
    NotCounted,
}

/// The sizes of frames. Written as text:
///
/// | text | meaning |
/// |---|---|
/// | `64` | every frame |
/// | `64,128,256` | in turn, repeatedly |
/// | `64-1518` | uniformly distributed |
/// | `64:7,594:4,1518:1` | at random by weight |
/// | `genome:aaafg` | in turn, an RFC 6985 IMIX genome |
/// | `imix` | the simple IMIX, 64:7,594:4,1518:1 |
/// | `data-centre` | the mix of a web server cluster, median near 120 bytes |
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SizeMix {
    /// Frames of these sizes in turn; one entry is the fixed size.
    InTurn(Vec<u16>),
    /// Uniformly distributed, both ends included.
    Uniform {
        /// Smallest size.
        min_bytes: u16,
        /// Largest size.
        max_bytes: u16,
    },
    /// At random: (size, weight).
    Weighted(Vec<(u16, u32)>),
    /// The simple IMIX: 7 of 64, 4 of 594, 1 of 1518 bytes, FCS counted.
    Imix,
    /// The data-centre mix, see [`DATA_CENTRE`].
    DataCentre,
}

const IMIX: [(u16, u32); 3] = [(64, 7), (594, 4), (1518, 1)];

/// The data-centre mix as a cumulative distribution: (size in bytes counting FCS, frames per thousand up to
/// it), linear between the points.
///
/// Niu et al., "Benchmarking NFV Software Dataplanes", section 4.1, publish three figures of the distribution
/// that they sampled from a web server cluster: the median is about 120 bytes, most frames are shorter than
/// 256 bytes, and 10 Gb/s of it were on average 8.662 Mpps. With 20 bytes of preamble and gap that leaves
/// 124.3 bytes a frame. The distribution here is this project's own and matches these three: its median is
/// 120, 99.4 per cent are under 256, its mean is 124.3.
pub const DATA_CENTRE: [(u16, u32); 8] =
    [(64, 60), (80, 180), (100, 340), (120, 500), (140, 770), (180, 940), (256, 994), (1518, 1000)];

impl SizeMix {
    /// A mix with the single size `bytes`.
    pub fn fixed(bytes: u16) -> Self {
        Self::InTurn(vec![bytes])
    }

    /// Draws the size of frame `index`, without FCS.
    pub(crate) fn draw(&self, fcs: FcsCounting, index: u64, random: &mut Random) -> u16 {
        let named = FcsCounting::Counted;
        let (size, fcs) = match self {
            Self::InTurn(sizes) => {
                let turn = (index % sizes.len().max(1) as u64) as usize;
                (sizes.get(turn).copied().unwrap_or_default(), fcs)
            }
            Self::Uniform { min_bytes, max_bytes } => {
                (random.between((*min_bytes).into(), (*max_bytes).into()) as u16, fcs)
            }
            Self::Weighted(entries) => (draw_weighted(entries, random), fcs),
            Self::Imix => (draw_weighted(&IMIX, random), named),
            Self::DataCentre => (draw_curve(&DATA_CENTRE, random), named),
        };
        match fcs {
            FcsCounting::Counted => size.saturating_sub(FCS_BYTES),
            FcsCounting::NotCounted => size,
        }
    }

    /// Checks the constraints of the text form, for a mix that code constructs.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        let refuse = |reason| Err(TrafficError::setting("frame sizes", &self.to_string(), reason));
        self.mistake().map_or(Ok(()), refuse)
    }

    fn mistake(&self) -> Option<&'static str> {
        let sizes: Vec<u16> = match self {
            Self::InTurn(sizes) if sizes.is_empty() => return Some("the list is empty"),
            Self::InTurn(sizes) => sizes.clone(),
            Self::Uniform { min_bytes, max_bytes } if min_bytes > max_bytes => {
                return Some("the range runs backwards; write the smaller size first");
            }
            Self::Uniform { min_bytes, max_bytes } => vec![*min_bytes, *max_bytes],
            Self::Weighted(entries) if entries.iter().all(|(_, weight)| *weight == 0) => {
                return Some("all weights are zero");
            }
            Self::Weighted(entries) => entries.iter().map(|(size, _)| *size).collect(),
            Self::Imix | Self::DataCentre => return None,
        };
        let is_size = |size: &u16| (1..=LONGEST_FRAME_BYTES).contains(size);
        (!sizes.iter().all(is_size)).then_some("a frame has 1 to 9220 bytes")
    }
}

fn draw_weighted(entries: &[(u16, u32)], random: &mut Random) -> u16 {
    let total = entries.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let mut ticket = random.below(total);
    for &(size, weight) in entries {
        if ticket < u64::from(weight) {
            return size;
        }
        ticket -= u64::from(weight);
    }
    0
}

fn draw_curve(curve: &[(u16, u32)], random: &mut Random) -> u16 {
    // Steps of a millionth are fine enough that interpolation reaches every size between two points.
    let ticket = random.below(1_000_000);
    let (mut low_size, mut low) = (0u64, 0u64);
    for &(size, thousandths) in curve {
        let (size, high) = (u64::from(size), u64::from(thousandths) * 1_000);
        if ticket < high {
            // All frames up to the first point have its size, which is the smallest one.
            if low == 0 {
                return size as u16;
            }
            let step = (ticket - low) * (size - low_size) / (high - low);
            return (low_size + 1 + step).min(size) as u16;
        }
        (low_size, low) = (size, high);
    }
    low_size as u16
}

/// The sizes of an RFC 6985 genome (section 4, table 1), without `z` (the MTU of a path that is
/// not known here) and `j` (16,000 bytes, more than one frame may have here).
fn genome_size(letter: char) -> Option<u16> {
    let sizes = [64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000];
    ('a'..='i').zip(sizes).find(|(known, _)| *known == letter).map(|(_, size)| size)
}

impl FromStr for SizeMix {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let refuse = |reason: &str| TrafficError::setting("frame sizes", text, reason);
        let size = |part: &str| {
            part.trim().parse::<u16>().map_err(|_| refuse("a size is a number of bytes from 1 to 9220"))
        };
        let trimmed = text.trim();
        let entry = |part: &str| {
            let entry = part.split_once(':');
            let (bytes, weight) = entry.ok_or_else(|| refuse("every size needs its weight, as in 64:7"))?;
            let weight = weight.trim().parse::<u32>().map_err(|_| refuse("a weight is a whole number"))?;
            Ok::<_, TrafficError>((size(bytes)?, weight))
        };
        let mix = if trimmed == "imix" {
            Self::Imix
        } else if ["data-centre", "data-center"].contains(&trimmed) {
            Self::DataCentre
        } else if let Some(genome) = trimmed.strip_prefix("genome:") {
            let sizes = genome.chars().map(genome_size).collect::<Option<Vec<_>>>();
            Self::InTurn(sizes.ok_or_else(|| refuse("a genome is made of the letters a to i"))?)
        } else if let Some((low, high)) = trimmed.split_once('-') {
            Self::Uniform { min_bytes: size(low)?, max_bytes: size(high)? }
        } else if trimmed.contains(':') {
            Self::Weighted(trimmed.split(',').map(entry).collect::<Result<_, _>>()?)
        } else {
            Self::InTurn(trimmed.split(',').map(size).collect::<Result<_, _>>()?)
        };
        match mix.mistake() {
            None => Ok(mix),
            Some(reason) => Err(refuse(reason)),
        }
    }
}

impl fmt::Display for SizeMix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InTurn(sizes) => {
                let words: Vec<_> = sizes.iter().map(u16::to_string).collect();
                out.write_str(&words.join(","))
            }
            Self::Uniform { min_bytes, max_bytes } => write!(out, "{min_bytes}-{max_bytes}"),
            Self::Weighted(entries) => {
                let words: Vec<_> = entries.iter().map(|(size, weight)| format!("{size}:{weight}")).collect();
                out.write_str(&words.join(","))
            }
            Self::Imix => out.write_str("imix"),
            Self::DataCentre => out.write_str("data-centre"),
        }
    }
}

crate::text::text_serde!(SizeMix);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use proptest::prelude::*;

    fn drawn(text: &str, fcs: FcsCounting, count: u64) -> Vec<u16> {
        let mix: SizeMix = text.parse().expect("valid sizes");
        let mut random = Random::new(7, Purpose::Sizes);
        (0..count).map(|index| mix.draw(fcs, index, &mut random)).collect()
    }

    #[test]
    fn fixed_size_leaves_out_the_fcs() {
        assert_eq!(drawn("64", FcsCounting::Counted, 2), [60, 60]);
        assert_eq!(drawn("64", FcsCounting::NotCounted, 2), [64, 64]);
    }

    #[test]
    fn lists_and_genomes_come_in_turn() {
        assert_eq!(drawn("64,128", FcsCounting::NotCounted, 3), [64, 128, 64],);
        assert_eq!(drawn("genome:aag", FcsCounting::NotCounted, 4), [64, 64, 1518, 64],);
    }

    #[test]
    fn imix_has_its_proportions() {
        let sizes = drawn("imix", FcsCounting::NotCounted, 120_000);
        let share = |bytes| sizes.iter().filter(|s| **s == bytes).count() as f64 / 10_000.0;
        assert!((share(60) - 7.0).abs() < 0.1, "{}", share(60));
        assert!((share(590) - 4.0).abs() < 0.1, "{}", share(590));
        assert!((share(1514) - 1.0).abs() < 0.1, "{}", share(1514));
    }

    #[test]
    fn data_centre_mix_meets_the_paper() {
        let mut sizes = drawn("data-centre", FcsCounting::Counted, 200_000);
        sizes.sort_unstable();
        let with_fcs = |size: u16| f64::from(size) + 4.0;
        let median = with_fcs(sizes[100_000]);
        assert!((median - 120.0).abs() <= 1.0, "median {median}");
        let short = sizes.iter().filter(|s| with_fcs(**s) < 256.0).count();
        assert!(short > 198_000, "{short} of 200,000 under 256 bytes");
        let mean = sizes.iter().map(|s| with_fcs(*s)).sum::<f64>() / 200_000.0;
        // 10 Gb/s at 8.662 Mpps, without preamble and gap: 124.3 bytes.
        assert!((mean - 124.3).abs() < 1.0, "mean {mean}");
        assert_eq!(sizes.first(), Some(&60));
        assert!(sizes.last() <= Some(&1514));
    }

    #[test]
    fn uniform_reaches_both_ends() {
        let sizes = drawn("64-66", FcsCounting::NotCounted, 100);
        for size in [64, 65, 66] {
            assert!(sizes.contains(&size));
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "",
            "0",
            "9221",
            "128-64",
            "64:0",
            "64:1,65",
            "genome:",
            "genome:az",
            "x",
            "-",
            "64,",
            "64--65",
            "imx",
            "70000",
        ] {
            assert!(text.parse::<SizeMix>().is_err(), "{text} was accepted");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<SizeMix>();
        }

        #[test]
        fn near_misses_never_panic_and_print_back(text in "(genome:)?[0-9a-j:,-]{0,16}") {
            if let Ok(mix) = text.parse::<SizeMix>() {
                prop_assert_eq!(mix.to_string().parse::<SizeMix>().expect("prints back"), mix.clone());
                let mut random = Random::new(1, Purpose::Sizes);
                for index in 0..20 {
                    let size = mix.draw(FcsCounting::NotCounted, index, &mut random);
                    prop_assert!((1..=LONGEST_FRAME_BYTES).contains(&size));
                }
            }
        }
    }
}
