//! Intervals as Click's handlers write them.

use element::value::time_text;

/// An interval in nanoseconds: below a second in milliseconds, or in the largest unit in which it is a whole number;
/// else in seconds with their fraction.
pub(crate) fn interval_text(interval_ns: u64) -> String {
    match interval_ns {
        1_000_000_000.. => format!("{}s", time_text(interval_ns)),
        ms if ms % 1_000_000 == 0 => format!("{}ms", ms / 1_000_000),
        us if us % 1_000 == 0 => format!("{}us", us / 1_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use click::config::parse;
    use proptest::prelude::*;

    #[test]
    fn short_intervals_have_a_unit() {
        for (interval_ns, text) in [
            (0, "0ms"),
            (10_000_000, "10ms"),
            (1_500_000, "1500us"),
            (1_001, "1001ns"),
            (1_000_000_000, "1.000000s"),
            (61_500_000_000, "61.500000s"),
        ] {
            assert_eq!(interval_text(interval_ns), text);
        }
    }

    proptest! {
        #[test]
        fn a_handler_takes_what_it_gives(interval_us in 0u64..10_000_000_000) {
            let text = interval_text(interval_us * 1_000);
            prop_assert_eq!(element::value::written(&text, parse::seconds_ns), Ok(interval_us * 1_000));
        }
    }
}
