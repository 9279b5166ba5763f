//! `RandomSeed`: accepted, so that configurations load unchanged.

use click::config::parse;
use diag::Spanned;
use element::value::set;
use element::{Class, Element, Opaque, PortCodes, Row, StateScope};

/// The class.
pub const CLASS: Class = Class {
    name: "RandomSeed",
    summary: "sets the random seed; has no effect here",
    page: "\
# RandomSeed([SEED])

Has no effect.

- **ports**: none
- **arguments**: `SEED`: a number
- **handlers**: `seed` (read/write): what was written
- **difference**: random numbers depend on the names of the elements that draw them and on their worker only, so that
  every run can be repeated
",
    codes: PortCodes::new("0/0", "a/a"),
    state: StateScope::None,
    make: |cx| {
        cx.opaque(|args| {
            let seed = args.positional("SEED", seed).unwrap_or_default();
            Some(RandomSeed { seed })
        })
    },
};

struct RandomSeed {
    seed: String,
}

/// A number as it was written, or nothing.
fn seed(text: &Spanned, names: &dyn click::config::Names) -> click::config::Parsed<String> {
    if !text.as_str().is_empty() {
        parse::u32(text, names)?;
    }
    Ok(text.text.to_string())
}

impl Opaque for RandomSeed {}

impl Element for RandomSeed {
    element::facts!(writes: false, handlers: HANDLERS);
}

const HANDLERS: &[Row<RandomSeed>] = &[Row::read_write(
    "seed",
    |this, _| Some(this.seed.clone()),
    |this, value, _| set(&mut this.seed, value, seed),
)];
