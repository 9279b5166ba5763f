//! Values of handlers, parsed as in configurations and formatted as in Click.

use click::config::parse::Parser;
use click::config::{Names, NoNames, Parsed, parse};
use diag::{Diagnostic, Span, Spanned};
use packet::anno::{self, ANNO_BYTES, Anno};

/// Parses a text that was written to a handler.
///
/// # Errors
/// A sentence that states what was expected.
pub fn written<T>(value: &str, parser: impl Parser<T>) -> Result<T, String> {
    parser(&Spanned::derived(value.trim(), Span::NONE), &NoNames).map_err(|mistake| mistake.message)
}

/// The error of a write to a handler that does not exist.
///
/// # Errors
/// Always.
pub fn no_such_handler<T>(handler: &str) -> Result<T, String> {
    Err(format!("there is no write handler `{handler}`"))
}

/// Parses a text that was written to a handler, and assigns the value.
///
/// # Errors
/// A sentence that states what was expected.
pub fn set<T>(place: &mut T, value: &str, parser: impl Parser<T>) -> Result<(), String> {
    *place = written(value, parser)?;
    Ok(())
}

/// The number in one of a program's state cells, as a handler's value; `None` if the program has no such
/// cell.
pub fn cell_text(cells: &[u64], cell: u16) -> Option<String> {
    cells.get(usize::from(cell)).map(u64::to_string)
}

/// Writes a number into one of a program's state cells.
///
/// # Errors
/// If the program has no such cell.
pub fn set_cell(cells: &mut [u64], cell: u16, number: impl Into<u64>) -> Result<(), String> {
    *cells.get_mut(usize::from(cell)).ok_or_else(|| format!("the program has no cell {cell}"))? =
        number.into();
    Ok(())
}

// Offsets of annotations are bytes.
const _: () = assert!(ANNO_BYTES <= 256);

/// Reads the name or offset of an annotation of `len` bytes.
pub fn annotation(len: u8) -> impl Parser<Anno> {
    move |text, names| {
        if let Some(named) = anno::from_name(text.as_str()) {
            if named.len == len {
                return Ok(named);
            }
            let message = format!("annotation `{text}` has {} bytes, not {len}", named.len);
            return Err(Diagnostic::error(text.span, message));
        }
        let last = ANNO_BYTES as i64 - i64::from(len);
        let offset = parse::int_in(0..=last)(text, names)?;
        Ok(Anno { offset: offset as u8, len })
    }
}

/// Reads `true` or `false`, and none of the short forms that arguments have.
pub fn true_or_false(text: &Spanned, _names: &dyn Names) -> Parsed<bool> {
    text.as_str().parse().map_err(|_| Diagnostic::error(text.span, "`true` or `false` is expected"))
}

/// A number with `fraction_bits` bits after the point, with the fewest decimals that distinguish it from its
/// neighbours (Knuth, TeX: The Program, section 103), as Click writes such numbers.
pub fn fixed_point_text(number: u64, fraction_bits: u32) -> String {
    let one = 1u128 << fraction_bits.min(60);
    let mut text = (u128::from(number) / one).to_string();
    let mut rest = u128::from(number) % one;
    if rest == 0 {
        return text;
    }
    text.push('.');
    // `rest` is ten times the fraction, plus half a unit of the last decimal so far.
    rest = 10 * rest + 5;
    let mut inaccuracy = 10;
    loop {
        if inaccuracy > one {
            rest = rest + one / 2 - inaccuracy / 2;
        }
        text.push(char::from(b'0' + (rest / one) as u8));
        rest = 10 * (rest % one);
        inaccuracy *= 10;
        if rest <= inaccuracy {
            return text;
        }
    }
}

/// An Ethernet address as Click writes it.
pub fn ether_text(address: [u8; 6]) -> String {
    let bytes: Vec<String> = address.iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join("-")
}

/// A time in nanoseconds as Click writes timestamps: seconds and microseconds.
pub fn time_text(time_ns: u64) -> String {
    format!("{}.{:06}", time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_point_numbers_have_the_decimals_that_tell_them_apart() {
        assert_eq!(fixed_point_text(5 << 10, 10), "5");
        assert_eq!(fixed_point_text(512, 10), "0.5");
        assert_eq!(fixed_point_text(1, 10), "0.001");
        assert_eq!(fixed_point_text(26_843_546, 28), "0.1");
        for number in 0..4096u64 {
            let text = fixed_point_text(number, 10);
            let back = (text.parse::<f64>().unwrap() * 1024.0).round() as u64;
            assert_eq!(back, number, "{text}");
        }
    }

    #[test]
    fn addresses_and_times_look_as_in_click() {
        assert_eq!(ether_text([0, 0, 0xc0, 0xae, 0x67, 0xef]), "00-00-C0-AE-67-EF");
        assert_eq!(time_text(1_000_000_042_000_999), "1000000.042000");
    }
}
