//! The ports and the options of a tester.

use port::Port;
use shm::PacketPool;
use std::time::Duration;

/// The tester's two ports, and its packet memory.
pub struct Ends {
    /// The sending port.
    pub send: Box<dyn Port>,
    /// The receiving port; `None` where it is the same.
    pub receive: Option<Box<dyn Port>>,
    /// The packet memory of both ports.
    pub pool: PacketPool,
}

/// The options of a tester.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WireOptions {
    /// The core that the tester's thread is pinned to.
    pub core: Option<usize>,
    /// A trial ends after this long without a frame: longer than any frame takes through the system.
    pub quiet: Duration,
    /// How long after the end the tester may still send frames that were due, as a share of the trial's
    /// length.
    pub grace: f64,
}

impl Default for WireOptions {
    fn default() -> WireOptions {
        WireOptions { core: None, quiet: Duration::from_millis(30), grace: 0.01 }
    }
}
