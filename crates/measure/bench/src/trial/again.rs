//! Repeats measurements that something else disturbed.

/// The most repeats of a disturbed trial.
pub const REPEATS: usize = 3;

/// Measures, and repeats the measurement while it is disturbed, up to `most` times. Returns the last
/// measurement and the number of repeats.
///
/// # Errors
/// As `measure`.
pub fn again<T, E>(
    most: usize,
    mut measure: impl FnMut() -> Result<T, E>,
    is_disturbed: impl Fn(&T) -> bool,
) -> Result<(T, usize), E> {
    let mut measured = measure()?;
    for repeated in 0..most {
        if !is_disturbed(&measured) {
            return Ok((measured, repeated));
        }
        measured = measure()?;
    }
    Ok((measured, most))
}

#[cfg(test)]
mod tests {
    use super::again;

    #[test]
    fn what_is_disturbed_is_measured_again_a_few_times() {
        let measured = |most, quiet_at| {
            let mut count = 0;
            let measure = || {
                count += 1;
                if count == 5 { Err("it broke") } else { Ok(count) }
            };
            again(most, measure, |count| *count < quiet_at)
        };
        assert_eq!(measured(3, 1), Ok((1, 0)));
        assert_eq!(measured(3, 3), Ok((3, 2)));
        assert_eq!(measured(3, 9), Ok((4, 3)));
        assert_eq!(measured(0, 9), Ok((1, 0)));
        assert_eq!(measured(9, 9), Err("it broke"));
    }
}
