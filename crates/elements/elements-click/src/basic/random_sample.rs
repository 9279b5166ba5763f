//! `RandomSample`: emits packets at random.

use click::config::parse;
use element::random;
use element::value::{cell_text, fixed_point_text, set_cell, written};
use element::{BoxElement, Class, Configure, Element, PortCodes, Row, StateScope, Transparent};
use ir::Builder;
use ir::expr::cell;

/// The class.
pub const CLASS: Class = Class {
    name: "RandomSample",
    summary: "samples packets with some probability",
    page: "\
# RandomSample([P, keywords SAMPLE, DROP, ACTIVE])

Lets each packet pass with probability P. The others leave by output 1.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets that do not pass are pushed out of output 1
- **arguments**: `P`, or `SAMPLE`: the probability (0 to 1); `DROP`: the probability of not passing, instead;
  `ACTIVE` (default true): false lets all packets pass
- **handlers**: `sampling_prob`, `drop_prob`, `active` (read/write); `drops` (read): packets that did not
  pass
- **drop reasons**: `not-sampled`
- **difference**: the sequence of random numbers depends on the element's name and worker only, so that a
  run can be repeated
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make,
};

/// Fraction bits of probabilities.
const SHIFT: u32 = 28;
const ONE: u32 = 1 << SHIFT;

const DROPS: u16 = 0;
const PROBABILITY: u16 = 1;
const ACTIVE: u16 = 2;

struct RandomSample {
    probability: u32,
    active: bool,
    seed: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let seed = random::seed(cx);
    let mut args = cx.args();
    let bare = args.positional("P", parse::fixed_point(SHIFT));
    let sample = args.keyword("SAMPLE", parse::fixed_point(SHIFT));
    let drop = args.keyword("DROP", parse::fixed_point(SHIFT));
    let active = args.keyword("ACTIVE", parse::bool).unwrap_or(true);
    let span = args.span();
    if !args.finish() {
        return None;
    }
    let probability = match (sample, drop) {
        (Some(_), Some(_)) => {
            cx.error(span, "give at most one of SAMPLE and DROP");
            return None;
        }
        (None, Some(drop)) => ONE.checked_sub(drop),
        (sample, None) => sample.or(bare).filter(|probability| *probability <= ONE),
    };
    let Some(probability) = probability else {
        cx.error(span, "a sampling probability between 0 and 1 is expected");
        return None;
    };
    Some(BoxElement::transparent(RandomSample { probability, active, seed }))
}

impl Transparent for RandomSample {
    fn build(&self, f: &mut Builder) {
        f.name("RandomSample");
        let drops = f.cell("drops", 0);
        let probability = f.cell("sampling_prob", u64::from(self.probability));
        let active = f.cell("active", u64::from(self.active));
        let state = f.cell("state", self.seed);
        let pass = f.aside(|f| f.emit(0));
        let refuse = f.aside(|f| {
            f.add_to_cell(drops, 1);
            f.emit_or_drop(1, "not-sampled");
        });
        f.check(cell(active), pass);
        let number = random::next(f, state) & u64::from(ONE - 1);
        f.branch_to(number.less_than(cell(probability)), pass, refuse);
    }
}

impl Element for RandomSample {
    element::facts!(handlers: HANDLERS);
}

/// A probability and its complement.
fn probability(value: &str) -> Result<(u32, u32), String> {
    let number = written(value, parse::fixed_point(SHIFT))?;
    let rest = ONE.checked_sub(number).ok_or("a number between 0.0 and 1.0 is expected")?;
    Ok((number, rest))
}

const HANDLERS: &[Row<RandomSample>] = &[
    Row::read_write(
        "sampling_prob",
        |_, cells| Some(fixed_point_text(*cells.get(usize::from(PROBABILITY))?, SHIFT)),
        |_, value, cells| set_cell(cells, PROBABILITY, probability(value)?.0),
    ),
    Row::read_write(
        "drop_prob",
        |_, cells| {
            let probability = *cells.get(usize::from(PROBABILITY))?;
            Some(fixed_point_text(u64::from(ONE).saturating_sub(probability), SHIFT))
        },
        |_, value, cells| set_cell(cells, PROBABILITY, probability(value)?.1),
    ),
    Row::read_write(
        "active",
        |_, cells| Some((*cells.get(usize::from(ACTIVE))? != 0).to_string()),
        |_, value, cells| set_cell(cells, ACTIVE, written(value, parse::bool)?),
    ),
    Row::sum("drops", |_, cells| cell_text(cells, DROPS)),
];
