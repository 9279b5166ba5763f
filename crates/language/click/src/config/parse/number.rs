//! Booleans, integers, real numbers, times and bandwidths.

use std::ops::RangeInclusive;

use diag::{Diagnostic, Spanned};

use super::{Names, Parsed, excerpt, expected};

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

fn int<T: TryFrom<i128>>(text: &Spanned, min: i128, max: i128) -> Parsed<T> {
    let value = integer_literal(&text.text);
    let in_range = value.filter(|value| (min..=max).contains(value));
    if let Some(value) = in_range.and_then(|value| T::try_from(value).ok()) {
        return Ok(value);
    }
    if value.is_some() || looks_like_integer(&text.text) {
        let message = format!("{} is out of range", excerpt(&text.text));
        let help = format!("the smallest value is {min}, the largest is {max}");
        return Err(Diagnostic::error(text.span, message).help(help));
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
pub fn int_in(range: RangeInclusive<i64>) -> impl Fn(&Spanned, &dyn Names) -> Parsed<i64> {
    move |text, _| int(text, i128::from(*range.start()), i128::from(*range.end()))
}

/// A real number in decimal notation, `1e6` included.
pub fn f64(text: &Spanned, _names: &dyn Names) -> Parsed<f64> {
    let numeric = |byte: u8| byte.is_ascii_digit() || b"+-.eE_".contains(&byte);
    let plain = text.text.bytes().all(numeric).then(|| text.text.replace('_', ""));
    match plain.and_then(|plain| plain.parse::<f64>().ok()) {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => {
            let message = format!("{} is out of range", excerpt(&text.text));
            Err(Diagnostic::error(text.span, message))
        }
        None => expected("a number", text),
    }
}

/// A non-negative real number in fixed-point form: the value times 2 to `fraction_bits`, rounded to the nearest
/// integer.
pub fn fixed_point(fraction_bits: u32) -> impl Fn(&Spanned, &dyn Names) -> Parsed<u32> {
    move |text, names| {
        let value = f64(text, names)?;
        let scaled = (value * 2f64.powi(fraction_bits.min(32) as i32)).round();
        if (0.0..=f64::from(u32::MAX)).contains(&scaled) {
            // In range by the check above.
            Ok(scaled as u32)
        } else {
            let message = format!("{} is out of range", excerpt(&text.text));
            Err(Diagnostic::error(text.span, message))
        }
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

/// A unit: its name and its size, `factor / divisor` times 10 to `power`.
struct Unit {
    name: &'static str,
    factor: u64,
    divisor: u64,
    power: i32,
}

const fn unit(name: &'static str, factor: u64, divisor: u64, power: i32) -> Unit {
    Unit { name, factor, divisor, power }
}

fn with_unit(text: &Spanned, units: &[Unit], base_power: i32, wanted: &str) -> Parsed<u64> {
    let trimmed = text.text.trim();
    // The longest unit name at the end of the text; the empty name always matches.
    let best = units.iter().filter(|unit| trimmed.ends_with(unit.name)).max_by_key(|unit| unit.name.len());
    let parsed = best.and_then(|unit| {
        let number = trimmed.strip_suffix(unit.name)?.trim_end();
        Some((unit, Decimal::parse(number)?))
    });
    let Some((unit, number)) = parsed else {
        return expected(wanted, text);
    };
    number.scale(unit.factor, unit.divisor, unit.power + base_power).ok_or_else(|| {
        let message = format!("{} is out of range", excerpt(&text.text));
        Diagnostic::error(text.span, message)
    })
}

/// A time in seconds or with a unit (`ns`, `us`, `ms`, `s`, `m` or `min`, `h`, `d`), in
/// nanoseconds, rounded to the nearest.
pub fn seconds_ns(text: &Spanned, _names: &dyn Names) -> Parsed<u64> {
    const UNITS: &[Unit] = &[
        unit("", 1, 1, 0),
        unit("s", 1, 1, 0),
        unit("sec", 1, 1, 0),
        unit("ms", 1, 1, -3),
        unit("msec", 1, 1, -3),
        unit("us", 1, 1, -6),
        unit("usec", 1, 1, -6),
        unit("ns", 1, 1, -9),
        unit("nsec", 1, 1, -9),
        unit("m", 60, 1, 0),
        unit("min", 60, 1, 0),
        unit("h", 3600, 1, 0),
        unit("hr", 3600, 1, 0),
        unit("d", 86_400, 1, 0),
        unit("day", 86_400, 1, 0),
    ];
    with_unit(text, UNITS, 9, "a time like `10s`, `100ms` or `1.5`")
}

/// A bandwidth in bytes per second: a plain number, `Bps`, `B/s`; or in bits: `bps`, `b/s`,
/// `baud`; with `k`, `M` or `G` (powers of 1000) before the unit.
pub fn bandwidth_bytes_per_s(text: &Spanned, _names: &dyn Names) -> Parsed<u64> {
    const UNITS: &[Unit] = &[
        unit("", 1, 1, 0),
        unit("Bps", 1, 1, 0),
        unit("kBps", 1, 1, 3),
        unit("KBps", 1, 1, 3),
        unit("MBps", 1, 1, 6),
        unit("GBps", 1, 1, 9),
        unit("B/s", 1, 1, 0),
        unit("kB/s", 1, 1, 3),
        unit("KB/s", 1, 1, 3),
        unit("MB/s", 1, 1, 6),
        unit("GB/s", 1, 1, 9),
        unit("bps", 1, 8, 0),
        unit("kbps", 1, 8, 3),
        unit("Kbps", 1, 8, 3),
        unit("Mbps", 1, 8, 6),
        unit("Gbps", 1, 8, 9),
        unit("b/s", 1, 8, 0),
        unit("kb/s", 1, 8, 3),
        unit("Kb/s", 1, 8, 3),
        unit("Mb/s", 1, 8, 6),
        unit("Gb/s", 1, 8, 9),
        unit("baud", 1, 8, 0),
        unit("kbaud", 1, 8, 3),
        unit("Kbaud", 1, 8, 3),
        unit("Mbaud", 1, 8, 6),
        unit("Gbaud", 1, 8, 9),
    ];
    with_unit(text, UNITS, 0, "a bandwidth like `384kbps`, `1MBps` or `125000`")
}
