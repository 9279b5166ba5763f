//! Mistakes of this program, kept from those who did not make them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does what somebody asked for. A panic ends that alone, and is an answer: whose mistake it is, and what was
/// said.
///
/// Whoever calls this goes on with what it shares with `work`: that must be fine to use, if perhaps
/// incomplete, wherever `work` stopped. Nobody waits for a lock for ever: locks are taken though they are
/// poisoned.
///
/// # Errors
/// When it panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| sentence(panic.as_ref()))
}

fn sentence(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said =
        said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it does not say what");
    format!(
        "this is a mistake of Millrace, not yours, and nothing else is affected: {said}; please report it with what you \
         asked for"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(caught(|| 7), Ok(7));
        let (zero, numbers) = (std::hint::black_box(0), [1_u32]);
        for answer in [
            caught(|| numbers[zero + 3]),
            caught(|| -> u32 { panic!("index out of {}", "bounds") }),
            caught(|| -> u32 { panic!("out of bounds") }),
        ] {
            let why = answer.expect_err("it panics");
            assert!(why.contains("a mistake of Millrace") && why.contains("bounds"), "{why}");
        }
        assert!(caught(|| std::panic::panic_any(5)).is_err_and(|why| why.contains("does not say")));
    }
}
