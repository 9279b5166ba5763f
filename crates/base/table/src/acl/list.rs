//! Rule lists over addresses, ports and protocol, as elements export them.

/// A set of packets by addresses, ports and protocol: first and last value of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FiveTuple {
    /// Source address.
    pub src: (u32, u32),
    /// Destination address.
    pub dst: (u32, u32),
    /// Source port; 65,536 where there are no ports.
    pub sport: (u32, u32),
    /// Destination port.
    pub dport: (u32, u32),
    /// Protocol.
    pub proto: (u32, u32),
}

/// A list of boxes: the first box that contains a packet decides.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RuleList {
    /// The boxes, and whether their packets are dropped.
    pub boxes: Vec<(FiveTuple, bool)>,
    /// Whether packets in none of them are dropped; `None` if that depends on more.
    pub others_dropped: Option<bool>,
}
