//! Functions that scripts call as handlers: arithmetic, comparisons, texts.

use super::expand::{shift, without_quotes, words};
use super::number::{Number, real_text};
use super::sprintf::sprintf;
use click::config::parse::{self, plain};
use click::config::quote;

/// Parses a Boolean.
pub fn truth(text: &str) -> Option<bool> {
    plain(text.trim(), parse::bool)
}

/// Calls a function; `None` if there is none of that name. `random` returns a number below its argument.
pub fn call(name: &str, args: &str, random: &mut dyn FnMut(u64) -> u64) -> Option<Result<String, String>> {
    let args = args.trim();
    Some(match name {
        "add" | "sub" | "mul" | "div" | "idiv" | "min" | "max" | "avg" | "count" | "popcount" | "gt_vec" => {
            fold(name, args)
        }
        "mod" | "rem" => remainder(name, args),
        "neg" | "abs" | "ceil" | "floor" | "round" => one_number(name, args),
        "eq" | "ne" | "lt" | "le" | "gt" | "ge" => compare(name, args),
        "not" => truth(args).map(|value| (!value).to_string()).ok_or_else(|| "a Boolean is expected".into()),
        "and" | "nand" => logic(args, true).map(|value| (value == (name == "and")).to_string()),
        "or" | "nor" => logic(args, false).map(|value| (value == (name == "or")).to_string()),
        "if" => {
            let words = words(args);
            let word = |at: usize| words.get(at).cloned().unwrap_or_default();
            match truth(&word(0)) {
                Some(condition) => Ok(word(if condition { 1 } else { 2 })),
                None => Err("a Boolean is expected first".into()),
            }
        }
        "in" => {
            let mut words = words(args).into_iter().map(|word| without_quotes(&word));
            let first = words.next();
            Ok(words.any(|word| Some(&word) == first.as_ref()).to_string())
        }
        "first" => Ok(shift(args).0),
        "length" => Ok(args.len().to_string()),
        "unquote" => Ok(without_quotes(args)),
        "quote" => Ok(quote(args)),
        "sprintf" => sprintf(args),
        "random" => random_number(args, random),
        "htons" | "ntohs" | "htonl" | "ntohl" => match Number::parse(args) {
            Some(Number::Int(value)) if name.ends_with('s') => Ok((value as u16).to_be().to_string()),
            Some(Number::Int(value)) => Ok((value as u32).to_be().to_string()),
            _ => Err("an integer is expected".into()),
        },
        _ => return None,
    })
}

fn numbers(args: &str) -> Option<Vec<Number>> {
    words(args).iter().map(|word| Number::parse(word)).collect()
}

fn fold(name: &str, args: &str) -> Result<String, String> {
    let numbers = numbers(args).ok_or("a list of numbers is expected")?;
    match name {
        "count" => return Ok(numbers.len().to_string()),
        "popcount" => return Ok(numbers.iter().filter(|number| number.real() != 0.0).count().to_string()),
        "gt_vec" => {
            let bound = numbers.first().map_or(0.0, |number| number.real());
            return Ok(numbers.iter().skip(1).filter(|number| number.real() > bound).count().to_string());
        }
        _ => {}
    }
    let Some((&first, others)) = numbers.split_first() else {
        return Ok(if matches!(name, "add" | "sub") { "0" } else { "1" }.to_string());
    };
    let whole = |number: &Number| matches!(number, Number::Int(_));
    let divides = matches!(name, "div" | "idiv");
    let sum = if !divides && numbers.iter().all(whole) {
        let ints = numbers.iter().map(|number| if let Number::Int(value) = number { *value } else { 0 });
        // Integers wrap, as in Click.
        let fold = |what: fn(i64, i64) -> i64| Number::Int(ints.clone().reduce(what).unwrap_or(0));
        match name {
            "add" | "avg" => fold(i64::wrapping_add),
            "sub" => fold(i64::wrapping_sub),
            "mul" => fold(i64::wrapping_mul),
            "min" => fold(i64::min),
            _ => fold(i64::max),
        }
    } else {
        let step = |a: f64, b: &Number| match name {
            "add" | "avg" => a + b.real(),
            "sub" => a - b.real(),
            "mul" => a * b.real(),
            "min" => a.min(b.real()),
            "max" => a.max(b.real()),
            _ => a / b.real(),
        };
        Number::Real(others.iter().fold(first.real(), step))
    };
    Ok(match (name, sum) {
        ("avg", Number::Int(sum)) => (sum / numbers.len() as i64).to_string(),
        ("avg", Number::Real(sum)) => real_text(sum / numbers.len() as f64),
        ("idiv", sum) => (sum.real() as i64).to_string(),
        (_, sum) => sum.text(),
    })
}

fn remainder(name: &str, args: &str) -> Result<String, String> {
    match numbers(args).as_deref() {
        Some([Number::Int(_), Number::Int(0)]) => Err("there is no remainder of a division by 0".into()),
        Some([Number::Int(a), Number::Int(b)]) => Ok(a.wrapping_rem(*b).to_string()),
        Some([a, b]) if name == "rem" => Ok(real_text(a.real() % b.real())),
        _ => Err("two numbers are expected".into()),
    }
}

fn one_number(name: &str, args: &str) -> Result<String, String> {
    let number = Number::parse(args).ok_or("one number is expected")?;
    Ok(match (name, number) {
        ("neg", Number::Int(value)) => Number::Int(value.wrapping_neg()),
        ("abs", Number::Int(value)) => Number::Int(value.wrapping_abs()),
        (_, Number::Int(value)) => Number::Int(value),
        ("neg", Number::Real(value)) => Number::Real(-value),
        ("abs", Number::Real(value)) => Number::Real(value.abs()),
        ("ceil", Number::Real(value)) => Number::Real(value.ceil()),
        ("floor", Number::Real(value)) => Number::Real(value.floor()),
        (_, Number::Real(value)) => Number::Real(value.round()),
    }
    .text())
}

fn compare(name: &str, args: &str) -> Result<String, String> {
    let words = words(args);
    let [a, b] = words.as_slice() else { return Err("two numbers or texts are expected".into()) };
    let order = match (Number::parse(a), Number::parse(b)) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => Some(a.cmp(&b)),
        (Some(a), Some(b)) => a.real().partial_cmp(&b.real()),
        _ => Some(without_quotes(a).as_bytes().cmp(without_quotes(b).as_bytes())),
    };
    let Some(order) = order else { return Ok((name == "ne").to_string()) };
    let holds = match name {
        "eq" => order.is_eq(),
        "ne" => order.is_ne(),
        "lt" => order.is_lt(),
        "le" => order.is_le(),
        "gt" => order.is_gt(),
        _ => order.is_ge(),
    };
    Ok(holds.to_string())
}

/// Whether all (`every`) or any of the words are true.
fn logic(args: &str, every: bool) -> Result<bool, String> {
    let values = words(args).iter().map(|word| truth(word)).collect::<Option<Vec<bool>>>();
    let values = values.ok_or("a list of Booleans is expected")?;
    Ok(if every { values.iter().all(|value| *value) } else { values.iter().any(|value| *value) })
}

fn random_number(args: &str, random: &mut dyn FnMut(u64) -> u64) -> Result<String, String> {
    let limits: Option<Vec<u32>> = words(args).iter().map(|word| plain(word, parse::u32)).collect();
    let (low, high) = match limits.as_deref() {
        Some([]) => (0, i32::MAX as u32),
        Some([count]) if *count > 0 => (0, count - 1),
        Some([low, high]) if low <= high => (*low, *high),
        _ => return Err("nothing, a number above 0, or two numbers in order are expected".into()),
    };
    Ok((u64::from(low) + random(u64::from(high - low) + 1)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> String {
        let (name, args) = shift(text);
        match call(&name, &args, &mut |below| below - 1) {
            Some(Ok(value)) => value,
            Some(Err(message)) => format!("error: {message}"),
            None => "none".into(),
        }
    }

    #[test]
    fn numbers_are_computed_as_click_s_manual_says() {
        let cases = [
            ("add 10 5 2", "17"),
            ("sub 10 5 2", "3"),
            ("mul 0x10 -2", "-32"),
            ("div 10 4", "2.5"),
            ("idiv 10 4", "2"),
            ("div 1 0", "inf"),
            ("add 1.5 1", "2.5"),
            ("add", "0"),
            ("mod 7 3", "1"),
            ("rem 7.5 2", "1.5"),
            ("neg 5", "-5"),
            ("abs -5.25", "5.25"),
            ("ceil 1.2", "2"),
            ("floor 1.8", "1"),
            ("floor -1.2", "-2"),
            ("round 1.5", "2"),
            ("round -1.4", "-1"),
            ("round 7", "7"),
            ("min 5 10 2", "2"),
            ("max 5 10 2", "10"),
            ("avg 5 10 3", "6"),
            ("count 5 0 2", "3"),
            ("popcount 5 0 2", "2"),
            ("gt_vec 5 0 2 7", "1"),
            ("div 1 3", "0.333333333333"),
            ("mul 1e15 1.0", "1e+15"),
            ("div 1 1000000", "1e-06"),
            ("add 9223372036854775807 1", "-9223372036854775808"),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn comparisons_and_texts() {
        let cases = [
            ("eq 10 0xA", "true"),
            ("eq 10x 10x", "true"),
            ("le 9 8", "false"),
            ("lt abc \"abd\"", "true"),
            ("ne 1.0 1", "false"),
            ("ge 2 10", "false"),
            ("not true", "false"),
            ("and true yes 0", "false"),
            ("or false 1", "true"),
            ("nand true true", "false"),
            ("nor", "true"),
            ("if true a b", "a"),
            ("if 0 a b", "b"),
            ("in foo bar \"foo\"", "true"),
            ("first a b c", "a"),
            ("length abcdef", "6"),
            ("unquote \"a b\"", "a b"),
            ("random 5", "4"),
            ("random 7 9", "9"),
            ("nonsense 1", "none"),
            ("htons 1", if cfg!(target_endian = "little") { "256" } else { "1" }),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text), expected, "{text}");
        }
        for wrong in
            ["add a", "mod 1 0", "mod 1.5 2", "neg x", "eq 1", "not 7", "and x", "random 0", "if x 1 2"]
        {
            assert!(value(wrong).starts_with("error: "), "{wrong}: {}", value(wrong));
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_a_function_panic(
            name in "add|sub|mul|div|idiv|mod|rem|neg|abs|eq|if|in|random|sprintf|and|avg|length|htons",
            args in "([-+0-9.ex%dsuxc\"' ]{0,20})|.{0,20}",
        ) {
            let _ = call(&name, &args, &mut |below| below / 2);
        }

        #[test]
        fn real_numbers_keep_twelve_digits(value in -1e20f64..1e20) {
            let read: f64 = real_text(value).parse().unwrap();
            prop_assert!((read - value).abs() <= value.abs() * 1e-11);
        }
    }
}
