//! `CheckIPHeader` and `CheckIPHeader2`: check the IP header.

use super::argument::offset;
use super::complaint::{BadBlocks, Check, Checker, Complaints, Faults};
use click::config::{Args, Ip4Prefix, parse};
use element::{BoxElement, Class, Configure, PortCodes, StateScope, Work};
use ir::expr::{avail, ip_sum, load, packet_len};
use ir::{BlockId, Builder};
use packet::anno;
use packet::field::{Base, Field, IP_DST, IP_LEN, IP_SRC};
use shm::burst::Batch;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

macro_rules! page {
    ($name:literal, $checksum:literal, $difference:literal) => {
        concat!(
            "# ",
            $name,
            "([OFFSET, keywords OFFSET, INTERFACES, BADSRC, GOODDST, CHECKSUM, VERBOSE, DETAILS])\n\n",
            "Checks that packets have a right IPv4 header: length, version, header length, IP length, ",
            "checksum\nand source address. Sets the header annotations, cuts off what lies behind the IP ",
            "length (Ethernet\npadding), and sets the destination address annotation.\n\n",
            "- **ports**: 1 input, 1 or 2 outputs, agnostic; bad packets are pushed out of output 1\n",
            "- **arguments**: `OFFSET` (default 0): bytes before the IP header; `CHECKSUM` (default ",
            $checksum,
            "):\n  whether the checksum is checked; `BADSRC`: addresses that are no good sources; ",
            "`GOODDST`:\n  packets to these addresses may have them all the same; `INTERFACES`: this ",
            "router's addresses with\n  their prefixes: their networks' broadcast addresses, 0.0.0.0 ",
            "and 255.255.255.255 are bad sources,\n  they themselves good destinations; `VERBOSE`: ",
            "prints every bad packet; `DETAILS`: counts by reason\n",
            "- **annotations**: sets `DST_IP`, the network and the transport header\n",
            "- **handlers**: `drops` (read): bad packets; `drop_details` (read, with `DETAILS`)\n",
            "- **drop reasons**: `tiny-packet`, `bad-ip-version`, `bad-ip-header-length`, ",
            "`bad-ip-length`,\n  `bad-ip-checksum`, `bad-source-address`\n",
            "- **difference**: without `VERBOSE` nothing is printed for the first bad packet, because ",
            "bad packets\n  are counted by reason; a packet that is long enough but bad has its network ",
            "header annotation set,\n  because the checks read the header by it",
            $difference,
            "\n"
        )
    };
}

/// The class.
pub const CLASS: Class = Class {
    name: "CheckIPHeader",
    summary: "checks IP header",
    page: page!("CheckIPHeader", "true", ""),
    codes: PortCodes::CHECK,
    state: StateScope::PerWorker,
    make: |cx| make(cx, "CheckIPHeader", true),
};

/// The class that checks checksums only with `CHECKSUM true`.
pub const CLASS2: Class = Class {
    name: "CheckIPHeader2",
    summary: "checks IP header, no checksum",
    page: page!("CheckIPHeader2", "false", ""),
    make: |cx| make(cx, "CheckIPHeader2", false),
    ..CLASS
};

const TINY: usize = 0;
const VERSION: usize = 1;
const HEADER_LENGTH: usize = 2;
const LENGTH: usize = 3;
const CHECKSUM: usize = 4;
const SOURCE: usize = 5;
pub(super) const FAULTS: Faults = Faults {
    what: "IP header check failed",
    names: &[
        "tiny-packet",
        "bad-ip-version",
        "bad-ip-header-length",
        "bad-ip-length",
        "bad-ip-checksum",
        "bad-source-address",
        "impossible-length",
    ],
    texts: &[
        "tiny packet",
        "bad IP version",
        "bad IP header length",
        "bad IP length",
        "bad IP checksum",
        "bad source address",
    ],
};

/// Version 4 and a header length of 5 words: the smallest first byte of a good header.
const FIRST_BYTE: u64 = 0x45;

/// The checks.
pub(super) struct CheckIpHeader {
    class: &'static str,
    offset: u16,
    checksum: bool,
    bad_sources: BTreeSet<u32>,
    good_destinations: Vec<u32>,
}

/// The addresses that are bad sources for every router.
const NOBODY: [u32; 2] = [0, u32::MAX];

fn addresses(list: Vec<Ipv4Addr>) -> impl Iterator<Item = u32> {
    list.into_iter().map(u32::from)
}

fn make(cx: &mut Configure<'_>, class: &'static str, checksum: bool) -> Option<BoxElement> {
    let element = cx.name.to_string();
    cx.transparent(|args| {
        let (mut bad_sources, good_destinations) = read_keywords(args);
        let complaints = Complaints::new(&FAULTS, element, args);
        let checksum = args.keyword("CHECKSUM", parse::bool).unwrap_or(checksum);
        let at = offset_argument(args, &mut bad_sources);
        let offset = at.unwrap_or(0);
        let check = CheckIpHeader { class, offset, checksum, bad_sources, good_destinations };
        Some(Checker { complaints, check })
    })
}

/// The bad sources and the good destinations of `INTERFACES`, `BADSRC` and `GOODDST`.
fn read_keywords(args: &mut Args<'_>) -> (BTreeSet<u32>, Vec<u32>) {
    let (mut bad_sources, mut good_destinations) = (BTreeSet::new(), vec![]);
    let interfaces = args.keyword("INTERFACES", parse::list(parse::ip4_or_prefix));
    if let Some(interfaces) = interfaces {
        for Ip4Prefix { address, mask } in interfaces {
            bad_sources.insert(u32::from(address) | !u32::from(mask));
            good_destinations.push(u32::from(address));
        }
        bad_sources.extend(NOBODY);
    }
    let bad = args.keyword("BADSRC", parse::list(parse::ip4));
    bad_sources.extend(addresses(bad.unwrap_or_default()));
    let good = args.keyword("GOODDST", parse::list(parse::ip4));
    good_destinations.extend(addresses(good.unwrap_or_default()));
    (bad_sources, good_destinations)
}

/// The same; `BADSRC` may be given by position, too.
pub(super) fn read_sources(args: &mut Args<'_>) -> (BTreeSet<u32>, Vec<u32>) {
    // No keyword has this name: it is the form by position of another one.
    let old = args.positional("BADSRC*", parse::list(parse::ip4));
    let (mut bad_sources, good_destinations) = read_keywords(args);
    bad_sources.extend(old.into_iter().flat_map(|old| addresses(old).chain(NOBODY)));
    (bad_sources, good_destinations)
}

/// `OFFSET`, or Click's old form `BADSRC, OFFSET`, which makes 0.0.0.0 and 255.255.255.255 bad too.
fn offset_argument(args: &mut Args<'_>, bad_sources: &mut BTreeSet<u32>) -> Option<u16> {
    let keyword = args.keyword("OFFSET", offset);
    let rest = args.rest();
    let (old, at) = match rest.as_slice() {
        [] => return keyword,
        [only] if only.as_str().bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'x') => {
            return args.read(only, offset);
        }
        [old] => (old, None),
        [old, at] => (old, Some(at)),
        [_, _, extra, ..] => {
            args.error(extra.span, "too many arguments").help("it takes OFFSET and keywords");
            return None;
        }
    };
    let list = args.read(old, parse::list(parse::ip4));
    bad_sources.extend(addresses(list.unwrap_or_default()).chain(NOBODY));
    at.and_then(|at| args.read(at, offset)).or(keyword)
}

impl CheckIpHeader {
    /// Checks a header at the packet's front, with its checksum.
    pub(super) fn new(
        class: &'static str,
        bad_sources: BTreeSet<u32>,
        good_destinations: Vec<u32>,
    ) -> CheckIpHeader {
        CheckIpHeader { class, offset: 0, checksum: true, bad_sources, good_destinations }
    }

    /// Passes packets from good sources, or to good destinations; others continue at `bad`.
    fn check_source(&self, f: &mut Builder, bad: BlockId) {
        if self.bad_sources.is_empty() {
            return;
        }
        let (good, suspect) = (f.block(), f.block());
        let bad_sources = self.bad_sources.iter().map(|source| (u64::from(*source), suspect));
        f.switch(load(IP_SRC), bad_sources.collect(), good);
        f.at(suspect);
        let good_destinations = self.good_destinations.iter().map(|to| (u64::from(*to), good));
        f.switch(load(IP_DST), good_destinations.collect(), bad);
        f.at(good);
    }
}

impl Check for CheckIpHeader {
    fn build(&self, f: &mut Builder, bad: &BadBlocks) {
        f.name(self.class);
        let chain = f.slow_block("trim-chain");
        let offset = u64::from(self.offset);
        f.need(Base::Data, usize::from(self.offset) + 20, bad.of(TINY));
        f.set_base(Base::Net, offset);
        // Version and header length in one comparison; the block `odd` finds which of them is wrong.
        let first = f.eval(load(Field::bytes(Base::Net, 0, 1)));
        let odd = f.aside(|f| f.branch_to((first >> 4).equals(4), bad.of(HEADER_LENGTH), bad.of(VERSION)));
        f.check((first - FIRST_BYTE).less_than(0x50 - FIRST_BYTE), odd);
        let header = f.eval((first & 15) << 2);
        let length = f.eval(load(IP_LEN));
        f.check(header.at_most(length), bad.of(LENGTH));
        let end = f.eval(length + offset);
        f.check(end.at_most(packet_len()), bad.of(LENGTH));
        if self.checksum {
            f.check(ip_sum().equals(0xffff), bad.of(CHECKSUM));
        }
        self.check_source(f, bad.of(SOURCE));
        f.set_base(Base::Trans, header + offset);
        f.store_anno(anno::DST_IP, load(IP_DST));
        // Whether there is padding depends on the traffic: cutting always is cheaper than a mispredicted
        // branch.
        f.check(avail(Base::Data).equals(packet_len()), chain);
        f.take(end);
        f.emit(0);
    }

    fn slow(&self, complaints: &mut Complaints, batch: &mut Batch<'_>, _work: &mut Work<'_>) {
        let offset = usize::from(self.offset);
        complaints.trim(batch, |bytes| offset + IP_LEN.load(bytes, offset).unwrap_or(0) as usize);
    }
}
