//! Times as users write them on the command line: `500ms`, `2s`, `1min 30s`.
//!
//! Every option that takes a time is parsed here. Options that took numbers before they took units still
//! accept a number alone; the function of each states its unit.

use ::bench::units::Nanoseconds;
use std::time::Duration;

/// The longest time that is accepted. The sum of two accepted times is in range of every type for times.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);
const SHORTEST_MEASUREMENT: Duration = Duration::from_millis(1);
const LONGEST_MEASUREMENT: Duration = Duration::from_secs(3600);

/// A time; a number alone counts seconds.
///
/// # Errors
/// When `text` is not such a time; the message shows the syntax.
pub fn time(text: &str) -> Result<Duration, String> {
    const SYNTAX: &str = "write a time as in `500ms`, `2s` or `1min 30s`; a number alone counts seconds";
    plain(text, 1.0).unwrap_or_else(|| with_unit(text)).ok_or_else(|| SYNTAX.into())
}

/// A time above 0, in seconds; a number alone counts seconds.
///
/// # Errors
/// When `text` is not such a time; the message shows the syntax.
pub fn seconds(text: &str) -> Result<f64, String> {
    let time = time(text)?;
    if time.is_zero() { Err("write a time above 0".into()) } else { Ok(time.as_secs_f64()) }
}

/// The length of a measurement, 1 ms to 1 h, in seconds; a number alone counts seconds.
///
/// # Errors
/// When `text` is not a time, or it is too short or too long; the message shows what to write.
pub fn measured(text: &str) -> Result<f64, String> {
    let time = time(text)?;
    let fits = (SHORTEST_MEASUREMENT..=LONGEST_MEASUREMENT).contains(&time);
    if fits { Ok(time.as_secs_f64()) } else { Err("write a time from `1ms` to `1h`".into()) }
}

/// A time above 0; a number alone counts microseconds.
///
/// # Errors
/// When `text` is not such a time; the message shows the syntax.
pub fn microseconds(text: &str) -> Result<Duration, String> {
    const SYNTAX: &str =
        "write a time above 0 as in `200us`, `1.5ms` or `2s`; a number alone counts microseconds";
    let time = plain(text, 1e-6).unwrap_or_else(|| with_unit(text));
    time.filter(|time| !time.is_zero()).ok_or_else(|| SYNTAX.into())
}

/// A time above 0, always with a unit.
///
/// # Errors
/// When `text` is not such a time; the message shows the syntax.
pub fn nanoseconds(text: &str) -> Result<Nanoseconds, String> {
    let time = with_unit(text).filter(|time| !time.is_zero());
    let time = time.ok_or("write a time with its unit as in `200us`, `1.5ms`, `800ns` or `2s`")?;
    Ok(Nanoseconds(time.as_nanos() as f64))
}

/// A number without a unit, times `unit` seconds: `None` if `text` is no number, `Some(None)` if the number
/// is negative or too large for a time.
fn plain(text: &str, unit: f64) -> Option<Option<Duration>> {
    let number = text.trim().parse::<f64>().ok()?;
    Some(Duration::try_from_secs_f64(number * unit).ok().filter(|time| *time <= LONGEST))
}

fn with_unit(text: &str) -> Option<Duration> {
    let read = jiff::fmt::friendly::SpanParser::new().parse_duration(text.trim()).ok()?;
    Duration::try_from(read).ok().filter(|time| *time <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_have_units_and_numbers_alone_count_seconds() {
        let ms = |text: &str| time(text).expect("a time").as_millis();
        assert_eq!(
            ["1s", "500ms", "2min", "1h", "1min 30s", "1m30s"].map(ms),
            [1_000, 500, 120_000, 3_600_000, 90_000, 90_000]
        );
        assert_eq!(["1", "0.5", "2e1", "0", " 3 "].map(ms), [1_000, 500, 20_000, 0, 3_000]);
        for text in ["", "soon", "-1", "-1s", "1 parsec", "inf", "NaN", "1e300", "1.2.3", "1s2", "9999999h"] {
            let error = time(text).expect_err(text);
            assert!(error.contains("write a time as in `500ms`"), "{error}");
        }
        assert_eq!((seconds("250ms"), measured("0.2")), (Ok(0.25), Ok(0.2)));
        assert!(seconds("0").is_err());
        assert_eq!(measured("0.5"), Ok(0.5));
        for text in ["0", "-1", "1e9", "NaN", "x", "2h", "1us"] {
            assert!(measured(text).is_err(), "{text}");
        }
        assert_eq!(microseconds("200"), Ok(Duration::from_micros(200)));
        assert_eq!(microseconds("1e6"), microseconds("1s"));
        assert!(microseconds("0").is_err());
    }

    #[test]
    fn latencies_have_units() {
        let time = |text: &str| nanoseconds(text).expect("a time").0;
        assert_eq!(
            [time("200us"), time("200µs"), time("1.5 ms"), time("80ns"), time("2s")],
            [2e5, 2e5, 1.5e6, 80.0, 2e9]
        );
        for text in ["200", "us", "-1us", "0ns", "1.2.3us"] {
            assert!(nanoseconds(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,20}") {
            let _ = (time(&text), seconds(&text), measured(&text), microseconds(&text), nanoseconds(&text));
        }
    }
}
