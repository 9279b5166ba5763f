//! `IPGWOptions`: processes the IP options of routers.

use super::header::{IP_BYTES, Ipv4Header, from_network, option_at, set_checksum};
use click::config::parse;
use element::{Class, Element, PortCodes, Row, StateScope, Transparent, Work};
use ir::Builder;
use ir::expr::load;
use packet::anno;
use packet::field::{Base, IP_HL};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;

/// The class.
pub const CLASS: Class = Class {
    name: "IPGWOptions",
    summary: "processes router IP options",
    page: "\
# IPGWOptions(MYADDR [, OTHERADDRS])

Processes the options that a router processes whatever the destination: record route and timestamp. Put it
before an output interface, since MYADDR is the address of the interface that the packet leaves by (RFC 1812,
4.2.2.2). Computes the header checksum if it changed an option.

- **ports**: 1 input, 1 or 2 outputs, agnostic; packets with a bad option are pushed out of output 1
- **arguments**: `MYADDR`; `OTHERADDRS`: this router's other addresses, for timestamps that ask for
  certain routers
- **annotations**: sets `ICMP_PARAMPROB` to the place of a bad byte; needs the network header
- **handlers**: `drops` (read): packets with a bad option
- **drop reasons**: `bad-option`; `no-ip-header`: the network header is not set or cut off
- **difference**: timestamps are the time when the packet was received, and marked as not standard (RFC 791)
  if that is not known, because no clock is read for a packet; a packet with a bad option is not
  changed, because Click leaves half of its changes in it
",
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| {
        cx.transparent(|args| {
            let address = args.mandatory_positional("MYADDR", parse::ip4);
            let others = args.positional("OTHERADDRS", parse::list(parse::ip4)).unwrap_or_default();
            let address = u32::from(address?);
            Some(GatewayOptions::new(address, others.into_iter().map(u32::from).collect()))
        })
    },
};

element::reasons!(BAD_OPTION = "bad-option", NO_HEADER = "no-ip-header");

/// What the options of a packet are processed with.
pub(super) struct GatewayOptions {
    address: u32,
    others: Vec<u32>,
    drops: u64,
}

/// Whether a header changed, or the position of the bad byte.
type Outcome = Result<bool, u8>;

impl GatewayOptions {
    /// For a router with that address at the interface that packets leave by, and these others.
    pub(super) fn new(address: u32, others: Vec<u32>) -> GatewayOptions {
        GatewayOptions { address, others, drops: 0 }
    }

    /// Processes a packet's options; whether they are good. `None` if there is no whole IP header.
    pub(super) fn apply(&self, packet: &mut Packet) -> Option<bool> {
        match self.handle(packet) {
            Ok(()) => Some(true),
            Err(BAD_OPTION) => Some(false),
            Err(_) => None,
        }
    }

    /// Processes the options of a header of at least 20 bytes; `time` is the timestamp to record.
    fn process(&self, header: &mut [u8], time: u32) -> Outcome {
        let mut changed = false;
        let mut next = IP_BYTES;
        while let Some(place) = option_at(header, next) {
            let place = place.map_err(|at| at as u8 + 1)?;
            let at = place.start;
            next = place.end;
            let option = &mut header[place];
            let done = match option[0] {
                7 => self.record_route(option),
                68 => self.timestamp(option, time),
                _ => Ok(false),
            };
            changed |= done.map_err(|bad| at as u8 + bad)?;
        }
        Ok(changed)
    }

    /// Record route (RFC 791): the pointer counts from 1.
    fn record_route(&self, option: &mut [u8]) -> Outcome {
        let pointer = usize::from(*option.get(2).ok_or(1u8)?).wrapping_sub(1);
        let full = pointer == option.len();
        match option.get_mut(pointer..pointer.wrapping_add(4)).filter(|_| pointer >= 3) {
            Some(place) => {
                place.copy_from_slice(&self.address.to_be_bytes());
                option[2] += 4;
                Ok(true)
            }
            // A full route is no error.
            None if full => Ok(false),
            None => Err(2),
        }
    }

    /// Internet timestamp (RFC 791).
    fn timestamp(&self, option: &mut [u8], time: u32) -> Outcome {
        let word = *option.get(3).ok_or(1u8)?;
        let (overflow, flag) = (word >> 4, word & 15);
        let pointer = usize::from(option[2]).wrapping_sub(1);
        if !(4..256).contains(&pointer) {
            return Err(2);
        }
        let room = option.len().saturating_sub(pointer);
        let (time, address) = (time.to_be_bytes(), self.address.to_be_bytes());
        match flag {
            0 if room >= 4 => {
                option[pointer..pointer + 4].copy_from_slice(&time);
                option[2] += 4;
            }
            1 if room >= 8 => {
                option[pointer..pointer + 4].copy_from_slice(&address);
                option[pointer + 4..pointer + 8].copy_from_slice(&time);
                option[2] += 8;
            }
            0 | 1 if overflow < 15 => option[3] = (overflow + 1) << 4 | flag,
            3 if room >= 8 => {
                let wanted =
                    option[pointer..pointer + 4].iter().fold(0, |acc, byte| acc << 8 | u32::from(*byte));
                if wanted != self.address && !self.others.contains(&wanted) {
                    return Ok(false);
                }
                option[pointer + 4..pointer + 8].copy_from_slice(&time);
                option[2] += 8;
            }
            _ => return Err(3),
        }
        Ok(true)
    }

    /// Processes a packet; the error is a drop reason.
    fn handle(&self, packet: &mut Packet) -> Result<(), usize> {
        use packet::Access as _;
        let mut from_net = from_network(packet).ok_or(NO_HEADER)?;
        let mut header = Ipv4Header::read(&from_net).ok_or(NO_HEADER)?;
        let header = header.bytes_mut();
        match self.process(header, milliseconds(packet.timestamp_ns)) {
            Ok(false) => Ok(()),
            Ok(true) => {
                set_checksum(header);
                let written = PacketBytesMut::new(&mut from_net).copy_in(0, header);
                if written { Ok(()) } else { Err(NO_HEADER) }
            }
            Err(bad) => {
                anno::ICMP_PARAMPROB.store(&mut packet.anno, bad.into());
                Err(BAD_OPTION)
            }
        }
    }
}

/// Milliseconds since midnight, universal time, from nanoseconds since the epoch; the non-standard mark if
/// these are not known (RFC 791, 3.1).
fn milliseconds(timestamp_ns: u64) -> u32 {
    const NOT_STANDARD: u32 = 1 << 31;
    const DAY_MS: u64 = 86_400_000;
    match timestamp_ns {
        0 => NOT_STANDARD,
        known => (known / 1_000_000 % DAY_MS) as u32,
    }
}

impl Transparent for GatewayOptions {
    fn build(&self, f: &mut Builder) {
        f.name("IPGWOptions");
        let headless = f.drop_block("no-ip-header");
        let plain = f.aside(|f| f.emit(0));
        f.need(Base::Net, 20, headless);
        f.check(load(IP_HL).greater_than(5), plain);
        f.slow("options");
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        for &index in batch.list() {
            match self.handle(batch.packet_mut(index)) {
                Ok(()) => batch.emit(index, 0),
                Err(BAD_OPTION) => {
                    self.drops += 1;
                    batch.emit_or_drop(index, 1, BAD_OPTION);
                }
                Err(reason) => batch.drop(index, reason),
            }
        }
    }
}

impl Element for GatewayOptions {
    element::facts!(reasons: REASONS, handlers: HANDLERS);
}

const HANDLERS: &[Row<GatewayOptions>] = &[Row::sum("drops", |options, _| Some(options.drops.to_string()))];
