//! What a tester works with, and how.

use port::Port;
use shm::PacketPool;
use std::time::Duration;

/// The tester's two ports, and its packet memory.
pub struct Ends {
    /// By which it sends.
    pub send: Box<dyn Port>,
    /// By which it receives; `None` where that is the same.
    pub receive: Option<Box<dyn Port>>,
    /// Where its packets lie.
    pub pool: PacketPool,
}

/// How to test.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WireOptions {
    /// The core that the tester's thread is pinned to.
    pub core: Option<usize>,
    /// Frames that are sent, or received, at a time.
    pub burst: usize,
    /// For how long nothing comes before a trial counts as over. Longer than any frame takes through the system.
    pub quiet: Duration,
    /// The share of a trial's time by which the tester may go on with what was due before the end.
    pub grace: f64,
    /// How long the system may take to work off what it holds when all is sent.
    pub drain: Duration,
}

impl Default for WireOptions {
    fn default() -> WireOptions {
        WireOptions {
            core: None,
            burst: 64,
            quiet: Duration::from_millis(30),
            grace: 0.01,
            drain: Duration::from_secs(2),
        }
    }
}
