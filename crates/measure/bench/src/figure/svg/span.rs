//! The range of an axis, and its ticks.

use super::canvas::{LETTER, SMALL};
use crate::figure::words::{columns, grouped, number};
use crate::figure::{Axis, Scale};

/// Numbers beyond this, or closer to 0 than its reciprocal, are not drawn; sums and products of the others
/// stay finite.
const LARGEST: f64 = 1e100;
/// Up to this many different values, ticks are at the measured values; with more, at round numbers.
const MEASURED_TICKS: usize = 12;
/// Margin at the ends of the x axis, as a share of the drawn range.
const MARGIN: f64 = 0.04;

/// The range of an axis.
#[derive(Debug)]
pub struct Span {
    /// The values at its ends; logarithms where the scale is logarithmic.
    ends: (f64, f64),
    log: bool,
    /// The ticks.
    pub ticks: Vec<Tick>,
    /// Values between them that only have a faint line.
    pub faint: Vec<f64>,
}

/// A tick of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Tick {
    /// The value.
    pub at: f64,
    /// The label; empty where there is no room.
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

    /// An x axis over these values, `pixels` wide, with ticks at the values where they are few.
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
            // Where all values are 0, the default range of `even` remains.
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

    /// The position of a value as a share of the axis; values outside are at its ends.
    pub fn share(&self, value: f64) -> f64 {
        self.place(value).clamp(0.0, 1.0)
    }

    fn place(&self, value: f64) -> f64 {
        let scaled = match () {
            () if !self.log => value,
            () if value > 0.0 => value.log10(),
            () => self.ends.0,
        };
        // Rounding must not push the outermost tick off the axis.
        let share = (scaled - self.ends.0) / (self.ends.1 - self.ends.0);
        if (-1e-9..1.0 + 1e-9).contains(&share) { share.clamp(0.0, 1.0) } else { share }
    }

    /// Extends the axis down to this logarithm and labels it 0: a logarithmic axis has no other position for
    /// zeros.
    fn begin_at_0(&mut self, end: f64) {
        self.ends.0 = end;
        self.ticks.insert(0, Tick { at: 10f64.powf(end), label: "0".into() });
    }

    /// Removes labels that would overlap the label before them; the last label is always kept.
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

/// A linear axis from 0 to a round number above the largest value.
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
    // The tolerances absorb rounding errors.
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

/// A logarithmic axis between powers of ten around the values.
fn powers(values: &[f64]) -> Span {
    let positive = || values.iter().copied().filter(|value| *value > 1.0 / LARGEST);
    let low = positive().fold(f64::INFINITY, f64::min);
    let (low, high) = if low.is_finite() { (low, positive().fold(low, f64::max)) } else { (1.0, 10.0) };
    let (low, high) = ((low.log10() + 1e-9).floor() as i32, (high.log10() - 1e-9).ceil() as i32);
    // A single power of ten is in the middle.
    let (low, high) = if low < high { (low, high) } else { (low - 1, high + 1) };
    let decades = high - low;
    let every = (decades + 8) / 9;
    let is_plain = low >= -4 && high <= 6;
    let told = |at: f64| if is_plain { short(at) } else { power_of_ten(at) };
    // With at most two decades, 2 and 5 also have ticks.
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

/// The label of a tick.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-4..1e9 if value.fract() == 0.0 => grouped(value, 0),
        // 0.1 and 0.25 need no more digits.
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
