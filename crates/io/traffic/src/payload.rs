//! The content of payloads.

use std::fmt;
use std::str::FromStr;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::TrafficError;
use crate::random::mix;
use crate::size::LONGEST_FRAME_BYTES;

/// The content of payloads: `zero`, `counting`, `random`, or a byte such as `0xA5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PayloadFill {
    /// One byte repeated.
    Byte(u8),
    /// 0, 1, 2, ... 255, 0, ...
    Counting,
    /// Random bytes, which cannot be compressed; different in every frame.
    Random,
}

impl FromStr for PayloadFill {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        match text.trim() {
            "zero" => Ok(Self::Byte(0)),
            "counting" => Ok(Self::Counting),
            "random" => Ok(Self::Random),
            other => other
                .strip_prefix("0x")
                .filter(|digits| !digits.starts_with('+'))
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                .map(Self::Byte)
                .ok_or_else(|| {
                    let remedy = "write zero, counting, random or a byte as in 0xA5";
                    TrafficError::setting("payload", text, remedy)
                }),
        }
    }
}

impl fmt::Display for PayloadFill {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(0) => out.write_str("zero"),
            Self::Byte(byte) => write!(out, "{byte:#04x}"),
            Self::Counting => out.write_str("counting"),
            Self::Random => out.write_str("random"),
        }
    }
}

crate::text::text_serde!(PayloadFill);

/// Generates the payloads of consecutive frames.
#[derive(Debug, Clone)]
pub(crate) struct PayloadBuffer {
    fill: PayloadFill,
    seed: u64,
    bytes: Vec<u8>,
}

impl PayloadBuffer {
    pub(crate) fn new(fill: PayloadFill, seed: u64) -> Self {
        let bytes = (0..LONGEST_FRAME_BYTES).map(|place| match fill {
            PayloadFill::Byte(byte) => byte,
            PayloadFill::Counting => place as u8,
            PayloadFill::Random => 0,
        });
        Self { fill, seed: mix(seed), bytes: bytes.collect() }
    }

    /// Payload of frame `index`, `len_bytes` long (at most the longest frame).
    pub(crate) fn get(&mut self, index: u64, len_bytes: usize) -> &[u8] {
        let len_bytes = len_bytes.min(self.bytes.len());
        let Some(bytes) = self.bytes.get_mut(..len_bytes) else {
            return &[];
        };
        if self.fill == PayloadFill::Random {
            // Each frame has a stream of its own, so that its bytes do not depend on earlier sizes.
            Pcg64Mcg::seed_from_u64(self.seed ^ mix(index)).fill_bytes(bytes);
        }
        bytes
    }
}
