//! Random chains with queues: packets pass them, or wait in them, and the result is the same.

use super::{Choices, Setup, THROUGH, all_do_the_same, chain, frame};
use crate::registry;

/// An element with a queue and what pulls from it; `@` is the element.
const QUEUED: &[&str] = &[
    "@",
    "Queue(5000) -> Unqueue -> @",
    "@ -> ThreadSafeQueue(5000) -> Counter -> Unqueue -> Counter",
    "NotifierQueue(5000) -> Unqueue -> FullNoteQueue(5000) -> Unqueue -> @",
];

/// The same for an element that packets are pulled through.
const PULLED: &str = "FrontDropQueue(5000) -> @ -> Unqueue(-1)";

/// Whether packets may be pulled through an element. One that makes several of a packet has no place for the
/// others.
fn is_agnostic(what: &str) -> bool {
    let class = what.split('(').next().and_then(registry::find);
    class.is_some_and(|class| class.codes.processing.starts_with('a') && class.name != "IPFragmenter")
}

/// The same chain with queues beside its elements and in front of its ports.
fn with_queues(text: &str, choices: &mut Choices<'_>) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let declared = line.strip_suffix(';').and_then(|line| line.split_once(" :: "));
        let has_one_output = |name: &str| !text.contains(&format!("{name}[1]"));
        out += &match declared.filter(|(name, what)| THROUGH.contains(what) && has_one_output(name)) {
            Some((name, what)) => {
                let is_pulled = choices.byte().is_multiple_of(4) && is_agnostic(what);
                let queued = if is_pulled { PULLED } else { choices.one_of(QUEUED) };
                format!("{name} :: {{ input -> {} -> output }};\n", queued.replace('@', what))
            }
            None if choices.byte().is_multiple_of(2) => {
                line.replace("-> ToDevice(", "-> Queue(5000) -> Counter -> ToDevice(") + "\n"
            }
            None => line.to_string() + "\n",
        };
    }
    out
}

/// Runs the chain that the bytes encode with queues in which packets wait, and in all ways with queues that
/// they pass. Returns the number of packets that the flow cache handled.
///
/// # Panics
/// If the results differ.
pub fn fuzz_queues(data: &[u8]) -> u64 {
    let mut choices = Choices(data);
    let text = chain(&mut choices, false);
    let text = with_queues(&text, &mut choices);
    let burst = 1 + choices.byte() % 64;
    let frames = (0..4 + choices.byte() % 30).map(|_| frame(&mut choices)).collect();
    all_do_the_same(&Setup { text, frames, burst, step_ns: 0, is_timed: false }).hits
}
