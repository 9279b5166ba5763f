//! `sprintf` for scripts: `%d`, `%i`, `%u`, `%o`, `%x`, `%X`, `%s`, `%%` with flags, width and precision.

use super::expand::{without_quotes, words};
use super::number::Number;

/// The largest width and precision.
const WIDEST: usize = 1_000;

const FLAGS: &str = "-+ 0#";

struct Directive {
    flags: String,
    width: usize,
    precision: Option<usize>,
}

/// Formats `args`: the first word is the format, the others are its values.
///
/// # Errors
/// If the format is invalid, or there are too few, too many or invalid values.
pub fn sprintf(args: &str) -> Result<String, String> {
    let mut words = words(args).into_iter();
    let format = without_quotes(&words.next().unwrap_or_default());
    let mut values = words.map(|word| without_quotes(&word));
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let flags = std::iter::from_fn(|| chars.next_if(|c| FLAGS.contains(*c))).collect();
        let mut number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<usize, String> {
            if chars.next_if_eq(&'*').is_some() {
                let text = values.next().unwrap_or_default();
                return text.parse().ok().filter(|width| *width <= WIDEST).ok_or("`*` takes a width".into());
            }
            let digits: String = std::iter::from_fn(|| chars.next_if(char::is_ascii_digit)).collect();
            if digits.is_empty() {
                return Ok(0);
            }
            digits.parse().ok().filter(|width| *width <= WIDEST).ok_or("a width is too large".into())
        };
        let width = number(&mut chars)?;
        let precision = chars.next_if_eq(&'.').map(|_| number(&mut chars)).transpose()?;
        while chars.next_if(|c| "hlLq".contains(*c)).is_some() {}
        let kind = chars.next().ok_or("the format ends within a directive")?;
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| format!("there is no value for `%{kind}`"))?;
        out.push_str(&Directive { flags, width, precision }.format(kind, &value)?);
    }
    match values.next() {
        Some(extra) => Err(format!("`{extra}` is too much for the format")),
        None => Ok(out),
    }
}

impl Directive {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    /// What precedes the digits where the flag `#` asks for it.
    fn prefix(&self, prefix: &str) -> String {
        if self.has('#') { prefix.into() } else { String::new() }
    }

    fn format(&self, kind: char, value: &str) -> Result<String, String> {
        let (sign, mut body) = match kind {
            's' => {
                let most = self.precision.unwrap_or(usize::MAX);
                return Ok(self.pad(String::new(), value.chars().take(most).collect(), false));
            }
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' => {
                let Some(Number::Int(number)) = Number::parse(value) else {
                    return Err(format!("`{value}` is no integer"));
                };
                let bits = number as u64;
                match kind {
                    'u' => (String::new(), bits.to_string()),
                    'o' => (self.prefix("0"), format!("{bits:o}")),
                    'x' => (self.prefix("0x"), format!("{bits:x}")),
                    'X' => (self.prefix("0X"), format!("{bits:X}")),
                    _ => {
                        let sign = match (number < 0, self.has('+'), self.has(' ')) {
                            (true, ..) => "-",
                            (_, true, _) => "+",
                            (_, _, true) => " ",
                            _ => "",
                        };
                        (sign.into(), number.unsigned_abs().to_string())
                    }
                }
            }
            other => return Err(format!("`%{other}` is no directive")),
        };
        let digits = self.precision.unwrap_or(1);
        body = format!("{}{body}", "0".repeat(digits.saturating_sub(body.len())));
        Ok(self.pad(sign, body, self.has('0') && self.precision.is_none()))
    }

    fn pad(&self, sign: String, body: String, zeros: bool) -> String {
        let missing = self.width.saturating_sub(sign.len() + body.chars().count());
        match (self.has('-'), zeros) {
            (true, _) => format!("{sign}{body}{}", " ".repeat(missing)),
            (false, true) => format!("{sign}{}{body}", "0".repeat(missing)),
            (false, false) => format!("{}{sign}{body}", " ".repeat(missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_format_as_in_c() {
        let cases = [
            ("\"%05x\" 127", "0007f"),
            ("\"%d%%\" 5", "5%"),
            ("\"%+d|%5d|%-5d|%05d\" 1 -2 3 -4", "+1|   -2|3    |-0004"),
            ("\"%s and %.2s\" abc \"d e\"", "abc and d "),
            ("\"%*d %lu\" 4 7 9", "   7 9"),
            ("%#o.%X 8 255", "010.FF"),
            ("\"%.3d\" 7", "007"),
            ("plain", "plain"),
        ];
        for (args, expected) in cases {
            assert_eq!(sprintf(args).as_deref(), Ok(expected), "{args}");
        }
        for wrong in ["%d", "%d x", "%d 1 2", "%q", "\"%", "%99999d 1", "%f 1.5"] {
            assert!(sprintf(wrong).is_err(), "{wrong}");
        }
    }
}
