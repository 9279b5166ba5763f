//! Rates as users write them (`5Mpps`, `10Gbps`), and times as they are shown (`200 µs`).

use crate::BenchError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of preamble, start-of-frame delimiter and inter-frame gap of each Ethernet frame on the wire (IEEE
/// 802.3, RFC 2544).
pub const WIRE_BYTES: f64 = 20.0;

/// A rate of traffic.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Frames a second.
    Frames(f64),
    /// Bits a second on the wire: frames with FCS, preamble and gap.
    Bits(f64),
}

impl Rate {
    /// The rate in frames a second, for frames of `mean_bytes` on average, with FCS.
    pub fn frames(self, mean_bytes: f64) -> f64 {
        match self {
            Rate::Frames(frames) => frames,
            Rate::Bits(bits) => bits / ((mean_bytes + WIRE_BYTES) * 8.0),
        }
    }
}

/// The bits a second that a frame rate takes on the wire.
pub fn wire_bits(frames: f64, mean_bytes: f64) -> f64 {
    frames * (mean_bytes + WIRE_BYTES) * 8.0
}

/// Splits a text into a positive number and the rest.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text[..end].parse::<f64>().ok()?;
    (number > 0.0 && number.is_finite()).then(|| (number, text[end..].trim()))
}

/// The factor of a unit's prefix; `None` for an unknown prefix.
fn scale(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return None,
    })
}

impl FromStr for Rate {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Rate, BenchError> {
        let refuse = |reason: &str| BenchError::setting("rate", text, reason);
        let form =
            "write frames a second as in `5Mpps` or `500kpps`, or bits a second on the wire as in `10Gbps`";
        let (number, unit) = split(text).ok_or_else(|| refuse(form))?;
        let lower = unit.to_ascii_lowercase();
        let (make, prefix): (fn(f64) -> Rate, &str) = match () {
            () if lower.ends_with("pps") => (Rate::Frames, &lower[..lower.len() - 3]),
            () if lower.ends_with("bps") => (Rate::Bits, &lower[..lower.len() - 3]),
            () if lower.ends_with("bit/s") => (Rate::Bits, &lower[..lower.len() - 5]),
            () => return Err(refuse(form)),
        };
        let scaled =
            number * scale(prefix.trim()).ok_or_else(|| refuse("prefixes of units are k, M and G"))?;
        // More than any link carries, and more than a hundred cores with a frame per nanosecond each.
        if scaled > 1e14 {
            return Err(refuse("that is more than any machine carries"));
        }
        Ok(make(scaled))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Frames(frames) => write!(out, "{}pps", scaled(*frames)),
            Rate::Bits(bits) => write!(out, "{}bps", scaled(*bits)),
        }
    }
}

/// Formats a number with the prefix k, M or G.
pub fn scaled(number: f64) -> String {
    let (divisor, prefix) = match number {
        n if n >= 1e9 => (1e9, "G"),
        n if n >= 1e6 => (1e6, "M"),
        n if n >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let digits = format!("{:.3}", number / divisor);
    format!("{}{prefix}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// A number of things, `1 core` or `2 cores`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanoseconds(pub f64);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 1e3 => write!(out, "{ns:.0} ns"),
            ns if ns < 1e5 => write!(out, "{:.1} µs", ns / 1e3),
            ns if ns < 1e6 => write!(out, "{:.0} µs", ns / 1e3),
            ns if ns < 1e9 => write!(out, "{:.1} ms", ns / 1e6),
            ns => write!(out, "{:.1} s", ns / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_are_read() {
        let rate = |text: &str| text.parse::<Rate>().expect("a rate");
        assert_eq!(rate("5Mpps"), Rate::Frames(5e6));
        assert_eq!(rate("500 kpps"), Rate::Frames(5e5));
        assert_eq!(rate("1000pps"), Rate::Frames(1000.0));
        assert_eq!(rate("10Gbps"), Rate::Bits(1e10));
        assert_eq!(rate("2.5Gbit/s"), Rate::Bits(2.5e9));
        // The line rate of 10 Gbit/s Ethernet with 64-byte frames; RFC 2544 appendix B has that of 10 Mbit/s.
        assert!((rate("10Gbps").frames(64.0) - 14_880_952.0).abs() < 1.0);
        assert_eq!(rate("5Mpps").frames(1500.0), 5e6);
        assert!((wire_bits(14_880_952.38, 64.0) - 1e10).abs() < 10.0);
        for (text, why) in [
            ("5", "write frames a second"),
            ("", "write frames a second"),
            ("0pps", "write frames a second"),
            ("-1Mpps", "write frames a second"),
            ("5 Mp", "write frames a second"),
            ("5Tpps", "k, M and G"),
            ("1e9pps", "k, M and G"),
            ("99999999Gbps", "more than any machine"),
        ] {
            let error = text.parse::<Rate>().expect_err("refused").to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn times_and_rates_are_shown() {
        let shown = [80.0, 6_400.0, 2e5, 1.5e6, 2e9].map(|ns| Nanoseconds(ns).to_string());
        assert_eq!(shown, ["80 ns", "6.4 µs", "200 µs", "1.5 ms", "2.0 s"]);
        assert_eq!([Rate::Frames(5e6).to_string(), Rate::Bits(2.5e9).to_string()], ["5Mpps", "2.5Gbps"]);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<Rate>();
        }

        #[test]
        fn what_is_shown_is_read(thousands in 1u32..1_000_000) {
            let rate = Rate::Frames(f64::from(thousands) * 1e3);
            let again = rate.to_string().parse::<Rate>().expect("read");
            prop_assert!((again.frames(64.0) / rate.frames(64.0) - 1.0).abs() < 1e-3);
        }
    }
}
