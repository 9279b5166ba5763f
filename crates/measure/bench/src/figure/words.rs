//! Texts and numbers, in the form that all renderings share.
//!
//! Names come from files and from other programs. [`plain`] removes the characters that a terminal, a page or
//! XML would interpret. Escaping for HTML, Markdown and CSV is done by the modules that write those.

use super::{Figure, Origin, Point, Report, Series};
use crate::machine::Machine;
use crate::stats::Quantiles;

/// Significant digits of a measured value: more than repeats agree on.
const DIGITS: i32 = 4;
/// The mark of a disturbed value, and its meaning.
pub const DISTURBED: (&str, &str) = (
    "*",
    "disturbed: something else had the core for more than a fiftieth of the time, or a hypervisor had moved cores apart",
);

/// A text on one line, without characters that control terminals, change the writing direction or are not
/// allowed in XML.
pub fn plain(text: &str) -> String {
    let is_kept = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        !c.is_control() && !turns && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
    };
    let harmless = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if is_kept(c) => c,
        _ => '\u{fffd}',
    };
    text.trim().chars().map(harmless).collect()
}

/// The name of a curve, with its origin in front unless it is Millrace's.
pub fn called(series: &Series) -> String {
    match series.origin {
        Origin::Own => plain(&series.name),
        Origin::Peer => format!("peer: {}", plain(&series.name)),
        Origin::Paper(_) => format!("paper: {}", plain(&series.name)),
    }
}

/// The width of a text in columns of a monospaced font; East Asian characters count twice.
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..) { 2 } else { 1 }).sum()
}

/// Wraps a text into lines of at most `most` columns, between words where that is possible.
pub fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let gap = usize::from(used > 0);
        if used > 0 && used + gap + columns(word) > most {
            lines.push(String::new());
            used = 0;
        } else if used > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
            used += 1;
        }
        // A word that is too long for a line is broken after a hyphen, otherwise at the end of the line.
        for part in word.split_inclusive('-') {
            if used > 0 && used + columns(part) > most {
                lines.push(String::new());
                used = 0;
            }
            for letter in part.chars() {
                let width = columns(letter.encode_utf8(&mut [0; 4]));
                if used + width > most.max(2) {
                    lines.push(String::new());
                    used = 0;
                }
                lines.last_mut().into_iter().for_each(|line| line.push(letter));
                used += width;
            }
        }
    }
    lines
}

/// A number with `decimals` digits after the point, and commas between thousands.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    // A negative number that is rounded to 0 has no sign.
    let sign = if text.contains(|c: char| c.is_ascii_digit() && c != '0') { sign } else { "" };
    let mut out = sign.to_string();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && value.is_finite() {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// The number of digits after the point for [`DIGITS`] significant ones.
fn decimals(value: f64) -> usize {
    let magnitude = value.abs().log10().floor().clamp(-30.0, 30.0);
    if value == 0.0 { 0 } else { (DIGITS - 1 - magnitude as i32).max(0) as usize }
}

/// Formats values with the same number of digits after the point, by the largest of them.
fn alike<const COUNT: usize>(values: [f64; COUNT]) -> [String; COUNT] {
    let largest = values.iter().filter(|value| value.is_finite()).fold(0.0, |most: f64, v| most.max(v.abs()));
    let is_plain = largest == 0.0 || (1e-6..1e15).contains(&largest);
    let is_whole = values.iter().all(|value| value.fract() == 0.0);
    let digits = if is_whole { 0 } else { decimals(largest) };
    values.map(|value| match () {
        () if value == 0.0 => "0".into(),
        () if !value.is_finite() => format!("{value}"),
        () if is_plain => grouped(value, digits),
        () => format!("{value:.3e}"),
    })
}

/// A number with [`DIGITS`] significant digits, and at least all those before the point.
pub fn number(value: f64) -> String {
    let [text] = alike([value]);
    text
}

/// `median (min–max)`; the median alone where there is no range.
pub fn median_and_range(spread: &Quantiles) -> String {
    let [median, min, max] = alike([spread.median, spread.min, spread.max]);
    if min == max && min == median { median } else { format!("{median} ({min}–{max})") }
}

/// A point as tables show it.
pub fn value(point: &Point) -> String {
    median_and_range(&point.y) + if point.disturbed { DISTURBED.0 } else { "" }
}

/// Whether any point was disturbed.
pub fn any_disturbed(figure: &Figure) -> bool {
    figure.series.iter().flat_map(|series| &series.points).any(|point| point.disturbed)
}

/// Whether something is as expected.
pub fn holds(holds: bool) -> &'static str {
    if holds { "holds" } else { "DOES NOT HOLD" }
}

/// A warning for a report from a busy machine.
pub fn warning(machine: &Machine) -> Option<String> {
    let told = || {
        format!(
            "The load average was {:.2} before the measurements: the machine was busy, the figures are provisional.",
            machine.load
        )
    };
    machine.is_busy().then(told)
}

/// Formats seconds, from a minute on in minutes, from an hour on in hours.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..60 => format!("{} s", number(seconds)),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// The number of expectations that hold, and of all.
pub fn held(report: &Report) -> (usize, usize) {
    let all = || report.figures.iter().flat_map(|figure| &figure.expected);
    (all().filter(|expectation| expectation.holds).count(), all().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_they_deserve() {
        let shown = [0.0, 14.8809, 148_809.5, 0.001_234_56, 12.0, -3.25, 1e-9, 1e18, f64::NAN].map(number);
        assert_eq!(
            shown,
            ["0", "14.88", "148,810", "0.001235", "12", "-3.250", "1.000e-9", "1.000e18", "NaN"]
        );
        assert_eq!(grouped(-1_234_567.0, 1), "-1,234,567.0");
        assert_eq!(grouped(-0.001, 1), "0.0");
    }

    #[test]
    fn ranges_have_the_digits_of_their_largest() {
        let told = |median, min, max| median_and_range(&Quantiles { median, min, max });
        assert_eq!(told(14.8, 9.75, 15.123), "14.80 (9.75–15.12)");
        assert_eq!(told(3.0, 3.0, 3.0), "3");
        assert_eq!(told(0.0, 0.0, 1e6), "0 (0–1,000,000)");
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
    }

    #[test]
    fn what_controls_a_terminal_is_no_text() {
        assert_eq!(plain(" a\nb\x1b[31mc\u{202e}\0 "), "a b\u{fffd}[31mc\u{fffd}\u{fffd}");
    }

    #[test]
    fn durations_are_told_in_what_people_count() {
        let told = [0.25, 59.0, 61.0, 7_322.0, f64::NAN].map(duration);
        assert_eq!(told, ["0.2500 s", "59 s", "1 min 1 s", "2 h 2 min", "NaN s"]);
    }
}
