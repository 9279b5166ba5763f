//! How packets are steered to the instances of one NF: names and bounds.

/// The most instances of an NF: one bit of a word for each.
pub const MOST_INSTANCES: usize = 64;

/// How an instance of an NF is chosen for each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SteeringPolicy {
    /// By flow, the same instance for both directions.
    Flow,
    /// The instance with the fewest packets.
    LeastFilled,
    /// By source address.
    Source,
    /// By destination address.
    Destination,
    /// By the interface that receives the packet.
    Interface,
    /// By the paint annotation.
    Paint,
}

impl SteeringPolicy {
    /// All, in the order of users' lists.
    pub const ALL: [SteeringPolicy; 6] = [
        SteeringPolicy::Flow,
        SteeringPolicy::LeastFilled,
        SteeringPolicy::Source,
        SteeringPolicy::Destination,
        SteeringPolicy::Interface,
        SteeringPolicy::Paint,
    ];

    /// The name that users write.
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
