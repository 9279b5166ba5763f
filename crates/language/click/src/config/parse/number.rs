//! Booleans, integers, real numbers, times and bandwidths.

use std::ops::RangeInclusive;

use diag::{Diagnostic, Spanned};

use super::{Names, Parsed, Parser, excerpt, expected};

/// `true`, `yes`, `t`, `y`, `1`; `false`, `no`, `f`, `n`, `0`.
pub fn bool(text: &Spanned, _names: &dyn Names) -> Parsed<bool> {
    match text.as_str() {
        "1" | "true" | "t" | "yes" | "y" => Ok(true),
        "0" | "false" | "f" | "no" | "n" => Ok(false),
        _ => expected("`true` or `false`", text),
    }
}

/// Decimal, `0x` hexadecimal, `0b` binary or octal (leading `0`), with an optional sign and `_`
/// between digits. `None` for anything else, and for more than an `i128` holds.
pub(crate) fn integer_literal(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let prefixed = |prefix| digits.get(..2).is_some_and(|p| p.eq_ignore_ascii_case(prefix));
    let (radix, digits) = if prefixed("0x") {
        (16, digits.get(2..)?)
    } else if prefixed("0b") {
        (2, digits.get(2..)?)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, digits)
    } else {
        (10, digits)
    };
    let mut value = 0i128;
    let mut after_digit = false;
    for c in digits.chars() {
        if c == '_' && after_digit {
            after_digit = false;
            continue;
        }
        let digit = c.to_digit(radix)?;
        value = value.checked_mul(i128::from(radix))?.checked_add(i128::from(digit))?;
        after_digit = true;
    }
    after_digit.then_some(if negative { -value } else { value })
}

/// Whether the text has the syntax of an integer of any size.
fn looks_like_integer(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.len() > 20 && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_')
}

fn out_of_range(text: &Spanned) -> Diagnostic {
    Diagnostic::error(text.span, format!("{} is out of range", excerpt(&text.text)))
}

fn int<T: TryFrom<i128>>(text: &Spanned, min: i128, max: i128) -> Parsed<T> {
    let value = integer_literal(&text.text);
    let in_range = value.filter(|value| (min..=max).contains(value));
    if let Some(value) = in_range.and_then(|value| T::try_from(value).ok()) {
        return Ok(value);
    }
    if value.is_some() || looks_like_integer(&text.text) {
        return Err(out_of_range(text).help(format!("the smallest value is {min}, the largest is {max}")));
    }
    let wanted = if min == 0 { "a non-negative integer" } else { "an integer" };
    let octal = text.text.starts_with('0') && text.text.bytes().all(|c| c.is_ascii_digit());
    expected(wanted, text)
        .map_err(|error| if octal { error.help("a leading 0 means octal: digits 0 to 7") } else { error })
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        #[doc = concat!("An integer that fits `", stringify!($type), "`.")]
        pub fn $type(text: &Spanned, _names: &dyn Names) -> Parsed<$type> {
            int(text, i128::from($type::MIN), i128::from($type::MAX))
        }
    )*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64);

/// An integer in a range.
pub fn int_in(range: RangeInclusive<i64>) -> impl Parser<i64> {
    move |text, _| int(text, i128::from(*range.start()), i128::from(*range.end()))
}

/// A real number in decimal notation, `1e6` included.
pub fn f64(text: &Spanned, _names: &dyn Names) -> Parsed<f64> {
    let numeric = |byte: u8| byte.is_ascii_digit() || b"+-.eE_".contains(&byte);
    let plain = text.text.bytes().all(numeric).then(|| text.text.replace('_', ""));
    match plain.and_then(|plain| plain.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(out_of_range(text)),
        None => expected("a number", text),
    }
}

/// A non-negative real number in fixed-point form: the value times 2 to `fraction_bits`, rounded to the
/// nearest integer.
pub fn fixed_point(fraction_bits: u32) -> impl Parser<u32> {
    move |text, names| {
        let value = f64(text, names)?;
        let scaled = (value * 2f64.powi(fraction_bits.min(32) as i32)).round();
        // The cast is exact by the check of the range.
        let in_range = (0.0..=f64::from(u32::MAX)).contains(&scaled);
        in_range.then_some(scaled as u32).ok_or_else(|| out_of_range(text))
    }
}

/// A non-negative decimal number without rounding: its digits and the power of ten that scales them.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let text = text.strip_prefix('+').unwrap_or(text);
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let mut decimal = Decimal { digits: 0, exponent };
        let mut point = false;
        let mut any = false;
        for c in mantissa.chars() {
            match c {
                '.' if !point => point = true,
                '_' if any => {}
                _ => {
                    let digit = c.to_digit(10)?;
                    any = true;
                    if decimal.digits > u128::MAX / 100 {
                        // No unit here distinguishes further digits.
                        if !point {
                            return None;
                        }
                        continue;
                    }
                    decimal.digits = decimal.digits * 10 + u128::from(digit);
                    decimal.exponent = decimal.exponent.checked_sub(i32::from(point))?;
                }
            }
        }
        any.then_some(decimal)
    }

    /// The value times `factor` times 10 to `power`, rounded to the nearest integer; `None` when
    /// it exceeds a `u64`.
    fn scale(&self, factor: u64, divisor: u64, power: i32) -> Option<u64> {
        let mut value = self.digits.checked_mul(u128::from(factor))?;
        let power = self.exponent.checked_add(power)?;
        let mut divisor = u128::from(divisor);
        if power >= 0 {
            if value != 0 {
                value = value.checked_mul(10u128.checked_pow(power.unsigned_abs())?)?;
            }
        } else {
            match 10u128.checked_pow(power.unsigned_abs()) {
                Some(scale) => divisor = divisor.checked_mul(scale)?,
                None => return Some(0),
            }
        }
        u64::try_from(value.checked_add(divisor / 2)? / divisor).ok()
    }
}

/// A decimal number, scaled as by [`Decimal::scale`].
fn scaled(
    text: &Spanned,
    number: &str,
    (factor, divisor): (u64, u64),
    power: i32,
    wanted: &str,
) -> Parsed<u64> {
    let Some(number) = Decimal::parse(number.trim_end()) else { return expected(wanted, text) };
    number.scale(factor, divisor, power).ok_or_else(|| out_of_range(text))
}

/// A time in seconds or with a unit (`ns`, `us`, `ms`, `s`, `m` or `min`, `h`, `d`), in
/// nanoseconds, rounded to the nearest.
pub fn seconds_ns(text: &Spanned, _names: &dyn Names) -> Parsed<u64> {
    /// Names of a unit, and its size in seconds: a number times a power of ten.
    const UNITS: [([&str; 2], u64, i32); 7] = [
        (["s", "sec"], 1, 0),
        (["ms", "msec"], 1, -3),
        (["us", "usec"], 1, -6),
        (["ns", "nsec"], 1, -9),
        (["m", "min"], 60, 0),
        (["h", "hr"], 3600, 0),
        (["d", "day"], 86_400, 0),
    ];
    let trimmed = text.text.trim();
    let units = UNITS.iter().flat_map(|(names, factor, power)| names.map(|name| (name, *factor, *power)));
    let named = units.filter_map(|(name, factor, power)| Some((trimmed.strip_suffix(name)?, factor, power)));
    // The unit with the longest name.
    let (number, factor, power) = named.min_by_key(|(number, ..)| number.len()).unwrap_or((trimmed, 1, 0));
    scaled(text, number, (factor, 1), power + 9, "a time like `10s`, `100ms` or `1.5`")
}

/// A bandwidth in bytes per second: a plain number, `Bps`, `B/s`; or in bits: `bps`, `b/s`,
/// `baud`; with `k`, `M` or `G` (powers of 1000) before the unit.
pub fn bandwidth_bytes_per_s(text: &Spanned, _names: &dyn Names) -> Parsed<u64> {
    const UNITS: [(&str, u64); 5] = [("Bps", 1), ("B/s", 1), ("bps", 8), ("b/s", 8), ("baud", 8)];
    const POWERS: [(char, i32); 4] = [('k', 3), ('K', 3), ('M', 6), ('G', 9)];
    let trimmed = text.text.trim();
    let unit = UNITS.iter().find_map(|(name, bits)| Some((trimmed.strip_suffix(name)?, *bits)));
    let (number, power, divisor) = match unit {
        None => (trimmed, 0, 1),
        Some((rest, divisor)) => {
            let power = POWERS.iter().find_map(|(name, power)| Some((rest.strip_suffix(*name)?, *power)));
            let (number, power) = power.unwrap_or((rest, 0));
            (number, power, divisor)
        }
    };
    scaled(text, number, (1, divisor), power, "a bandwidth like `384kbps`, `1MBps` or `125000`")
}
