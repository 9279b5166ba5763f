//! Variants that take turns: each round measures every variant once, so that changes of the machine affect
//! neighbours alike.

/// The order of variants in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The same order in every round.
    Forward,
    /// Every other round runs from the last variant to the first, so that slow changes also affect all
    /// variants alike.
    BackAndForth,
}

/// Gives each variant a turn in each of `rounds` rounds; the first round has the number 1. A skipped variant
/// has no further turns.
///
/// # Errors
/// The first error of a turn, which ends the rounds. A variant that cannot be measured is not an error: its
/// turn marks it as skipped.
pub fn by_turns<V, E>(
    rounds: usize,
    order: Order,
    variants: &mut [V],
    is_skipped: impl Fn(&V) -> bool,
    mut turn: impl FnMut(&mut V, usize) -> Result<(), E>,
) -> Result<(), E> {
    for round in 1..=rounds {
        let is_back = order == Order::BackAndForth && round.is_multiple_of(2);
        let last = variants.len().saturating_sub(1);
        for at in 0..variants.len() {
            let at = if is_back { last - at } else { at };
            match variants.get_mut(at) {
                Some(variant) if !is_skipped(variant) => turn(variant, round)?,
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(order: Order, rounds: usize) -> String {
        let mut told = String::new();
        let mut variants = ['a', 'b', 'c'];
        let turn = |variant: &mut char, round: usize| {
            told += &format!("{variant}{round} ");
            // The second variant fails in its second turn, and has no third.
            if (*variant, round) == ('b', 2) {
                *variant = '-';
            }
            if round == 4 { Err(()) } else { Ok(()) }
        };
        let ended = by_turns(rounds, order, &mut variants, |variant| *variant == '-', turn);
        assert_eq!(ended.is_ok(), rounds < 4);
        told
    }

    #[test]
    fn each_has_a_turn_in_each_round() {
        assert_eq!(order_of(Order::Forward, 3), "a1 b1 c1 a2 b2 c2 a3 c3 ");
        assert_eq!(order_of(Order::BackAndForth, 3), "a1 b1 c1 c2 b2 a2 a3 c3 ");
    }

    #[test]
    fn an_error_ends_the_rounds() {
        assert_eq!(order_of(Order::Forward, 5), "a1 b1 c1 a2 b2 c2 a3 c3 a4 ");
    }
}
