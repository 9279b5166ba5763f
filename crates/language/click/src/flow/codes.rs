//! Port count, processing and flow codes.

use super::Processing;
use crate::{Classes, ElementId, Graph, PortCodes};

/// The port codes of an element, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The least and the most inputs.
    inputs: (u32, u32),
    outputs: Outputs,
    /// Processing of inputs and outputs; the last entry applies to all further ports.
    processing: [Vec<Processing>; 2],
    /// Flow codes of inputs and outputs; the last entry applies to all further ports.
    flow: [Vec<PortCode>; 2],
}

/// An invalid code. Element classes contain the codes, so this is an error of the class, not of the user's
/// configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{code}` is not a {kind} code; see click's element.hh for how they are written")]
pub struct CodeError {
    /// The code.
    pub code: String,
    /// What kind of code it is.
    pub kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outputs {
    Range(u32, u32),
    /// The number of inputs plus this number.
    Equal(u32),
}

impl PortSpec {
    /// Parses the three codes of an element: port count (`"1/1"`, `"1-2/0"`, `"-/="`, `"1-/=+"`),
    /// processing (`"a/ah"`) and flow (`"x/x"`, `"#/[^#]"`).
    ///
    /// # Errors
    /// When a code is not well formed.
    pub fn new(port_count: &str, processing: &str, flow: &str) -> Result<PortSpec, CodeError> {
        let bad = |code: &str, kind| CodeError { code: code.to_owned(), kind };
        let (inputs, outputs) = counts(port_count).ok_or_else(|| bad(port_count, "port count"))?;
        let side = |code: &str| -> Option<Vec<Processing>> {
            let ports: Option<Vec<Processing>> = code
                .chars()
                .map(|c| match c.to_ascii_lowercase() {
                    'h' => Some(Processing::Push),
                    'l' => Some(Processing::Pull),
                    'a' => Some(Processing::Agnostic),
                    _ => None,
                })
                .collect();
            ports.filter(|ports| !ports.is_empty())
        };
        let processing = both(processing, side).ok_or_else(|| bad(processing, "processing"))?;
        let flow = both(flow, port_codes).ok_or_else(|| bad(flow, "flow"))?;
        Ok(PortSpec { inputs, outputs, processing, flow })
    }

    /// The numbers of inputs and outputs of the element when the configuration uses these.
    pub(super) fn counts(&self, inputs: u32, outputs: u32) -> (u32, u32) {
        let inputs = inputs.clamp(self.inputs.0, self.inputs.1);
        let outputs = match self.outputs {
            Outputs::Range(min, max) => outputs.clamp(min, max),
            Outputs::Equal(more) => inputs.saturating_add(more),
        };
        (inputs, outputs)
    }

    /// The processing of the first `count` inputs or outputs.
    pub(crate) fn processing(&self, output: bool, count: u32) -> Vec<Processing> {
        let codes = &self.processing[usize::from(output)];
        (0..count).map(|port| nth_or_last(codes, port).unwrap_or(Processing::Agnostic)).collect()
    }

    /// Whether packets that enter by `input` may leave by `output`.
    pub fn flows(&self, input: u32, output: u32) -> bool {
        match (nth_or_last(&self.flow[0], input), nth_or_last(&self.flow[1], output)) {
            (Some(from), Some(to)) => from.matches(to, input == output),
            _ => false,
        }
    }

    /// Whether the flow code uses port numbers (`#`).
    pub(super) fn tells_ports_apart(&self) -> bool {
        self.flow.iter().flatten().any(|code| code.number)
    }

    /// The class of an input or output: ports of one class have the same flow code.
    pub(super) fn class(&self, output: bool, port: u32) -> usize {
        (port as usize).min(self.flow[usize::from(output)].len().saturating_sub(1))
    }

    /// A description for messages: "one input", "1 to 3 inputs", "at least 2 outputs".
    pub(super) fn describe(&self, output: bool) -> String {
        let what = if output { "output" } else { "input" };
        let (min, max) = match (output, self.outputs) {
            (false, _) => self.inputs,
            (true, Outputs::Range(min, max)) => (min, max),
            (true, Outputs::Equal(0)) => return "as many outputs as inputs".into(),
            (true, Outputs::Equal(more)) => return format!("{more} more outputs than inputs"),
        };
        match (min, max) {
            (0, 0) => format!("no {what}s"),
            (1, 1) => format!("one {what}"),
            (0, u32::MAX) => format!("any number of {what}s"),
            (min, u32::MAX) => format!("at least {min} {what}s"),
            (min, max) if min == max => format!("{min} {what}s"),
            (0, max) => format!("at most {max} {what}s"),
            (min, max) => format!("{min} to {max} {what}s"),
        }
    }
}

/// The parsed port codes of an element. An element of an unknown class, which was reported, has no ports.
///
/// # Panics
/// When a code of its class is not well formed, which is an error of the class.
pub fn spec(graph: &Graph, id: ElementId, classes: &dyn Classes) -> PortSpec {
    let name = graph.element(id).map_or("?", |element| element.class.as_str());
    let unknown = PortCodes { ports: "0/0", processing: "a/a", flow: "x/x" };
    let codes = classes.codes(name).unwrap_or(unknown);
    match PortSpec::new(codes.ports, codes.processing, codes.flow) {
        Ok(spec) => spec,
        Err(error) => panic!("{error} in class {name}"),
    }
}

fn nth_or_last<T: Copy>(codes: &[T], port: u32) -> Option<T> {
    let port = usize::try_from(port).unwrap_or(usize::MAX);
    codes.get(port).or(codes.last()).copied()
}

/// Parses the code of each side; a code without `/` is that of both.
fn both<T>(code: &str, side: impl Fn(&str) -> Option<T>) -> Option<[T; 2]> {
    let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
    Some([side(inputs)?, side(outputs)?])
}

/// The least and the most inputs, and the outputs.
fn counts(code: &str) -> Option<((u32, u32), Outputs)> {
    let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
    let outputs = match outputs.strip_prefix('=') {
        Some(plus) if plus.bytes().all(|byte| byte == b'+') => {
            Outputs::Equal(u32::try_from(plus.len()).ok()?)
        }
        Some(_) => return None,
        None => {
            let (min, max) = range(outputs)?;
            Outputs::Range(min, max)
        }
    };
    Some((range(inputs)?, outputs))
}

/// Parses `2`, `1-2`, `2-`, `-2` or `-`.
fn range(code: &str) -> Option<(u32, u32)> {
    let number = |text: &str, default| match text {
        "" => Some(default),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    let (min, max) = match code.split_once('-') {
        Some((min, max)) => (number(min, 0)?, number(max, u32::MAX)?),
        None if code.is_empty() => return None,
        None => (number(code, 0)?, number(code, 0)?),
    };
    (min <= max).then_some((min, max))
}

/// One port's letters: a bit for each of `A`-`Z`, `a`-`z`, and whether `#` is among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortCode {
    letters: u64,
    number: bool,
    negated: bool,
}

impl PortCode {
    /// Whether two codes share a letter. `#` is a letter of its own for each port number.
    fn matches(self, other: PortCode, same_port: bool) -> bool {
        let letters = |code: PortCode| if code.negated { !code.letters } else { code.letters };
        if letters(self) & letters(other) & LETTERS != 0 {
            return true;
        }
        // `own`: whether a code matches the number of its own port; `foreign`: whether it matches other
        // numbers.
        let own = |code: PortCode| code.number != code.negated;
        let foreign = |code: PortCode| code.negated;
        if same_port {
            own(self) && own(other)
        } else {
            (own(self) && foreign(other)) || (foreign(self) && own(other))
        }
    }
}

/// The bits of letters.
const LETTERS: u64 = (1 << 52) - 1;

fn port_codes(text: &str) -> Option<Vec<PortCode>> {
    let mut codes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut letters;
        (letters, rest) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_once(']')?,
            None => rest.split_at(first.len_utf8()),
        };
        let mut code = PortCode { letters: 0, number: false, negated: false };
        if let Some(others) = letters.strip_prefix('^').filter(|_| first == '[') {
            (code.negated, letters) = (true, others);
        }
        letters.chars().try_for_each(|letter| code.add(letter))?;
        codes.push(code);
    }
    (!codes.is_empty()).then_some(codes)
}

impl PortCode {
    fn add(&mut self, c: char) -> Option<()> {
        match c {
            'A'..='Z' => self.letters |= 1 << (u32::from(c) - u32::from('A')),
            'a'..='z' => self.letters |= 1 << (26 + u32::from(c) - u32::from('a')),
            '#' => self.number = true,
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(code: &str, input: u32, output: u32) -> bool {
        PortSpec::new("-/-", "a/a", code).unwrap().flows(input, output)
    }

    #[test]
    fn flow_codes_as_the_documentation_of_click_explains_them() {
        assert!(flows("x/x", 3, 5));
        assert!(!flows("x/y", 0, 0));
        assert!(flows("xy/x", 0, 2) && !flows("xy/x", 1, 0));
        assert!(flows("#/#", 2, 2) && !flows("#/#", 2, 1));
        assert!(!flows("#/[^#]", 2, 2) && flows("#/[^#]", 2, 1));
        assert!(flows("xy/[xy]x", 0, 1) && flows("xy/[xy]x", 1, 0) && !flows("xy/[xy]x", 1, 1));
        assert!(flows("[x#][x#][x#]/x######", 0, 0));
        assert!(!flows("xy/xxyx", 0, 2) && flows("xy/xxyx", 1, 2));
        for bad in ["", "x/", "[x", "x/?"] {
            assert!(PortSpec::new("1/1", "a/a", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn port_counts_follow_what_is_used() {
        let counts =
            |code: &str, used: (u32, u32)| PortSpec::new(code, "a/a", "x/x").unwrap().counts(used.0, used.1);
        assert_eq!(counts("1/1", (3, 0)), (1, 1));
        assert_eq!(counts("1-2/0", (2, 2)), (2, 0));
        assert_eq!(counts("1/-6", (1, 9)), (1, 6));
        assert_eq!(counts("2-/-", (0, 7)), (2, 7));
        assert_eq!(counts("3", (0, 0)), (3, 3));
        assert_eq!(counts("1-/=", (4, 0)), (4, 4));
        assert_eq!(counts("1-/=+", (4, 0)), (4, 5));
        for bad in ["", "x", "2-1/1", "1/=-", "1/1/1"] {
            assert!(PortSpec::new(bad, "a/a", "x/x").is_err(), "{bad}");
        }
    }
}
