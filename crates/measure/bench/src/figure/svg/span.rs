//! What an axis reaches over, and where its marks are.

use super::canvas::{LETTER, SMALL};
use crate::figure::words::{columns, grouped, number};
use crate::figure::{Axis, Scale};

/// Numbers larger than this, or closer to 0 than its reciprocal, are no measurements; sums and products of others are
/// numbers.
const LARGEST: f64 = 1e100;
/// So many places of an axis are marked where something was measured; for more, round numbers are marked.
const MEASURED_TICKS: usize = 12;
/// Room at the ends of the x axis, as a share of what is drawn.
const MARGIN: f64 = 0.04;

/// What an axis reaches over.
#[derive(Debug)]
pub struct Span {
    /// The values at its ends, logarithms where the scale is one.
    ends: (f64, f64),
    log: bool,
    /// Its marks.
    pub ticks: Vec<Tick>,
    /// Places between them that only have a faint line.
    pub faint: Vec<f64>,
}

/// A mark.
#[derive(Clone, PartialEq, Debug)]
pub struct Tick {
    /// The value.
    pub at: f64,
    /// What stands beside it; empty where there is no room.
    pub label: String,
}

/// Whether a value can be drawn.
pub fn is_drawable(value: f64) -> bool {
    value.is_finite() && value.abs() < LARGEST
}

impl Span {
    /// A y axis over these values: from 0, or over powers of ten.
    pub fn upright(axis: &Axis, values: &[f64]) -> Span {
        if axis.scale == Scale::Log { powers(values) } else { even(values) }
    }

    /// An x axis over these values, so many pixels wide, marked where they are as long as they are few.
    pub fn lying(axis: &Axis, values: &[f64], pixels: f64) -> Span {
        let mut measured = values.to_vec();
        measured.sort_by(f64::total_cmp);
        measured.dedup();
        let log = axis.scale == Scale::Log;
        let mut span = if log { powers(values) } else { even(values) };
        measured.retain(|value| !log || *value > 0.0);
        if let (Some(first), Some(last)) = (measured.first(), measured.last()) {
            let scaled = |value: f64| if log { value.log10() } else { value };
            let (low, high) = (scaled(*first), scaled(*last));
            let (low, high) = if log { (low, high) } else { (low.min(0.0), high.max(0.0)) };
            let margin = if high > low { (high - low) * MARGIN } else { 0.5 };
            let low = if low < 0.0 || log { low - margin } else { low };
            // Where all values are 0, the axis is that of nothing.
            if high > low || log {
                span.ends = (low, high + margin);
            }
        }
        if measured.len() <= MEASURED_TICKS && !measured.is_empty() {
            if !log && !measured.contains(&0.0) {
                measured.push(0.0);
                measured.sort_by(f64::total_cmp);
            }
            span.ticks = measured.iter().map(|at| Tick { at: *at, label: short(*at) }).collect();
            if log && values.iter().any(|value| *value <= 0.0) {
                span.begin_at_0(span.ends.0 - (span.ends.1 - span.ends.0) / 8.0);
            }
        }
        let mut ticks = std::mem::take(&mut span.ticks);
        ticks.retain(|tick| (0.0..=1.0).contains(&span.place(tick.at)));
        span.ticks = ticks;
        span.faint.clear();
        span.make_room(pixels);
        span
    }

    /// Where a value is, as a share of the axis; what is outside is at its end.
    pub fn share(&self, value: f64) -> f64 {
        self.place(value).clamp(0.0, 1.0)
    }

    fn place(&self, value: f64) -> f64 {
        let scaled = match () {
            () if !self.log => value,
            () if value > 0.0 => value.log10(),
            () => self.ends.0,
        };
        // Rounding must not push the outermost mark off the axis.
        let share = (scaled - self.ends.0) / (self.ends.1 - self.ends.0);
        if (-1e-9..1.0 + 1e-9).contains(&share) { share.clamp(0.0, 1.0) } else { share }
    }

    /// Lets the axis begin further down, at this logarithm, which is told to be 0: zeros have to be somewhere.
    fn begin_at_0(&mut self, end: f64) {
        self.ends.0 = end;
        self.ticks.insert(0, Tick { at: 10f64.powf(end), label: "0".into() });
    }

    /// Takes away what is told where it would lie on what is told before it; the last one counts most.
    fn make_room(&mut self, pixels: f64) {
        let around = |tick: &Tick| {
            let half = (columns(&tick.label) as f64 + 1.0) * LETTER * SMALL / 2.0;
            let middle = self.place(tick.at) * pixels;
            (middle - half, middle + half)
        };
        let around: Vec<(f64, f64)> = self.ticks.iter().map(around).collect();
        let last = around.last().map_or(f64::INFINITY, |last| last.0);
        let (mut used, count) = (f64::NEG_INFINITY, around.len());
        for (at, (tick, (left, right))) in self.ticks.iter_mut().zip(around).enumerate() {
            if left < used || (right > last && at + 1 < count) {
                tick.label.clear();
            } else {
                used = right;
            }
        }
    }
}

/// From 0 to a round number above the largest.
fn even(values: &[f64]) -> Span {
    let low = values.iter().copied().fold(0.0, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let range = if high - low > 1.0 / LARGEST { high - low } else { 1.0 };
    let high = if high - low > 1.0 / LARGEST { high } else { low + 1.0 };
    let rough = range / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0].map(|times| times * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    // A little less than a step more is the same step, but for rounding.
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    let ats: Vec<f64> =
        (0..=(last - first).clamp(1.0, 20.0) as u32).map(|n| (first + f64::from(n)) * step).collect();
    let largest = (first * step).abs().max((last * step).abs());
    let is_plain = largest < 1e6 && step >= 1e-4;
    let twos = (step / power - 2.5).abs() < 1e-9;
    let decimals = (-power.log10().round() + f64::from(u8::from(twos))).clamp(0.0, 9.0) as usize;
    let tick = |at: f64| Tick {
        at,
        label: if is_plain && at != 0.0 { grouped(at, decimals) } else { power_of_ten(at) },
    };
    Span {
        ends: (first * step, last * step),
        log: false,
        ticks: ats.into_iter().map(tick).collect(),
        faint: vec![],
    }
}

/// From a round number at or below the smallest to one at or above the largest.
fn powers(values: &[f64]) -> Span {
    let positive = || values.iter().copied().filter(|value| *value > 1.0 / LARGEST);
    let low = positive().fold(f64::INFINITY, f64::min);
    let (low, high) = if low.is_finite() { (low, positive().fold(low, f64::max)) } else { (1.0, 10.0) };
    let (low, high) = ((low.log10() + 1e-9).floor() as i32, (high.log10() - 1e-9).ceil() as i32);
    // A power of ten alone is in the middle.
    let (low, high) = if low < high { (low, high) } else { (low - 1, high + 1) };
    let decades = high - low;
    let every = (decades + 8) / 9;
    let is_plain = low >= -4 && high <= 6;
    let told = |at: f64| if is_plain { short(at) } else { power_of_ten(at) };
    // Between few powers the numbers 2 and 5 are marked, too.
    let marked: &[f64] = if decades <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let decade = |power: i32| {
        let tens = 10f64.powi(power);
        (1..10).map(move |digit| (f64::from(digit), f64::from(digit) * tens, power))
    };
    let mut ticks = vec![];
    let mut faint = vec![];
    for (digit, at, power) in
        (low..=high).flat_map(decade).filter(|(_, at, _)| at.log10() <= f64::from(high) + 1e-9)
    {
        if marked.contains(&digit) && (power - low) % every == 0 {
            ticks.push(Tick { at, label: told(at) });
        } else if decades <= 6 || digit == 1.0 {
            faint.push(at);
        }
    }
    let mut span = Span { ends: (f64::from(low), f64::from(high)), log: true, ticks, faint };
    if values.iter().any(|value| *value <= 0.0) {
        span.begin_at_0(f64::from(low) - 1.0);
    }
    span
}

/// A number beside a mark.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-4..1e9 if value.fract() == 0.0 => grouped(value, 0),
        // Written as it is: 0.1 and 0.25 need no more digits.
        1e-4..1e9 if value.to_string().len() <= 6 => value.to_string(),
        1e-4..1e9 => number(value),
        _ => power_of_ten(value),
    }
}

/// `2.5×10⁶`.
fn power_of_ten(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(c),
    };
    let exponent: String = exponent.chars().map(raised).collect();
    match mantissa {
        "0" | "-0" => "0".into(),
        "1" => format!("10{exponent}"),
        "-1" => format!("-10{exponent}"),
        mantissa => format!("{mantissa}×10{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(span: &Span) -> Vec<&str> {
        span.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn even_axes_begin_at_0_and_end_above_the_largest() {
        assert_eq!(label(&even(&[14.88, 3.0])), ["0", "2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]);
        assert_eq!(label(&even(&[0.0])), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(label(&even(&[])).last(), Some(&"1.0"));
        assert_eq!(label(&even(&[-3.0, 9.0])).first(), Some(&"-4"));
        assert_eq!(label(&even(&[2.4e9])).last(), Some(&"2.5×10⁹"));
        assert_eq!(label(&even(&[3e-5])).get(1), Some(&"5×10⁻⁶"));
    }

    #[test]
    fn logarithmic_axes_mark_powers() {
        assert_eq!(label(&powers(&[0.002, 7.0])), ["0.001", "0.01", "0.1", "1", "10"]);
        assert_eq!(label(&powers(&[120.0, 180.0])), ["100", "200", "500", "1,000"]);
        assert_eq!(label(&powers(&[0.0, 0.002, 0.3])), ["0", "0.001", "0.01", "0.1", "1"]);
        let zeros = Span::lying(&Axis::log("flows", ""), &[0.0, 1.0, 1e3], 700.0);
        assert_eq!((label(&zeros), zeros.share(0.0)), (vec!["0", "1", "1,000"], 0.0));
        assert_eq!(label(&powers(&[1.0, 1e9])).last(), Some(&"10⁹"));
        assert_eq!(powers(&[100.0]).share(100.0), 0.5);
        assert_eq!(label(&powers(&[0.0, -1.0])), ["0", "1", "2", "5", "10"]);
    }

    #[test]
    fn few_measured_places_are_marked_where_there_is_room() {
        let sizes = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1500.0];
        let span = Span::lying(&Axis::linear("frame size", "bytes"), &sizes, 700.0);
        assert_eq!(label(&span), ["0", "64", "128", "256", "512", "1,024", "1,280", "1,500"]);
        let span = Span::lying(&Axis::linear("frame size", "bytes"), &sizes, 300.0);
        assert_eq!(label(&span).last(), Some(&"1,500"));
        assert!(label(&span).contains(&""));
    }
}
