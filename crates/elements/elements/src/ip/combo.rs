//! `IPInputCombo` and `IPOutputCombo`: what a router does with a packet at an input and at an output, as one
//! program each.

use super::checkipheader::{CheckIpHeader, FAULTS, read_sources};
use super::complaint::{BadBlocks, Check, Checker, Complaints};
use super::header::{IP_BYTES, Ipv4Header, from_network, set_checksum};
use super::ipgwoptions::GatewayOptions;
use super::setipchecksum::{check_length, compute};
use crate::basic::tee::Copier;
use click::config::parse;
use element::{BoxElement, Class, Configure, Element, Handlers, PortCodes, StateScope, Transparent, Work};
use ir::expr::{anno, csum_update, load, packet_len};
use ir::{Builder, Expr, Inst};
use packet::Access;
use packet::anno;
use packet::field::{Base, IP_HL, IP_SRC, IP_SUM, IP_TTL};
use shm::Packet;
use shm::burst::Batch;
use shm::bytes::PacketBytesMut;
use shm::descriptor::PacketType;

/// `IPInputCombo`.
pub const INPUT: Class = Class {
    name: "IPInputCombo",
    summary: "input combo for IP routing",
    page: "\
# IPInputCombo(COLOR [, BADSRC, keywords INTERFACES, BADSRC, GOODDST])

The same as `Paint(COLOR) -> Strip(14) -> CheckIPHeader(BADSRC, ...)`, as one element: paints the packets that
come in by an interface, removes their Ethernet headers, checks their IP headers, and sets the destination address
annotation.

- **ports**: 1 input, 1 output, agnostic
- **arguments**: `COLOR` (0 to 255); `INTERFACES`, `BADSRC`, `GOODDST` as for CheckIPHeader. BADSRC by position
  also makes 0.0.0.0 and 255.255.255.255 bad sources
- **annotations**: sets `PAINT`, `DST_IP`, the network and the transport header
- **handlers**: `drops` (read): bad packets
- **drop reasons**: those of CheckIPHeader: `tiny-packet`, `bad-ip-version`, `bad-ip-header-length`,
  `bad-ip-length`, `bad-ip-checksum`, `bad-source-address`
- **difference**: nothing is printed for the first bad packet, because bad packets are counted by reason
",
    codes: PortCodes::AGNOSTIC,
    state: StateScope::PerWorker,
    make: make_input,
};

/// `IPOutputCombo`.
pub const OUTPUT: Class = Class {
    name: "IPOutputCombo",
    summary: "output combo for IP routing",
    page: "\
# IPOutputCombo(COLOR, IPADDR, MTU)

The same as the chain of elements in front of a router's output, as one element: DropBroadcasts, PaintTee(COLOR)
with its copies on output 1, IPGWOptions(IPADDR) with its bad packets on output 2, FixIPSrc(IPADDR), DecIPTTL with
expired packets on output 3. Packets longer than MTU leave by output 4, to an IPFragmenter.

- **ports**: 1 input, 5 outputs, push: good packets; copies of packets of the colour, for redirects; packets with
  bad options; expired packets; packets that are too long
- **arguments**: `COLOR` (0 to 255); `IPADDR`: the address of the interface that packets leave by; `MTU`
- **annotations**: reads the packet type and `PAINT`; reads and clears `FIX_IP_SRC`; sets `ICMP_PARAMPROB`; needs
  the network header
- **handlers**: `copy_failures` (read): copies that could not be made, because no packet was free
- **drop reasons**: `link-broadcast`; `no-ip-header`: the network header is not set, or the header cut off
- **difference**: those of IPGWOptions. The length is that of the whole packet, as in Click: put it behind a Strip
",
    codes: PortCodes::new("1/5", "h/h"),
    make: make_output,
    ..INPUT
};

/// Bytes of the Ethernet header that the input removes.
const ETHERNET_BYTES: u64 = 14;

struct InputCheck {
    color: u8,
    check: CheckIpHeader,
}

fn make_input(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let element = cx.name.to_string();
    cx.transparent(|args| {
        let color = args.mandatory_positional("COLOR", parse::u8);
        let (bad_sources, good_destinations) = read_sources(args);
        let complaints = Complaints::silent(&FAULTS, element);
        let check = CheckIpHeader::new("IPInputCombo", bad_sources, good_destinations);
        Some(Checker { complaints, check: InputCheck { color: color?, check } })
    })
}

impl Check for InputCheck {
    fn build(&self, f: &mut Builder, bad: &BadBlocks) {
        f.store_anno(anno::PAINT, u64::from(self.color));
        f.pull(ETHERNET_BYTES);
        self.check.build(f, bad);
    }

    fn slow(&self, complaints: &mut Complaints, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        self.check.slow(complaints, batch, work);
    }
}

element::reasons!(NO_HEADER = "no-ip-header");

/// The outputs.
const GOOD: usize = 0;
const COPIES: usize = 1;
const BAD_OPTION: usize = 2;
const EXPIRED: usize = 3;
const TOO_LONG: usize = 4;

struct OutputCombo {
    color: u8,
    address: u32,
    mtu: u32,
    options: GatewayOptions,
    copier: Copier,
}

fn make_output(cx: &mut Configure<'_>) -> Option<BoxElement> {
    cx.transparent(|args| {
        let color = args.mandatory_positional("COLOR", parse::u8);
        let address = args.mandatory_positional("IPADDR", parse::ip4);
        let mtu = args.mandatory_positional("MTU", parse::u32);
        let address = u32::from(address?);
        let options = GatewayOptions::new(address, vec![]);
        Some(OutputCombo { color: color?, address, mtu: mtu?, options, copier: Copier::default() })
    })
}

impl Transparent for OutputCombo {
    fn build(&self, f: &mut Builder) {
        f.name("IPOutputCombo");
        let broadcast = f.drop_block("link-broadcast");
        let headless = f.drop_block("no-ip-header");
        let (slow, long) = (f.slow_block("unusual"), f.aside(|f| f.emit(TOO_LONG)));
        let expired = f.aside(|f| f.emit(EXPIRED));
        let kind = Expr::from(Inst::PacketType);
        f.leave_if(kind.within(PacketType::Broadcast as u64, PacketType::Multicast as u64), broadcast);
        f.need(Base::Net, IP_BYTES, headless);
        // Packets of which there are few: they need a copy, or have options.
        f.leave_if(anno(anno::PAINT).equals(u64::from(self.color)), slow);
        f.leave_if(load(IP_HL).greater_than(5), slow);
        let (fixed, forwarded) = (f.block(), f.block());
        f.branch_to(anno(anno::FIX_IP_SRC), fixed, forwarded);

        f.at(fixed);
        f.store_anno(anno::FIX_IP_SRC, 0);
        check_length(f, headless);
        f.store(IP_SRC, u64::from(self.address));
        compute(f);
        f.jump(forwarded);

        f.at(forwarded);
        let (ttl, one) = (f.eval(load(IP_TTL)), f.eval(1));
        f.check(ttl.greater_than(one), expired);
        f.store(IP_SUM, csum_update(load(IP_SUM), 0x0100, 0, 16));
        f.store(IP_TTL, ttl - one);
        f.check(packet_len().at_most(u64::from(self.mtu)), long);
        f.emit(GOOD);
    }

    fn slow(&mut self, _path: usize, batch: &mut Batch<'_>, work: &mut Work<'_>) {
        for &index in batch.list() {
            if anno::PAINT.load(&batch.packet(index).anno) == u64::from(self.color) {
                self.copier.send_copy(batch, index, COPIES, work);
            }
            match self.forward(batch.packet_mut(index)) {
                Some(port) => batch.emit(index, port),
                None => batch.drop(index, NO_HEADER),
            }
        }
    }
}

impl OutputCombo {
    /// Does the same as the program; the output, or `None` if there is no IP header.
    fn forward(&self, packet: &mut Packet) -> Option<usize> {
        let mut from_net = from_network(packet)?;
        if Ipv4Header::read(&from_net)?.bytes().len() > IP_BYTES && !self.options.apply(packet)? {
            return Some(BAD_OPTION);
        }
        let mut header = Ipv4Header::read(&from_net)?;
        let header = header.bytes_mut();
        if anno::FIX_IP_SRC.load(&packet.anno) != 0 {
            anno::FIX_IP_SRC.store(&mut packet.anno, 0);
            header[12..16].copy_from_slice(&self.address.to_be_bytes());
            set_checksum(header);
        }
        let expired = header[8] <= 1;
        if !expired {
            header[8] -= 1;
            let sum = u16::from_be_bytes([header[10], header[11]]);
            let sum = packet::checksum::update16(sum, 0x0100, 0);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let written = PacketBytesMut::new(&mut from_net).copy_in(0, header);
        debug_assert!(written, "the header was read there");
        match () {
            () if expired => Some(EXPIRED),
            () if packet.total() > self.mtu => Some(TOO_LONG),
            () => Some(GOOD),
        }
    }
}

impl Element for OutputCombo {
    element::facts!(reasons: REASONS);

    fn handlers(&mut self) -> Handlers<'_> {
        Handlers::of(&mut self.copier, Copier::HANDLERS)
    }
}
