//! The request of a new flow.

use super::flow::{FlowId, Kind};

/// Output ports of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outputs {
    /// For the flow that made it.
    pub forward: u8,
    /// For its replies.
    pub reply: u8,
}

/// A new flow that asks for a mapping.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The flow.
    pub flow: FlowId,
    /// Which packets are of one flow.
    pub kind: Kind,
    /// Its protocol.
    pub protocol: u8,
    /// Whether a value of a range may serve only one source, whatever that talks to.
    pub exclusive: bool,
    /// Whether the replies to a flow have no mapping yet.
    pub is_free: &'a dyn Fn(FlowId) -> bool,
}
