//! `FTPPortMapper`: lets FTP clients behind a translator name the port that the server connects to.

use super::flow::FlowId;
use super::rewriter::mappings_of;
use super::table::SharedMappings;
use crate::ip::header::{from_network, transport_offset};
use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Opaque, PortCodes, Row, StateScope, Work};
use packet::Access;
use packet::checksum::{self, TCP_CHECK};
use packet::view::protocol::TCP;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "FTPPortMapper",
    summary: "manages FTP PORT commands for IPRewriter",
    page: "\
# FTPPortMapper(CONTROL_REWRITER, DATA_REWRITER, DATA_REWRITER_INPUT [, keyword OWN_ADDRESS])

Lets FTP clients behind a translator use active mode: where a client names the address and port to which the
server is to connect, makes a mapping for that connection, and puts the mapped address and port into the
command.

- **ports**: 1 input, 1 output, agnostic. FTP packets of clients come here before they enter CONTROL_REWRITER,
  and nothing between the two changes their addresses and ports
- **needs**: the network and transport header annotations (`CheckIPHeader`); checksums that are right
- **arguments**: `CONTROL_REWRITER`: the `TCPRewriter` or `IPRewriter` of the control connections. It changes
  sequence and acknowledgement numbers, selective ones included, of connections in which a command got another
  length. `DATA_REWRITER`: the rewriter, which may be the same, of the data connections;
  `DATA_REWRITER_INPUT`: the input of it whose specification makes their mappings, from the client's address
  and port to the server's address and the port below that of its control connection. `OWN_ADDRESS` (default
  false): a command that names another address than the packet's source passes as it is, so that no host can
  have another one be connected to (RFC 2577)
- **commands**: `PORT h1,h2,h3,h4,p1,p2` (RFC 959) and `EPRT |1|ADDRESS|PORT|` (RFC 2428), at the start of a
  segment, in any case. A command of a connection that has no mapping, or for a port that gets none, passes as
  it is
- **handlers**: `commands`, `unmapped` (read): commands that were mapped, and that got no mapping
- **drop reasons**: `no-room`: there is no room for a longer command
- **workers**: packets are processed by the worker of their flow; the data connection is brought to it, too
- **difference**: Click knows no `EPRT`
- **difference**: the last 16 changes of a direction are known in full; retransmissions of what is before them
  have the numbers that the oldest of them found
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerFlow,
    make,
};

const REWRITERS: &[&str] = &["TCPRewriter", "IPRewriter"];
/// The longest command that is read, with its end of line.
const MOST_COMMAND: usize = 64;
/// The most bytes behind a command that can be moved.
const MOST_BEHIND: usize = 2048;

struct FtpPortMapper {
    control: SharedMappings,
    data: SharedMappings,
    data_input: u64,
    own_address: bool,
    commands: u64,
    unmapped: u64,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let mut args = cx.args();
    let control = args.mandatory_positional("CONTROL_REWRITER", parse::any);
    let data = args.mandatory_positional("DATA_REWRITER", parse::any);
    let input = args.mandatory_positional("DATA_REWRITER_INPUT", parse::int_in(0..=255));
    let own_address = args.keyword("OWN_ADDRESS", parse::bool).unwrap_or(false);
    let mut fine = args.finish();
    let mut mappings = |name: Option<diag::Spanned>| {
        let name = name?;
        match cx.element(&name) {
            Some((flat, class)) if REWRITERS.contains(&class) => mappings_of(cx, &flat),
            Some((_, class)) => {
                let message = format!("`{name}` is a {class}, which keeps no TCP connections");
                cx.error(name.span, message).help("name a TCPRewriter or an IPRewriter");
                None
            }
            None => None,
        }
    };
    let (control, data) = (mappings(control), mappings(data));
    fine &= control.is_some() && data.is_some();
    let mapper = FtpPortMapper {
        control: control?,
        data: data?,
        data_input: input? as u64,
        own_address,
        commands: 0,
        unmapped: 0,
    };
    fine.then(|| BoxElement::opaque(mapper))
}

/// The command of a client, and what it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Command {
    /// Bytes up to the end of its arguments.
    bytes: usize,
    /// The delimiter of `EPRT`; `None` for `PORT`.
    delimiter: Option<u8>,
    address: Ipv4Addr,
    port: u16,
}

impl Command {
    /// Reads a command at the start of a segment.
    fn read(text: &[u8]) -> Option<Command> {
        let end = text.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
        let line = text.get(..end)?;
        let (name, rest) = line.split_at_checked(4)?;
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        let arguments = std::str::from_utf8(rest.get(blanks..).filter(|_| blanks > 0)?).ok()?.trim_end();
        let bytes = 4 + blanks + arguments.len();
        if name.eq_ignore_ascii_case(b"PORT") {
            let mut numbers = [0u8; 6];
            let mut parts = arguments.split(',');
            for number in &mut numbers {
                *number = parts.next()?.trim().parse().ok()?;
            }
            let [a, b, c, d, high, low] = numbers;
            let port = u16::from_be_bytes([high, low]);
            let command = Command { bytes, delimiter: None, address: Ipv4Addr::new(a, b, c, d), port };
            return parts.next().is_none().then_some(command);
        }
        if name.eq_ignore_ascii_case(b"EPRT") {
            let delimiter = *arguments.as_bytes().first()?;
            let mut parts = arguments.split(char::from(delimiter));
            let fields = [parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?];
            let ["", "1", address, port, ""] = fields else { return None };
            let (address, port) = (address.parse().ok()?, port.parse().ok()?);
            let command = Command { bytes, delimiter: Some(delimiter), address, port };
            return parts.next().is_none().then_some(command);
        }
        None
    }

    /// The command that names another address and port instead, and its length.
    fn naming(self, address: Ipv4Addr, port: u16) -> ([u8; MOST_COMMAND], usize) {
        use std::io::Write;
        let mut text = [0; MOST_COMMAND];
        let mut rest = text.as_mut_slice();
        // The longest of both has 29 bytes.
        let _ = match self.delimiter {
            None => {
                let ([a, b, c, d], [high, low]) = (address.octets(), port.to_be_bytes());
                write!(rest, "PORT {a},{b},{c},{d},{high},{low}")
            }
            Some(delimiter) => {
                let d = char::from(delimiter);
                write!(rest, "EPRT {d}1{d}{address}{d}{port}{d}")
            }
        };
        let left = rest.len();
        (text, MOST_COMMAND - left)
    }
}

/// A segment of a control connection with a command at its start.
struct Segment {
    flow: FlowId,
    /// Offsets from the network header.
    tcp: usize,
    payload: usize,
    end: usize,
    seq: u32,
    command: Command,
}

impl Segment {
    fn read(packet: &Packet) -> Option<Segment> {
        let (from_net, tcp) = (from_network(packet)?, transport_offset(packet)?);
        let bytes = PacketBytes::new(&from_net);
        let end = usize::from(bytes.u16(2)?);
        let is_first = bytes.u16(6)? & 0x1fff == 0;
        if bytes.u8(0)? >> 4 != 4 || bytes.u8(9)? != TCP || !is_first || end > bytes.len() {
            return None;
        }
        let payload = tcp + usize::from(bytes.u8(tcp + 12)? >> 4) * 4;
        let mut text = [0; MOST_COMMAND];
        let there = end.checked_sub(payload)?.min(MOST_COMMAND);
        let text = text.get_mut(..there)?;
        if !bytes.copy_out(payload, text) {
            return None;
        }
        let command = Command::read(text)?;
        let flow = FlowId::new(bytes.u64(12)?, bytes.u32(tcp)?);
        Some(Segment { flow, tcp, payload, end, seq: bytes.u32(tcp + 4)?, command })
    }

    /// Puts another command in the place of this one. False, with nothing changed, if there is no room.
    fn replace(&self, packet: &mut Packet, text: &[u8], work: &mut Work<'_>) -> bool {
        let old_end = self.payload + self.command.bytes;
        let behind = self.end - old_end;
        let Some(from_net) = from_network(packet) else { return false };
        // A short frame is padded behind its IP packet.
        let padding = PacketBytes::new(&from_net).len() - self.end;
        let new_end = self.payload + text.len();
        let Ok(new_length) = u16::try_from(new_end + behind) else { return false };
        let mut rest = [0; MOST_BEHIND];
        let Some(rest) = rest.get_mut(..behind) else { return false };
        if !PacketBytes::new(&from_net).copy_out(old_end, rest) {
            return false;
        }
        let growth = usize::from(new_length).saturating_sub(self.end);
        let is_long_enough = growth <= padding || shm::chain::grow(work.pool(), packet, growth - padding);
        let surplus = (self.end + padding).saturating_sub(usize::from(new_length));
        if !is_long_enough || (surplus > 0 && !packet.take(surplus)) {
            return false;
        }
        let Some(mut from_net) = from_network(packet) else { return false };
        let mut bytes = PacketBytesMut::new(&mut from_net);
        let header = usize::from(bytes.u8(0).unwrap_or(0) & 15) * 4;
        let written = bytes.copy_in(self.payload, text)
            && bytes.copy_in(new_end, rest)
            && bytes.put_u16(2, new_length)
            && checksum::set_ipv4_header(&mut bytes, 0, header);
        written && self.sum(&mut bytes, usize::from(new_length)).is_some()
    }

    fn sum(&self, bytes: &mut PacketBytesMut<'_>, end: usize) -> Option<()> {
        let (src, dst) = (Ipv4Addr::from(self.flow.src), Ipv4Addr::from(self.flow.dst));
        let length = end - self.tcp;
        let pseudo = checksum::pseudo_ipv4(src, dst, TCP, length as u16);
        let sum = checksum::tcp(&*bytes, self.tcp, length, pseudo)?;
        bytes.put_u16(self.tcp + TCP_CHECK, sum).then_some(())
    }
}

impl FtpPortMapper {
    /// Maps what a packet's command names. `came_before` is whether a packet of the connection is before it
    /// in the burst, which makes the connection's mapping once it is at the rewriter. False if there is no
    /// room for the new command.
    fn map(
        &mut self,
        packet: &mut Packet,
        segment: &Segment,
        came_before: bool,
        work: &mut Work<'_>,
    ) -> bool {
        let Segment { flow, command, .. } = *segment;
        let now_ns = work.now_ns();
        let is_known = self.control.with(|control| {
            control.entry(flow, TCP, false).is_some()
                || came_before && control.map_first(flow, TCP, packet, now_ns)
        });
        let data = FlowId {
            src: command.address.into(),
            sport: command.port,
            dport: flow.dport.wrapping_sub(1),
            ..flow
        };
        let input = self.data_input;
        let mapped = match is_known {
            Some(true) => {
                self.data.with(|mappings| mappings.map_flow(data, TCP, input, packet, now_ns)).flatten()
            }
            _ => None,
        };
        let Some(to) = mapped else {
            self.unmapped += 1;
            return true;
        };
        self.commands += 1;
        let (text, length) = command.naming(to.src.into(), to.sport);
        if !segment.replace(packet, text.as_slice().get(..length).unwrap_or_default(), work) {
            return false;
        }
        let change = (length as u32).wrapping_sub(command.bytes as u32);
        let behind = segment.seq.wrapping_add(command.bytes as u32);
        if change != 0 {
            self.control.with(|control| control.shift_sequence(flow, behind, change));
        }
        true
    }
}

impl Opaque for FtpPortMapper {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for (at, &index) in batch.list().iter().enumerate() {
            let own_address = self.own_address;
            let is_own = |segment: &Segment| u32::from(segment.command.address) == segment.flow.src;
            let segment =
                Segment::read(batch.packet(index)).filter(|segment| !own_address || is_own(segment));
            let has_room = segment.is_none_or(|segment| {
                let mut before = batch.list().iter().take(at);
                let came_before = before.any(|before| flow_of(batch.packet(*before)) == Some(segment.flow));
                self.map(batch.packet_mut(index), &segment, came_before, work)
            });
            match has_room {
                true => batch.emit(index, 0),
                false => batch.drop(index, 0),
            }
        }
    }
}

/// The flow of a TCP packet that has its ports.
fn flow_of(packet: &Packet) -> Option<FlowId> {
    let (from_net, tcp) = (from_network(packet)?, transport_offset(packet)?);
    let bytes = PacketBytes::new(&from_net);
    let has_ports = bytes.u8(9)? == TCP && bytes.u16(6)? & 0x1fff == 0;
    has_ports.then_some(FlowId::new(bytes.u64(12)?, bytes.u32(tcp)?))
}

impl Element for FtpPortMapper {
    element::facts!(reasons: &["no-room"], handlers: HANDLERS);
}

const HANDLERS: &[Row<FtpPortMapper>] = &[
    Row::sum("commands", |mapper, _| Some(mapper.commands.to_string())),
    Row::sum("unmapped", |mapper, _| Some(mapper.unmapped.to_string())),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(usize, String, u16)> {
        let command = Command::read(text.as_bytes())?;
        Some((command.bytes, command.address.to_string(), command.port))
    }

    #[test]
    fn commands_are_read_in_both_notations() {
        assert_eq!(read("PORT 10,0,0,5,15,160\r\n"), Some((20, "10.0.0.5".into(), 4000)));
        assert_eq!(read("port  10,0,0,5,0,1 \n"), Some((18, "10.0.0.5".into(), 1)));
        assert_eq!(read("EPRT |1|10.0.0.5|4000|\r\n"), Some((22, "10.0.0.5".into(), 4000)));
        assert_eq!(read("eprt !1!10.0.0.5!4000!\r\n"), Some((22, "10.0.0.5".into(), 4000)));
        for other in [
            "PORT 10,0,0,5,15,160",
            "PORT 10,0,0,5,15\r\n",
            "PORT 10,0,0,5,15,160,1\r\n",
            "PORT 10,0,0,256,15,160\r\n",
            "PORT10,0,0,5,15,160\r\n",
            "EPRT |2|::1|4000|\r\n",
            "EPRT |1|10.0.0.5|70000|\r\n",
            "EPRT \r\n",
            "\r\n",
            "EPRT \u{e9}1\u{e9}10.0.0.5\u{e9}4000\u{e9}\r\n",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn the_longest_command_fits() {
        let command = Command { bytes: 0, delimiter: Some(b'|'), address: Ipv4Addr::LOCALHOST, port: 1 };
        for command in [command, Command { delimiter: None, ..command }] {
            let (text, length) = command.naming(Ipv4Addr::BROADCAST, u16::MAX);
            let line = [&text[..length], b"\r\n"].concat();
            assert_eq!(
                Command::read(&line).map(|read| (read.bytes, read.address, read.port)),
                Some((length, Ipv4Addr::BROADCAST, u16::MAX))
            );
        }
    }
}
