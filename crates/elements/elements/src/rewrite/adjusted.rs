//! Mappings that have more than their lines ([`super::sequence`]): how packets of them are changed.

use super::flow::{FlowId, Kind, LINE_BYTES, at};
use super::mappings::{Input, Mappings};
use super::sequence::{ADJUSTED, Adjusted, SEQ, adjust_header};
use packet::Access;
use packet::anno::AGGREGATE;
use packet::view::protocol::TCP;
use shm::Packet;
use shm::bytes::PacketBytesMut;
use table::flow::RecordId;

impl Mappings {
    /// The flow that a flow's packets become; makes the mapping by an input's specification, for a packet, if
    /// there is none.
    pub(super) fn map_flow(
        &mut self,
        flow: FlowId,
        protocol: u8,
        input: u64,
        packet: &Packet,
        now_ns: u64,
    ) -> Option<FlowId> {
        let key = self.settings.kind.key(flow, protocol, false);
        let passes = self.inputs.get(input as usize)?.spec.passes_to().is_some();
        let anno = self.settings.reply_anno.map_or(0, |anno| anno.load(&packet.anno));
        match self.find_or_make(key, &[input, anno], now_ns) {
            0 => {
                if !passes {
                    // The reason of a packet that is not there.
                    self.next_refusal();
                }
                None
            }
            line => Some(self.target(line)),
        }
    }

    /// Makes the mapping of a flow by the first input that makes mappings; whether it has one.
    pub(super) fn map_first(&mut self, flow: FlowId, protocol: u8, packet: &Packet, now_ns: u64) -> bool {
        let makes = |input: &Input| !input.spec.mapping_outputs().is_empty();
        let input = self.inputs.iter().position(makes);
        input.is_some_and(|input| self.map_flow(flow, protocol, input as u64, packet, now_ns).is_some())
    }

    /// From the sequence number `from` of a flow on, its bytes have numbers that are `change` larger.
    pub(super) fn shift_sequence(&mut self, flow: FlowId, from: u32, change: u32) {
        let line = self.flows.find_address(&Kind::Ports.key(flow, TCP, false));
        let Some((record, number)) = self.record_of(line) else { return };
        let lines = self.lines(record);
        self.adjust_record(record, None);
        if let Some(adjusted) = self.sequences.adjusted.get_mut(&lines[0]) {
            adjusted.steps.get_or_insert_default()[number].add(from, change);
        }
    }

    /// Gives a new mapping its number.
    pub(super) fn number_mapping(&mut self, record: RecordId) {
        let number = self.sequences.next;
        self.sequences.next = number.wrapping_add(1);
        self.adjust_record(record, Some(number));
    }

    /// Has the packets of a mapping sent to the slow path.
    fn adjust_record(&mut self, record: RecordId, number: Option<u32>) {
        let lines = self.lines(record);
        if self.sequences.adjusted.contains_key(&lines[0]) {
            return;
        }
        let outputs = lines.map(|line| self.flows.load(line, usize::from(at::OUTPUT), 1) as u8);
        self.sequences.adjusted.insert(lines[0], Adjusted { outputs, number, steps: None });
        // Entries of a flow cache know the old outputs.
        self.note_going(record);
        for line in lines {
            self.flows.store(line, usize::from(at::OUTPUT), 1, ADJUSTED.into());
        }
    }

    /// The output of a line.
    pub(super) fn output_of(&self, line: u64) -> u8 {
        let output = self.flows.load(line, usize::from(at::OUTPUT), 1) as u8;
        if output != ADJUSTED {
            return output;
        }
        let found = self.record_of(line).and_then(|(record, number)| {
            Some(self.sequences.adjusted.get(&self.lines(record)[0])?.outputs[number])
        });
        found.unwrap_or(output)
    }

    /// Forgets the sequence numbers of a mapping that is removed.
    pub(super) fn forget_sequence(&mut self, record: RecordId) {
        if !self.sequences.adjusted.is_empty() {
            let [first, _] = self.lines(record);
            self.sequences.adjusted.remove(&first);
        }
    }

    /// The mapping of a line, and which of its lines it is.
    fn record_of(&self, line: u64) -> Option<(RecordId, usize)> {
        let record = self.flows.record_at(line).filter(|_| line != 0)?;
        let [first, _] = self.lines(record);
        Some((record, ((line - first) / LINE_BYTES as u64) as usize))
    }

    /// Does to a packet, whose addresses and ports are rewritten already, what its mapping has beside its
    /// lines; the output, if it has a mapping. `from_net` is the packet from its IP header on, and `l4` where
    /// the transport header is.
    pub(super) fn adjust(&mut self, packet: &mut Packet, from_net: &mut Packet, l4: usize) -> Option<u8> {
        let mut bytes = PacketBytesMut::new(from_net);
        let flow = FlowId::new(bytes.u64(12)?, bytes.u32(l4)?);
        let protocol = bytes.u8(9)?;
        let back = self.flows.find_address(&Kind::Ports.key(flow.reversed(), protocol, true));
        let (record, number) = self.record_of(back)?;
        let [first, _] = self.lines(record);
        // Where a flow is its own reply, all packets have the second line.
        let own = if self.target(back) == flow { number } else { 1 - number };
        let adjusted = self.sequences.adjusted.get_mut(&first)?;
        if let Some(number) = adjusted.number {
            AGGREGATE.store(&mut packet.anno, number.into());
        }
        if let Some(steps) = adjusted.steps.as_mut().filter(|_| protocol == TCP) {
            if let Some(seq) = bytes.u32(l4 + SEQ) {
                steps[own].forget_behind(seq);
            }
            // A header that is cut off leaves as it is.
            let _ = adjust_header(&mut bytes, l4, &steps[own], &steps[1 - own]);
        }
        Some(adjusted.outputs[own])
    }
}
