//! The frames of a [`TrafficSpec`], one by one.

use crate::TrafficError;
use crate::flow::{FlowPick, FlowRanges, FlowSource, FlowSpace};
use crate::frame::{FrameSpec, SHORTEST_WIRE_FRAME_BYTES, TcpSegment};
use crate::payload::PayloadBuffer;
use crate::protocol::{TCP, TcpFlags};
use crate::random::{Purpose, Random, mix};
use crate::range::AddressRange;
use crate::spec::{Spacing, TrafficSpec};
use port::FrameSet;

/// The properties of a frame besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMeta {
    /// The time at which it is sent, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Its flow, from 0.
    pub flow: u64,
    /// Length without FCS.
    pub len_bytes: usize,
    /// Whether the requested size was shorter than the headers, which then determined the length.
    pub raised: bool,
}

/// The progress of a TCP flow.
#[derive(Debug, Clone, Copy, Default)]
struct TcpProgress {
    /// Bytes sent since the flow's first sequence number.
    sent: u32,
    /// Frames sent since the connection was opened; constant once the connection is established for good.
    frames: u32,
}

/// An unlimited sequence of frames. It uses memory only for TCP flows and for flows from files.
#[derive(Debug, Clone)]
pub struct Frames {
    spec: TrafficSpec,
    source: FlowSource,
    flows: u64,
    pick: FlowPick,
    tcp: Vec<TcpProgress>,
    payload: PayloadBuffer,
    sizes: Random,
    picks: Random,
    gaps: Random,
    poisson_ns: f64,
    index: u64,
}

impl TrafficSpec {
    /// The frames, without end: (timestamp in nanoseconds, bytes without FCS).
    ///
    /// # Errors
    ///
    /// When settings contradict each other, or a rule or trace file cannot be read.
    pub fn frames(&self) -> Result<Frames, TrafficError> {
        Frames::new(self)
    }

    /// The first `count` frames, for a generator port.
    ///
    /// # Errors
    ///
    /// As [`Self::frames`], or when `count` is 0.
    pub fn prepare(&self, count: usize) -> Result<FrameSet, TrafficError> {
        let mut frames = self.frames()?;
        let made = (0..count).map(|_| {
            let mut frame = Vec::new();
            frames.append_next(&mut frame).map(|_| frame)
        });
        Ok(FrameSet::new(made.collect::<Result<Vec<_>, _>>()?)?)
    }
}

impl Frames {
    fn new(spec: &TrafficSpec) -> Result<Self, TrafficError> {
        spec.check()?;
        let ranges = |src: &AddressRange, dst: &AddressRange| FlowRanges {
            src: src.clone(),
            dst: dst.clone(),
            src_port: spec.src_port.clone(),
            dst_port: spec.dst_port.clone(),
        };
        // With rules or a trace, the ranges supply only the flows that miss; these may repeat.
        let distinct = if spec.acl.is_used() { 1 } else { spec.flows };
        let space = FlowSpace::new(
            ranges(&spec.src, &spec.dst),
            ranges(&spec.src6, &spec.dst6),
            spec.protocols,
            spec.ipv6_percent,
            spec.seed,
            distinct,
        )?;
        let (source, flows) = if spec.acl.is_used() {
            let mut random = Random::new(spec.seed, Purpose::Rules);
            let list = spec.acl.load(spec.flows, spec.protocols, &space, &mut random)?;
            let flows = list.len() as u64;
            (FlowSource::List(list), flows)
        } else {
            (FlowSource::Space(Box::new(space)), spec.flows)
        };
        let may_be_tcp = spec.protocols.tcp > 0 || spec.acl.is_used();
        let tcp_flows = if may_be_tcp { flows as usize } else { 0 };
        Ok(Self {
            pick: FlowPick::new(spec.order, flows)?,
            source,
            flows,
            tcp: vec![TcpProgress::default(); tcp_flows],
            payload: PayloadBuffer::new(spec.payload, spec.seed),
            sizes: Random::new(spec.seed, Purpose::Sizes),
            picks: Random::new(spec.seed, Purpose::Flows),
            gaps: Random::new(spec.seed, Purpose::Gaps),
            poisson_ns: 0.0,
            index: 0,
            spec: spec.clone(),
        })
    }

    /// The number of flows: as requested, or the number of lines of the trace.
    pub fn flows(&self) -> u64 {
        self.flows
    }

    /// Appends the next frame to `out`.
    ///
    /// # Errors
    ///
    /// Never, for a specification that [`TrafficSpec::frames`] accepted.
    pub fn append_next(&mut self, out: &mut Vec<u8>) -> Result<FrameMeta, TrafficError> {
        let index = self.index;
        let flow = self.pick.pick(index, &mut self.picks);
        let tuple = self.source.tuple(flow).ok_or_else(|| {
            TrafficError::Contradiction(format!("there is no flow {flow}; this is a defect"))
        })?;
        let wanted = self.spec.size.draw(self.spec.fcs, index, &mut self.sizes);
        let mut frame = FrameSpec {
            src_mac: self.spec.src_mac,
            dst_mac: self.spec.dst_mac,
            vlan: self.spec.vlan.tags(),
            flow: tuple,
            tcp: TcpSegment { sequence: 0, acknowledgement: None, syn: false, fin: false, psh: false },
            sequence: index as u16,
            ttl: self.spec.ttl,
            dscp: self.spec.dscp,
            payload: &[],
            len_bytes: wanted.into(),
        };
        let headers = frame.header_bytes();
        let mut raised = frame.len_bytes < headers;
        let mut payload_bytes = frame.len_bytes.saturating_sub(headers);
        if tuple.protocol == TCP {
            let first = mix(flow ^ self.spec.seed) as u32;
            if let Some(progress) = self.tcp.get_mut(flow as usize) {
                let control = progress.step(self.spec.tcp, first, &mut frame.tcp);
                if control {
                    payload_bytes = 0;
                    raised = false;
                    frame.len_bytes = SHORTEST_WIRE_FRAME_BYTES;
                }
                progress.count(&frame.tcp, payload_bytes);
            }
        }
        frame.len_bytes = frame.len_bytes.max(headers);
        frame.payload = self.payload.get(index, payload_bytes);
        let len_bytes = frame.len_bytes;
        frame.build_into(out)?;
        let timestamp_ns = self.timestamp_ns();
        self.index += 1;
        Ok(FrameMeta { timestamp_ns, flow, len_bytes, raised })
    }

    fn timestamp_ns(&mut self) -> u64 {
        let since_start = match self.spec.spacing {
            // Computed from the index and not as a sum, so that the rate does not drift.
            Spacing::Even => {
                let ns = u128::from(self.index) * 1_000_000_000 / u128::from(self.spec.rate_pps);
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
            Spacing::Poisson => {
                let now_ns = self.poisson_ns as u64;
                let mean_ns = 1e9 / self.spec.rate_pps as f64;
                // 1 - u is in (0, 1], so its logarithm exists.
                self.poisson_ns -= mean_ns * (1.0 - self.gaps.unit()).ln();
                now_ns
            }
        };
        self.spec.start_ns.saturating_add(since_start)
    }
}

impl TcpProgress {
    /// Sets the fields of the flow's next segment; returns true if the segment has no payload.
    fn step(&mut self, flags: TcpFlags, first: u32, segment: &mut TcpSegment) -> bool {
        // Every attempt to connect is the first one of its connection.
        let sent = if flags == TcpFlags::Syn { 0 } else { self.sent };
        segment.sequence = first.wrapping_add(sent);
        match flags {
            TcpFlags::Ack => segment.psh = true,
            TcpFlags::Syn => segment.syn = true,
            TcpFlags::Session { data_frames } => {
                let is_last = data_frames > 0 && self.frames == data_frames.saturating_add(2);
                match self.frames {
                    0 => segment.syn = true,
                    1 => {}
                    _ => (segment.fin, segment.psh) = (is_last, !is_last),
                }
                self.frames = match self.frames {
                    _ if is_last => 0,
                    // The counter of a session that is never closed stops at its first data frame.
                    2 if data_frames == 0 => 2,
                    frames => frames + 1,
                };
            }
        }
        // The peer's frames are not generated, so any sequence number will do; the peer has sent its SYN
        // only.
        segment.acknowledgement = (!segment.syn).then(|| mix(first.into()) as u32);
        matches!(flags, TcpFlags::Session { .. }) && !segment.psh
    }

    /// Advances the sequence number by a segment; SYN and FIN count as one byte each (RFC 9293 section 3.4).
    fn count(&mut self, segment: &TcpSegment, payload_bytes: usize) {
        let flags = u32::from(segment.syn) + u32::from(segment.fin);
        self.sent = self.sent.wrapping_add(payload_bytes as u32).wrapping_add(flags);
    }
}

impl Iterator for Frames {
    type Item = (u64, Vec<u8>);

    /// Returns `None` only if [`Frames::append_next`] fails.
    fn next(&mut self) -> Option<Self::Item> {
        let mut frame = Vec::new();
        let meta = self.append_next(&mut frame).ok()?;
        Some((meta.timestamp_ns, frame))
    }
}
