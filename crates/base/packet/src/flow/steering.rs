//! How packets are steered to the instances of one NF: names and bounds. `elements::steer` applies them.

/// The most instances of an NF: a word has a bit for each.
pub const MOST_INSTANCES: usize = 64;

/// How an instance of an NF is chosen for each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SteeringPolicy {
    /// By flow, both directions alike.
    Flow,
    /// The instance that has the fewest packets.
    LeastFilled,
    /// By the source's address.
    Source,
    /// By the destination's address.
    Destination,
    /// By the interface that a packet comes in by.
    Interface,
    /// By the paint annotation.
    Paint,
}

impl SteeringPolicy {
    /// All, in the order in which they are listed to users.
    pub const ALL: [SteeringPolicy; 6] = [
        SteeringPolicy::Flow,
        SteeringPolicy::LeastFilled,
        SteeringPolicy::Source,
        SteeringPolicy::Destination,
        SteeringPolicy::Interface,
        SteeringPolicy::Paint,
    ];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            SteeringPolicy::Flow => "flow",
            SteeringPolicy::LeastFilled => "least-filled",
            SteeringPolicy::Source => "source",
            SteeringPolicy::Destination => "destination",
            SteeringPolicy::Interface => "interface",
            SteeringPolicy::Paint => "paint",
        }
    }
}
