//! `IPFragmenter`: cuts long packets into fragments.

use super::header::{IP_BYTES, MOST_HEADER, from_network, option_at, set_checksum};
use click::config::parse;
use element::random;
use element::{BoxElement, Class, Configure, Element, PortCodes, Row, StateScope, Transparent, Work};
use ir::Builder;
use ir::expr::{offset, packet_len};
use packet::field::{Base, IP_HL};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::{PacketBytes, PacketBytesMut};
use shm::descriptor::NO_HEADER;
use std::net::Ipv4Addr;

/// The class.
pub const CLASS: Class = Class {
    name: "IPFragmenter",
    summary: "fragments large IP packets",
    page: "\
# IPFragmenter(MTU [, HONOR_DF, VERBOSE, keyword HEADROOM])

Fragments IP packets longer than MTU. Packets that must not be fragmented leave by output 1, usually to
ICMPError(..., unreachable, needfrag). Bytes before the IP header stay with the first fragment only: strip them
first.

- **ports**: 1 input, 1 or 2 outputs, push
- **arguments**: `MTU`: bytes, at least 8; `HONOR_DF` (default true): false fragments packets with DF
  as well, with a new identification; `VERBOSE` (default false): prints each packet that must
  not be fragmented; `HEADROOM`: bytes to be free before fragments
- **annotations**: copied to all fragments; needs the network header
- **handlers**: `drops` (read): packets that must not be fragmented; `fragments` (read): made ones
- **drop reasons**: `must-not-fragment`: the packet has DF, or MTU has no room for 8 bytes;
  `no-ip-header`: the network header is not set or cut off; `no-buffer`: there are not enough buffers for
  all fragments
- **difference**: `HEADROOM` has no effect, because all buffers here have the same; without `VERBOSE`
  nothing is printed, because the packets are counted
",
    codes: PortCodes::new("1/1-2", "h/h"),
    state: StateScope::PerWorker,
    make,
};

element::reasons!(MUST_NOT = "must-not-fragment", NO_IP_HEADER = "no-ip-header", NO_BUFFER = "no-buffer");

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
/// The longest IP packet.
const MOST_PACKET: usize = u16::MAX as usize;

struct IpFragmenter {
    mtu: u32,
    honor_df: bool,
    verbose: bool,
    drops: u64,
    fragments: u64,
    /// State of the generator of identifications.
    random: u64,
    /// Bytes of the current packet, and of a fragment of it.
    whole: Vec<u8>,
    part: Vec<u8>,
    produced: Vec<Packet>,
}

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let random = 0x9e37_79b9_7f4a_7c15 ^ cx.worker as u64;
    cx.transparent(|args| {
        let mtu = args.mandatory_positional("MTU", parse::int_in(8..=i64::from(u32::MAX)));
        let honor_df = args.positional("HONOR_DF", parse::bool).unwrap_or(true);
        let verbose = args.positional("VERBOSE", parse::bool).unwrap_or(false);
        args.keyword("HEADROOM", parse::u32);
        let mtu = mtu? as u32;
        let (whole, part) = (Vec::with_capacity(MOST_PACKET), Vec::with_capacity(MOST_PACKET));
        let (drops, fragments, produced) = (0, 0, vec![]);
        Some(IpFragmenter { mtu, honor_df, verbose, drops, fragments, random, whole, part, produced })
    })
}

/// The options that every fragment gets (RFC 791), padded to whole words.
fn copied_options(options: &[u8]) -> ([u8; MOST_HEADER - IP_BYTES], usize) {
    let mut copied = [0; MOST_HEADER - IP_BYTES];
    let (mut next, mut used) = (0, 0);
    while let Some(Ok(place)) = option_at(options, next) {
        next = place.end;
        let option = &options[place];
        if option[0] & 0x80 != 0 {
            copied[used..used + option.len()].copy_from_slice(option);
            used += option.len();
        }
    }
    (copied, used.div_ceil(4) * 4)
}

impl IpFragmenter {
    /// Reads a packet from its IP header on into `whole`; returns the lengths of the header and of the
    /// packet.
    fn read(&mut self, packet: &Packet) -> Option<(usize, usize)> {
        use packet::Access as _;
        let from_net = from_network(packet)?;
        let bytes = PacketBytes::new(&from_net);
        let header = IP_HL.load(&bytes, 0)? as usize * 4;
        let length = usize::from(bytes.u16(2)?);
        if header < IP_BYTES || length < header || length > bytes.len() {
            return None;
        }
        self.whole.resize(length, 0);
        bytes.copy_out(0, &mut self.whole).then_some((header, length))
    }

    /// Makes all fragments but the first, which `first` will become; returns the first's payload length.
    fn make_rest(&mut self, first: &Packet, header: usize, work: &mut Work<'_>) -> Result<usize, usize> {
        let off = u16::from_be_bytes([self.whole[6], self.whole[7]]);
        let space = (self.mtu as usize).saturating_sub(header) & !7;
        if (off & DONT_FRAGMENT != 0 && self.honor_df) || space < 8 {
            return Err(MUST_NOT);
        }
        if off & DONT_FRAGMENT != 0 {
            // A sender that forbids fragmentation may give all packets the same identification.
            let id = ((random::next_number(&mut self.random) >> 32) as u16).to_be_bytes();
            self.whole[4..6].copy_from_slice(&id);
        }
        let had_more = off & MORE_FRAGMENTS;
        let base = off & !DONT_FRAGMENT & !MORE_FRAGMENTS;
        let (options, option_bytes) = copied_options(&self.whole[IP_BYTES..header]);
        let head = IP_BYTES + option_bytes;
        let payload = self.whole.len() - header;
        let most = (self.mtu as usize - head) & !7;
        let mut at = space;
        while at < payload {
            let here = most.min(payload - at);
            self.part.clear();
            self.part.extend_from_slice(&self.whole[..IP_BYTES]);
            self.part.extend_from_slice(&options[..option_bytes]);
            self.part.extend_from_slice(&self.whole[header + at..header + at + here]);
            self.part[0] = 0x40 | (head / 4) as u8;
            self.part[2..4].copy_from_slice(&((head + here) as u16).to_be_bytes());
            let more = if at + here < payload { MORE_FRAGMENTS } else { had_more };
            let off = base.wrapping_add((at / 8) as u16) | more;
            self.part[6..8].copy_from_slice(&off.to_be_bytes());
            set_checksum(&mut self.part[..head]);
            let mut made = work.make(&self.part).ok_or(NO_BUFFER)?;
            (made.anno, made.packet_type) = (first.anno, first.packet_type);
            (made.timestamp_ns, made.origin, made.flow_hash) =
                (first.timestamp_ns, first.origin, first.flow_hash);
            (made.mac, made.net, made.trans) = (NO_HEADER, made.data(), made.data() + head as u16);
            self.produced.push(made);
            at += here;
        }
        Ok(space)
    }

    /// Fragments a packet: it becomes the first fragment, the others are in `produced`.
    fn cut(&mut self, packet: &mut Packet, work: &mut Work<'_>) -> Result<(), usize> {
        use packet::Access as _;
        let (header, length) = self.read(packet).ok_or(NO_IP_HEADER)?;
        if length <= self.mtu as usize {
            // Only bytes behind the IP packet made it too long.
            let excess = from_network(packet).map_or(0, |from_net| from_net.total() as usize - length);
            return if packet.take(excess) { Ok(()) } else { Err(NO_IP_HEADER) };
        }
        let space = self.make_rest(packet, header, work)?;
        let off = u16::from_be_bytes([self.whole[6], self.whole[7]]) & !DONT_FRAGMENT | MORE_FRAGMENTS;
        self.whole[6..8].copy_from_slice(&off.to_be_bytes());
        self.whole[2..4].copy_from_slice(&((header + space) as u16).to_be_bytes());
        set_checksum(&mut self.whole[..header]);
        let mut from_net = from_network(packet).ok_or(NO_IP_HEADER)?;
        let excess = from_net.total() as usize - header - space;
        let written = PacketBytesMut::new(&mut from_net).copy_in(0, &self.whole[..header]);
        if !written || !packet.take(excess) {
            return Err(NO_IP_HEADER);
        }
        self.fragments += 1 + self.produced.len() as u64;
        Ok(())
    }

    fn tell(&self, index: u16, work: &mut Work<'_>) {
        let address = |at: usize| {
            let bytes = self.whole.get(at..at + 4).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            Ipv4Addr::from(bytes.unwrap_or_default())
        };
        let (src, dst, length) = (address(12), address(16), self.whole.len());
        let line = format!("IPFragmenter({}) DF {src} {dst} len={length}", self.mtu);
        work.print_about(index, &line);
    }
}

impl Transparent for IpFragmenter {
    fn build(&self, f: &mut Builder) {
        f.name("IPFragmenter");
        let (headless, long) = (f.drop_block("no-ip-header"), f.slow_block("long"));
        f.need(Base::Net, IP_BYTES, headless);
        f.check((packet_len() - offset(Base::Net)).at_most(u64::from(self.mtu)), long);
        f.emit(0);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            work.place_behind(index);
            match self.cut(batch.packet_mut(index), work) {
                Ok(()) => {
                    batch.emit(index, 0);
                    self.produced.iter().for_each(|made| work.emit(0, made));
                }
                Err(MUST_NOT) => {
                    self.drops += 1;
                    if self.verbose {
                        self.tell(index, work);
                    }
                    batch.emit_or_drop(index, 1, MUST_NOT);
                }
                Err(reason) => {
                    batch.drop(index, reason);
                    work.drop(reason, &self.produced);
                }
            }
            self.produced.clear();
        }
    }
}

impl Element for IpFragmenter {
    element::facts!(reasons: REASONS, handlers: HANDLERS);

    fn prints(&self) -> bool {
        self.verbose
    }
}

const HANDLERS: &[Row<IpFragmenter>] = &[
    Row::sum("drops", |fragmenter, _| Some(fragmenter.drops.to_string())),
    Row::sum("fragments", |fragmenter, _| Some(fragmenter.fragments.to_string())),
];
