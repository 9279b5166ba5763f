//! Numbers of scripts: parsing and formatting.

use click::config::parse::{self, plain};

/// A number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A real number.
    Real(f64),
}

impl Number {
    /// Parses a number as in configurations.
    pub fn parse(text: &str) -> Option<Number> {
        plain(text, parse::i64).map(Number::Int).or_else(|| plain(text, parse::f64).map(Number::Real))
    }

    /// As a real number.
    pub fn real(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Real(value) => value,
        }
    }

    /// Formats it as in configurations.
    pub fn text(self) -> String {
        match self {
            Number::Int(value) => value.to_string(),
            Number::Real(value) => real_text(value),
        }
    }
}

/// Formats a real number with up to 12 significant digits, as C's `%.12g` does.
pub fn real_text(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return if value.is_sign_negative() { format!("-{name}") } else { name.to_string() };
    }
    let scientific = format!("{value:.11e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..12).contains(&exponent) {
        return trim(&format!("{value:.*}", (11 - exponent) as usize));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}
