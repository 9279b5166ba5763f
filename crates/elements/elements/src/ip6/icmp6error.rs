//! `ICMP6Error`: answers packets with ICMPv6 errors.

use super::address::{destination, set_destination};
use super::ndadvertiser::ip_header;
use crate::ip::header::{self, from_network};
use click::config::{Args, Names, Parsed, parse};
use diag::{Diagnostic, Spanned};
use element::{Class, Element, Opaque, PortCodes, StateScope, Work};
use packet::anno;
use packet::checksum;
use packet::view::icmp6::{PACKET_TOO_BIG as TOO_BIG, PARAMETER_PROBLEM, is_error};
use packet::view::ipv6::{HEADER_BYTES as IP6_BYTES, Ipv6};
use packet::view::protocol::ICMP6;
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytes;
use shm::descriptor::PacketType;
use std::net::Ipv6Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "ICMP6Error",
    summary: "generates ICMPv6 error packets",
    page: "\
# ICMP6Error(SRC, TYPE, CODE)

Turns each packet into the ICMPv6 error or redirect that answers it: from SRC to the packet's source,
with as much of the packet as fits into 1280 bytes. Sends none in the cases of RFC 4443 (2.4 e). The rate is not
limited: put a RatedSplitter or Shaper behind it.

- **ports**: 1 input, 1 output, agnostic; the output belongs to the route lookup, as what a device
  receives
- **arguments**: `SRC`; `TYPE`: 1 (unreachable), 2 (packet too big), 3 (time exceeded), 4 (parameter
  problem) or 137 (redirect); `CODE`
- **annotations**: reads `ICMP_PARAMPROB` (parameter problem) and `DST_IP6` (redirect); sets `DST_IP6`
  and `FIX_IP_SRC`; clears the others
- **drop reasons**: of packets that get no error: `icmp-error`: is one itself, or a redirect;
  `bad-destination`: multicast; `link-broadcast`; `bad-source`: no host's address; `later-fragment`;
  `no-ip6-header`; `no-room`
- **difference**: errors quote up to 1280 bytes (RFC 4443) in place of Click's 576 (RFC 1885); packet too
  big tells an MTU of 1280, which every link has, because there is no argument for it (Click's 1500 is
  in the wrong byte order); packet too big is sent for multicast destinations too (RFC 4443); a
  redirect carries the packet in a redirected header option (RFC 4861)
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: |cx| cx.opaque(make),
};

element::reasons!(
    IS_ERROR = "icmp-error",
    BAD_DESTINATION = "bad-destination",
    LINK_BROADCAST = "link-broadcast",
    BAD_SOURCE = "bad-source",
    LATER_FRAGMENT = "later-fragment",
    NO_IP6_HEADER = "no-ip6-header",
    NO_ROOM = "no-room",
);

const REDIRECT: u8 = 137;
/// Bytes of an error's own header, and of a redirect's with the option's header.
const ERROR_BYTES: usize = 8;
const REDIRECT_BYTES: usize = 48;
/// Every link takes packets of this length (RFC 8200 section 5).
const LEAST_MTU: usize = 1280;

struct Icmp6Error {
    src: Ipv6Addr,
    kind: u8,
    code: u8,
}

fn kind(text: &Spanned, names: &dyn Names) -> Parsed<u8> {
    match parse::u8(text, names)? {
        kind @ (1..=4 | REDIRECT) => Ok(kind),
        other => {
            let message = format!("ICMPv6 type {other} is not an error or redirect type");
            Err(Diagnostic::error(text.span, message).help("these types are 1 to 4 and 137"))
        }
    }
}

/// The source of errors: an address that packets can be sent to.
fn source(text: &Spanned, names: &dyn Names) -> Parsed<Ipv6Addr> {
    let address = parse::ip6(text, names)?;
    if address.is_unspecified() || address.is_multicast() {
        let message = format!("`{text}` cannot be the source of a packet");
        return Err(Diagnostic::error(text.span, message).help("write an address of this router"));
    }
    Ok(address)
}

fn make(args: &mut Args<'_>) -> Option<Icmp6Error> {
    let src = args.mandatory_positional("SRC", source);
    let kind = args.mandatory_positional("TYPE", kind);
    let code = args.mandatory_positional("CODE", parse::u8);
    let (src, kind, code) = (src?, kind?, code?);
    Some(Icmp6Error { src, kind, code })
}

/// The packet that an error answers.
struct Question {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    later_fragment: bool,
    /// Type of its ICMPv6 message, if it is one; `None` inside if that is cut off.
    icmp_type: Option<Option<u8>>,
    bytes: usize,
}

impl Question {
    fn read(packet: &Packet) -> Option<Question> {
        use packet::Access as _;
        let from_net = from_network(packet)?;
        let bytes = PacketBytes::new(&from_net);
        let ip = Ipv6::at(0);
        let (src, dst) = (ip.src(&bytes)?, ip.dst(&bytes)?);
        let (mut next, mut at, mut later_fragment) = (ip.next_header(&bytes)?, IP6_BYTES, false);
        // Hop by hop, routing, fragment, destination options: a handful at most.
        for _ in 0..8 {
            let length = match next {
                0 | 43 | 60 => usize::from(bytes.u8(at + 1).unwrap_or(0)) * 8 + 8,
                44 => {
                    later_fragment |= bytes.u16(at + 2).is_some_and(|word| word & 0xfff8 != 0);
                    8
                }
                _ => break,
            };
            next = bytes.u8(at).unwrap_or(59);
            at += length;
        }
        let icmp_type = (next == ICMP6 && !later_fragment).then(|| bytes.u8(at));
        Some(Question { src, dst, later_fragment, icmp_type, bytes: bytes.len() })
    }
}

impl Icmp6Error {
    /// Whether a packet may get an error (RFC 4443 section 2.4 e); else the drop reason.
    fn may_answer(&self, packet: &Packet, question: &Question) -> Result<(), usize> {
        // A message that is cut off might be an error.
        if question.icmp_type.is_some_and(|kind| kind.is_none_or(|kind| is_error(kind) || kind == REDIRECT)) {
            return Err(IS_ERROR);
        }
        // Path MTU discovery works for multicast, and unknown options may ask for an error.
        let for_groups = self.kind == TOO_BIG || (self.kind == PARAMETER_PROBLEM && self.code == 2);
        if question.dst.is_multicast() && !for_groups {
            return Err(BAD_DESTINATION);
        }
        let link = [PacketType::Broadcast as u8, PacketType::Multicast as u8];
        if link.contains(&packet.packet_type) && !for_groups {
            return Err(LINK_BROADCAST);
        }
        let src = question.src;
        if src.is_multicast() || src.is_unspecified() || src.is_loopback() {
            return Err(BAD_SOURCE);
        }
        if question.later_fragment {
            return Err(LATER_FRAGMENT);
        }
        Ok(())
    }

    /// Writes the front of the message; its length, and how many bytes of the packet it quotes.
    fn write_front(&self, message: &mut [u8], packet: &Packet, question: &Question) -> (usize, usize) {
        (message[0], message[1]) = (self.kind, self.code);
        if self.kind == REDIRECT {
            message[8..24].copy_from_slice(&destination(packet).octets());
            message[24..40].copy_from_slice(&question.dst.octets());
            // The option's length counts 8 bytes, its own header among them.
            let quoted = question.bytes.min(LEAST_MTU - IP6_BYTES - REDIRECT_BYTES) / 8 * 8;
            (message[40], message[41]) = (4, (quoted / 8 + 1) as u8);
            return (REDIRECT_BYTES, quoted);
        }
        match self.kind {
            TOO_BIG => message[4..8].copy_from_slice(&(LEAST_MTU as u32).to_be_bytes()),
            PARAMETER_PROBLEM => message[7] = anno::ICMP_PARAMPROB.load(&packet.anno) as u8,
            _ => {}
        }
        (ERROR_BYTES, question.bytes.min(LEAST_MTU - IP6_BYTES - ERROR_BYTES))
    }

    /// Turns a packet into its error.
    fn answer(&self, packet: &mut Packet) -> Result<(), usize> {
        let question = Question::read(packet).ok_or(NO_IP6_HEADER)?;
        self.may_answer(packet, &question)?;
        let mut head = [0u8; IP6_BYTES + REDIRECT_BYTES];
        let (front, quoted) = self.write_front(&mut head[IP6_BYTES..], packet, &question);
        let length = front + quoted;
        head[..IP6_BYTES].copy_from_slice(&ip_header(length, self.src, question.src));
        let mut answer = from_network(packet).ok_or(NO_IP6_HEADER)?;
        let pseudo = checksum::pseudo_ipv6(self.src, question.src, ICMP6, length as u32);
        let sum = |bytes: &PacketBytes<'_>| checksum::icmp6(bytes, IP6_BYTES, length, pseudo);
        if !header::answer(&mut answer, question.bytes - quoted, &head[..IP6_BYTES + front], IP6_BYTES, sum) {
            return Err(NO_ROOM);
        }
        anno::FIX_IP_SRC.store(&mut answer.anno, 1);
        set_destination(&mut answer, question.src);
        *packet = answer;
        Ok(())
    }
}

impl Opaque for Icmp6Error {
    fn push(&mut self, _input: usize, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        batch.emit_changed(|packet| self.answer(packet));
    }
}

impl Element for Icmp6Error {
    element::facts!(reasons: REASONS);
}
