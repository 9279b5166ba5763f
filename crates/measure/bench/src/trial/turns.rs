//! Variants that take turns: in a round each is measured once, and what the machine does meanwhile hits neighbours alike.

/// In which order variants have their turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The same in every round.
    Forward,
    /// Every other round from the last to the first: what changes slowly is shared, too.
    BackAndForth,
}

/// Gives each variant its turn in so many rounds, the first of which is 1. Those that are skipped, before or after an
/// earlier turn, have none.
///
/// # Errors
/// The first of a turn, with which the rounds end. A variant that cannot be measured is no error: its turn notes that it is
/// skipped from then on.
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
            // The second one fails in its second turn, and has no third.
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
