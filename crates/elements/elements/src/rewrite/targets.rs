//! What the flows of a rewriter were sent to: whether two of them may become the same.

use super::flow::FlowId;

/// The targets of all mappings since there was none.
#[derive(Default, Debug)]
pub struct Targets {
    first: Option<(u32, u16)>,
    has_addresses: bool,
    has_ports: bool,
    /// Whether mappings change ports of targets, and sources.
    sets_ports: bool,
    sets_sources: bool,
}

impl Targets {
    /// Adds a flow that becomes another one.
    pub fn add(&mut self, flow: FlowId, to: FlowId) {
        let (address, port) = *self.first.get_or_insert((flow.dst, flow.dport));
        self.has_addresses |= flow.dst != address;
        self.has_ports |= flow.dport != port;
        self.sets_ports |= flow.dport != to.dport;
        self.sets_sources |= (flow.src, flow.sport) != (to.src, to.sport);
    }

    /// Whether two of the flows may become the same: they differ in what mappings replace.
    pub fn may_become_one(&self) -> bool {
        self.has_addresses || self.has_ports && self.sets_ports || self.sets_sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(dst: u32, dport: u16) -> FlowId {
        FlowId { src: 1, sport: 2, dst, dport }
    }

    #[test]
    fn flows_to_one_service_differ_in_what_is_kept() {
        let mut targets = Targets::default();
        for dport in [80, 443] {
            targets.add(flow(9, dport), flow(10, dport));
            assert!(!targets.may_become_one());
        }
        targets.add(flow(8, 80), flow(10, 80));
        assert!(targets.may_become_one());
        let mut targets = Targets::default();
        targets.add(flow(9, 80), flow(10, 80));
        targets.add(flow(9, 8080), flow(10, 80));
        assert!(targets.may_become_one());
        let mut targets = Targets::default();
        targets.add(flow(9, 80), FlowId { src: 3, ..flow(9, 80) });
        assert!(targets.may_become_one());
    }
}
