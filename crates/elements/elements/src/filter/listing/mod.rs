//! Rules as Click lists them: a sequence of tests of four-byte words.
//!
//! The handler `program` of the classifiers shows this list, because scripts of Click's users read it. It
//! says the same as the [graph](super::graph) that runs, and is made only when it is read.
//!
//! A step compares four bytes under a mask. `256` is the first byte of the IP header and `512` that of the
//! transport header, as in Click; `2` is the first byte of an Ethernet header before an IP header. A packet
//! that ends before a byte of the mask fails the step, or passes it where it ends with `short->yes`. Words
//! are numbers of which the first byte is the highest.
//!
//! - `rules`: from expressions and clauses to steps
//! - `shorten`: leaves out steps that are decided before them, and merges others

mod rules;
mod shorten;

use std::fmt::Write;

pub use rules::{Clause, of_clauses, of_ip};

/// From so many values of one word on they are listed in the order of Click's binary search.
const FEWEST_SORTED: usize = 7;

/// Where a step leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Jump {
    /// To what follows where the expression of the step matches.
    Match,
    /// To what follows where it does not.
    Fail,
    /// Out of this output.
    Output(u32),
    /// The packet is dropped.
    Drop,
    /// To a later step.
    Step(usize),
}

/// A test of one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    at: u16,
    mask: u32,
    value: u32,
    /// Whether a packet that is too short passes.
    short: bool,
    /// Where it leads if the test fails, and if it passes.
    jumps: [Jump; 2],
}

impl Step {
    /// The number of bytes that the test needs, from the first on.
    fn reach(&self) -> usize {
        match self.mask.trailing_zeros() {
            32 => 0,
            zeros => usize::from(self.at) + 4 - zeros as usize / 8,
        }
    }
}

/// Steps; the first is where packets start.
#[derive(Clone, Debug, Default)]
struct Steps {
    steps: Vec<Step>,
    /// Where all packets go, if there are no steps.
    all: Option<Jump>,
}

fn jump_name(way: Jump, number: impl Fn(usize) -> usize) -> String {
    match way {
        Jump::Output(output) => format!("[{output}]"),
        Jump::Step(step) => format!("step {}", number(step)),
        Jump::Drop | Jump::Match | Jump::Fail => "[X]".into(),
    }
}

impl Steps {
    /// The bytes that a packet must have for no test to find it too short.
    fn safe_length(&self) -> usize {
        self.steps.iter().map(Step::reach).max().unwrap_or(0)
    }

    /// The list. With `grouped`, steps in a row that compare one word with several values and lead to one
    /// place stand together.
    fn text(&self, grouped: bool) -> String {
        let mut text = String::new();
        let groups = if grouped { self.groups() } else { (0..self.steps.len()).map(|at| vec![at]).collect() };
        let mut numbers = vec![0; self.steps.len()];
        let mut count = 0;
        for group in &groups {
            numbers[group[0]] = count;
            count += group.len();
        }
        for group in &groups {
            let (head, last) = (&self.steps[group[0]], &self.steps[group[group.len() - 1]]);
            let mut values: Vec<u32> = group.iter().map(|at| self.steps[*at].value).collect();
            if values.len() >= FEWEST_SORTED {
                // Click sorts words as its little-endian machines read them.
                values.sort_by_key(|value| value.swap_bytes());
            }
            let first = numbers[group[0]];
            let yes = jump_name(head.jumps[1], |step| numbers[step]);
            for (number, value) in (first..).zip(&values) {
                let no = if number + 1 < first + values.len() {
                    format!("step {}", number + 1)
                } else {
                    jump_name(last.jumps[0], |step| numbers[step])
                };
                let short = if head.short { "  short->yes" } else { "" };
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "{number:2} {:3}/{value:08x}%{:08x}  yes->{yes}  no->{no}{short}",
                    head.at, head.mask
                );
            }
        }
        if self.steps.is_empty() {
            let _ = writeln!(text, "all->{}", jump_name(self.all.unwrap_or(Jump::Drop), |step| step));
        }
        let _ = writeln!(text, "safe length {}\nalignment offset 0", self.safe_length());
        text
    }

    /// The steps by groups, in the order of the list.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut entries = vec![0; self.steps.len()];
        if let Some(first) = entries.first_mut() {
            *first = 1;
        }
        for step in &self.steps {
            for way in step.jumps {
                if let Jump::Step(to) = way {
                    entries[to] += 1;
                }
            }
        }
        let mut grouped = vec![false; self.steps.len()];
        let mut groups = vec![];
        for at in 0..self.steps.len() {
            if grouped[at] {
                continue;
            }
            let head = &self.steps[at];
            let (mut group, mut no) = (vec![at], head.jumps[0]);
            while let Jump::Step(next) = no {
                let step = &self.steps[next];
                let same = step.jumps[1] == head.jumps[1] && step.at == head.at && step.mask == head.mask;
                if !same || entries[next] != 1 {
                    break;
                }
                grouped[next] = true;
                group.push(next);
                no = step.jumps[0];
            }
            groups.push(group);
        }
        groups
    }
}
