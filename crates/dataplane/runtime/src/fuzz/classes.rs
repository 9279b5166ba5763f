//! Random chains of all classes that need no device, socket or kernel: each occurs, and all do the same in every
//! execution mode.

use super::{Choices, Setup, all_do_the_same, frame, wire};
use crate::registry::KnownClasses;
use diag::{Diagnostics, SourceMap};
use std::collections::BTreeMap;

/// What a piece of a chain asks of the chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Any,
    /// The order of packets: what it does depends on those before.
    InOrder,
    /// It has no program, so that a fused region ends at it.
    Opaque,
    /// A clock that goes on: packets wait in it for a time.
    Timed,
    /// Packets wait in it, and are pulled.
    Pulled,
}

use Kind::{Any, InOrder, Opaque, Pulled, Timed};

/// Pieces with one input: the configuration, its outputs, and what it asks. `@` is a number of the piece.
const PIECES: &[(&str, usize, Kind)] = &[
    ("AggregateIP(ip src)", 1, Opaque),
    ("AggregateIPAddrPair", 1, Opaque),
    ("AggregateLength", 1, Opaque),
    ("AggregatePaint", 1, Opaque),
    (
        "{ input -> AggregateLength -> f :: AggregateFilter(0 0-99, 1 all) \
         -> output; f[1] -> [1]output }",
        2,
        Opaque,
    ),
    ("{ input -> AggregateLength -> AggregateFirst -> output }", 1, Opaque),
    ("RegexClassifier(\"\\x01\\x02\", \"\")", 2, Opaque),
    (
        "{ input -> MarkIPHeader(14) -> FTPPortMapper(r, r, 0) \
         -> r :: TCPRewriter(pattern 203.0.113.9 1024-65535# - - 0 0) -> output }",
        1,
        InOrder,
    ),
    ("{ input -> MarkIPHeader(14) -> ProtocolTranslator46 -> ProtocolTranslator64 -> output }", 1, Opaque),
    (
        "{ input -> MarkIPHeader(14) -> ProtocolTranslator46
           -> a :: AddressTranslator(0, true, true, false, 2001:db8::1 1024 65535) -> output;
           Idle -> [1]a; a[1] -> [1]output }",
        2,
        Opaque,
    ),
    (
        "{ input -> MarkIPHeader(14) -> IPRewriter(pattern 10.0.0.9 80 10.0.0.9 80 0 0) -> r :: IPRewriter(keep 0 1)
           -> output; r[1] -> [1]output }",
        2,
        InOrder,
    ),
    ("Align(4, 2)", 1, Any),
    ("AverageCounter", 1, Any),
    ("CheckICMPHeader", 1, Any),
    ("CheckIP6Header(OFFSET 14)", 2, Any),
    ("CheckIP6Header(OFFSET 14, PROCESS_EH true)", 2, Any),
    ("CheckIPHeader(14)", 2, Any),
    ("CheckIPHeader", 1, Any),
    ("CheckIPHeader2(14)", 1, Any),
    ("CheckLength(80)", 2, Any),
    ("CheckPaint(1)", 2, Any),
    ("CheckTCPHeader", 1, Any),
    ("CheckUDPHeader", 1, Any),
    ("Classifier(12/0800, 12/8100, 12/86dd, -)", 4, Any),
    ("Counter", 1, Any),
    ("CounterMP", 1, Any),
    ("CPUSwitch", 2, Any),
    ("DecIP6HLIM", 2, Any),
    ("DecIPTTL", 2, Any),
    ("DirectIPLookup(10.0.0.0/9 0, 10.128.0.0/10 192.0.2.1 1, 0/0 0)", 2, Any),
    ("DropBroadcasts", 1, Any),
    ("EnsureDPDKBuffer", 1, Any),
    ("EnsureEther", 1, Any),
    ("EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04)", 1, Any),
    ("EtherMirror", 1, Any),
    ("EtherRewrite(02:00:00:00:00:01, 02:00:00:00:00:02)", 1, Any),
    ("EtherVLANEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2, 5)", 1, Any),
    ("ExactCPUSwitch", 1, Any),
    ("FixIPSrc(10.0.0.1)", 1, Any),
    ("FlowSwitch", 2, Any),
    ("GetIP6Address(38)", 1, Any),
    ("GetIPAddress(30)", 1, Any),
    ("HashSwitch(26, 8)", 2, Any),
    ("HostEtherFilter(02:02:02:02:02:02)", 2, Any),
    ("ICMPPingResponder", 2, Any),
    ("IPClassifier(udp, tcp and dst port 80 or 443, src host 10.1.0.1, -)", 4, Any),
    ("IPFilter(1 dst port 53, drop icmp, allow all)", 2, Any),
    ("IP6Fragmenter(100)", 2, Any),
    ("{ input -> MarkIP6Header(14) -> IP6Mirror -> output }", 1, Any),
    ("IPFragmenter(100)", 2, Any),
    ("IPGWOptions(10.0.0.1)", 2, Any),
    ("IPInputCombo(3)", 1, Any),
    ("IPMirror", 1, Any),
    ("IPOutputCombo(1, 18.26.4.9, 120)", 5, Any),
    ("LinearIPLookup(10.0.0.0/9 0, 10.128.0.0/10 192.0.2.1 1, 0/0 0)", 2, Any),
    (
        "{ input -> GetIP6Address(38) -> l :: LookupIP6Route(2001:db8::/64 0, ::/0 1) \
         -> output; l[1] -> [1]output }",
        2,
        Any,
    ),
    ("MarkIP6Header(14)", 1, Any),
    ("MarkIPCE", 1, Any),
    ("MarkIPHeader(14)", 1, Any),
    ("MarkMACHeader", 1, Any),
    ("Null", 1, Any),
    ("OriginSwitch(0, OTHERWISE 1)", 2, Any),
    ("Pad(100)", 1, Any),
    ("Paint(1)", 1, Any),
    ("PaintSwitch", 3, Any),
    ("PaintTee(1)", 2, Any),
    ("Peel(vlan)", 1, Any),
    ("Pipeliner", 1, Any),
    ("PushNull", 1, Any),
    ("RadixIPLookup(10.0.0.0/9 0, 10.0.0.0/16 192.0.2.1 1, 0/0 0)", 2, Any),
    ("RangeIPLookup(10.0.0.0/9 0, 10.0.0.0/16 192.0.2.1 1, 0/0 0)", 2, Any),
    ("ResetIPChecksum", 1, Any),
    ("SetAnnoByte(0, 7)", 1, Any),
    ("SetIP6Address(2001:db8::99)", 1, Any),
    (
        "{ input -> MarkIP6Header(14) -> SetIP6DSCP(10) -> SetIP6ECN(1) -> SetIP6FlowLabel(0x12345) -> SetIP6Hlim(9)
           -> output }",
        1,
        Any,
    ),
    ("SetIPAddress(10.0.0.99)", 1, Any),
    ("SetIPChecksum", 1, Any),
    ("SetIPDSCP(10)", 1, Any),
    ("SetIPECN(1)", 1, Any),
    ("SetTCPChecksum", 1, Any),
    ("SetUDPChecksum", 1, Any),
    ("SetVLANAnno(5)", 1, Any),
    ("SortedIPLookup(10.0.0.0/9 0, 10.0.0.0/16 192.0.2.1 1, 0/0 0)", 2, Any),
    ("StaticIPLookup(10.0.0.0/9 0, 10.128.0.0/10 192.0.2.1 1, 0/0 0)", 2, Any),
    ("{ input -> SpinlockAcquire(l) -> SpinlockPush(l) -> PathSpinlock(l) -> SpinlockRelease(l) -> output }", 1, Any),
    ("StaticSwitch(1)", 2, Any),
    ("StoreData(20, \\<01 02>)", 1, Any),
    ("StoreEtherAddress(2:0:0:0:0:7, dst)", 1, Any),
    ("StoreIP6Address(2001:db8::5, 22)", 1, Any),
    ("StoreIPAddress(10.0.0.7, 26)", 1, Any),
    ("Strip(14)", 1, Any),
    ("StripEtherVLANHeader", 1, Any),
    ("{ input -> MarkIPHeader(14) -> StripIPHeader -> UnstripIPHeader -> output }", 1, Any),
    ("StripToNetworkHeader", 1, Any),
    ("Switch(0)", 2, Any),
    ("Truncate(70)", 1, Any),
    // What is there by itself is what an earlier packet left in the slot.
    ("{ input -> Strip(4) -> Unstrip(4) -> output }", 1, Any),
    ("VLANDecap", 1, Any),
    ("VLANEncap(7)", 1, Any),
    // What depends on the packets before.
    ("Bypass(true)", 2, Any),
    ("{ input -> MarkIPHeader(14) -> ICMPIPEncap(10.0.0.1, 10.0.0.2, echo) -> output }", 1, InOrder),
    ("ICMPPingEncap(10.0.0.1, 10.0.0.2)", 1, InOrder),
    (
        "{ input -> MarkIPHeader(14) \
         -> ICMPPingRewriter(pattern 203.0.113.1 1024-65535# - - 0 0) -> output }",
        1,
        InOrder,
    ),
    (
        "{ input -> MarkIPHeader(14) -> r :: UDPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1) -> output;
           r[1] -> ICMPRewriter(r) -> [1]output }",
        2,
        InOrder,
    ),
    (
        "{ input -> MarkIPHeader(14) \
         -> IPAddrPairRewriter(pattern 203.0.113.1-203.0.113.9# - 0 0) -> output }",
        1,
        InOrder,
    ),
    (
        "{ input -> MarkIPHeader(14) \
         -> IPAddrRewriter(pattern 203.0.113.1-203.0.113.200# - 0 0) -> output }",
        1,
        InOrder,
    ),
    ("IPEncap(4, 10.0.0.1, 10.0.0.2)", 1, InOrder),
    (
        "{ input -> MarkIPHeader(14) -> r :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1, SEED 1) \
         -> output; r[1] -> [1]output }",
        2,
        InOrder,
    ),
    (
        "{ IPRewriterPatterns(p@ 203.0.113.7 1024-65535# - -); m :: RoundRobinIPMapper(p@ 0 1, - - 10.0.0.8 - 0 1);
           input -> MarkIPHeader(14) -> r :: IPRewriter(m) -> output; r[1] -> [1]output }",
        2,
        InOrder,
    ),
    (
        "{ m :: SourceIPHashMapper(7 0xbeef, - - 10.0.0.8 - 0 1 11, - - 10.0.0.9 - 0 1 22);
           input -> MarkIPHeader(14) -> r :: IPRewriter(m) -> output; r[1] -> [1]output }",
        2,
        InOrder,
    ),
    ("NumberPacket(OFFSET 50)", 1, InOrder),
    ("PaintRR", 2, InOrder),
    ("RandomSample(0.5)", 2, InOrder),
    ("RandomSwitch", 2, InOrder),
    ("RoundRobinSwitch", 3, InOrder),
    (
        "{ input -> MarkIPHeader(14) \
         -> TCPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0, SEED 3) -> output }",
        1,
        InOrder,
    ),
    ("UDPIPEncap(10.0.0.1, 1234, 10.0.0.2, 5678)", 1, InOrder),
    (
        "{ ARPTable(CAPACITY 100); input -> Paint(0) -> MarkIPHeader(14) -> StripToNetworkHeader
           -> q :: ARPQuerier(10.0.0.77, 2:0:0:0:0:1) -> output; Idle -> [1]q }",
        1,
        InOrder,
    ),
    // Without a program.
    ("AggregateCounter", 1, Opaque),
    ("AdjustTimestamp(-1.5, ALL true)", 1, Opaque),
    (
        "{ input -> MarkIPHeader(14) -> a :: AggregateIPFlows(ICMP true, FRAGMENT_TIMEOUT 0.001)
           -> output; a[1] -> [1]output }",
        2,
        Opaque,
    ),
    ("ARPPrint(ACTIVE false)", 1, Opaque),
    ("ARPResponder(10.0.0.1 2:0:0:0:0:1)", 2, Opaque),
    ("CheckNumberPacket(OFFSET 50, COUNT 1000)", 2, Opaque),
    ("Dispatch(udp, all)", 2, Opaque),
    ("ForceIP", 1, Opaque),
    ("{ input -> MarkIPHeader(14) -> ForceICMP(echo, 0) -> ForceTCP(0, true) -> ForceUDP -> output }", 1, Opaque),
    ("{ input -> e :: EtherSwitch -> output; Idle -> [1]e; e[1] -> [1]output }", 2, Opaque),
    ("ICMP6Error(2001:db8::9, 1, 0)", 1, Opaque),
    ("{ input -> MarkIPHeader(14) -> ICMPError(10.0.0.1, timeexceeded) -> output }", 1, Opaque),
    ("IP6NDAdvertiser(2001:db8::5 0:0:c0:ae:67:ef)", 1, Opaque),
    (
        "{ input -> MarkIP6Header(14) -> n :: IP6NDSolicitor(2001:db8::77, 2:0:0:0:0:1) \
         -> output; Idle -> [1]n; n[1] -> [1]output }",
        2,
        Opaque,
    ),
    ("IP6Encap(4, 2001:db8::1, 2001:db8::2)", 1, Opaque),
    (
        "{ input -> MarkIP6Header(14) -> SetTransportChecksumIP6 -> SetTCPChecksumIP6 -> SetUDPChecksumIP6
           -> SetICMPChecksumIP6 -> output }",
        1,
        Opaque,
    ),
    ("{ input -> CheckPacket -> IP6Print(ACTIVE false) -> output }", 1, Opaque),
    ("IPPrint(ACTIVE false)", 1, Opaque),
    ("{ input -> MarkIPHeader(14) -> IPReassembler -> output }", 1, Opaque),
    ("{ input -> s :: InputSwitch(0) -> output; Idle -> [1]s }", 1, Opaque),
    ("Print(CONTENTS false, ACTIVE false)", 1, Opaque),
    ("RatedSplitter(1000, BURST_SIZE 9)", 2, Opaque),
    ("BandwidthRatedSplitter(1000Bps, BURST_BYTES 900)", 2, Opaque),
    (
        "{ input -> r :: Resolver(lan@, 10.0.0.1/24, MAC 2:0:0:0:0:1) \
         -> output; r[1] -> [1]output }",
        2,
        Opaque,
    ),
    ("Script(TYPE PACKET, set n $(add $n 1), return $(mod $n 2))", 2, Opaque),
    ("Resize(HEAD -4, TAIL 6)", 1, Opaque),
    ("SetTimestamp(5)", 1, Opaque),
    ("SetTimestampDelta", 1, Opaque),
    ("TimeFilter(1, END_AFTER 0.01)", 2, Opaque),
    ("UDPIP6Encap(2001:db8::1, 1, 2001:db8::2, 2)", 1, Opaque),
    ("Tee", 2, Opaque),
    ("{ input -> t :: Tee -> output; t[1] -> ToDump(dump@.pcap, SNAPLEN 0) }", 1, Opaque),
    (
        "{ input -> t :: Tee -> output; t[1] \
         -> ToIPSummaryDump(dump@.txt, FIELDS src dst ip_len ip_ttl sport) }",
        1,
        Opaque,
    ),
    (
        "{ input -> NumberPacket(OFFSET 50) -> r :: RecordTimestamp(OFFSET 50, N 1000)
           -> t :: TimestampDiff(r, N 100, OFFSET 50) -> output; t[1] -> [1]output }",
        2,
        Opaque,
    ),
    // In which packets wait.
    ("{ input -> Queue(500) -> Unqueue -> output }", 1, Pulled),
    ("{ input -> ThreadSafeQueue(500) -> Unqueue(3) -> output }", 1, Pulled),
    ("{ input -> SimpleQueue(20) -> PullNull -> Unqueue -> output }", 1, Pulled),
    ("{ input -> NotifierQueue(500) -> t :: PullTee -> Unqueue -> output; t[1] -> [1]output }", 2, Pulled),
    (
        "{ input -> FullNoteQueue(500) -> s :: StaticPullSwitch(0) \
         -> Unqueue -> output; Idle -> Queue -> [1]s }",
        1,
        Pulled,
    ),
    (
        "{ input -> QuickNoteQueue(500) -> s :: PullSwitch(0) \
         -> Unqueue -> output; Idle -> Queue -> [1]s }",
        1,
        Pulled,
    ),
    (
        "{ input -> FrontDropQueue(20) -> s :: SimplePullSwitch(0) \
         -> Unqueue -> output; Idle -> Queue -> [1]s }",
        1,
        Pulled,
    ),
    ("{ input -> q :: MixedQueue(50) -> Unqueue -> output; Idle -> [1]q }", 1, Pulled),
    (
        "{ input -> c :: RoundRobinSwitch; \
         c[0], c[1] => Queue(90), Queue(90) => s :: RoundRobinSched -> Unqueue -> output }",
        1,
        Pulled,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; \
         c[0], c[1] => Queue(90), Queue(90) => s :: StrideSched(1, 2) -> Unqueue -> output }",
        1,
        Pulled,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; \
         c[0], c[1] => Queue(90), Queue(90) => s :: PrioSched -> Unqueue -> output }",
        1,
        Pulled,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; \
         c[0], c[1] => Queue(90), Queue(90) => s :: DRRSched -> Unqueue -> output }",
        1,
        Pulled,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; c[0], c[1] => Queue(90), Queue(90) => s :: SimpleRoundRobinSched
           -> Unqueue -> output }",
        1,
        Pulled,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; c[0], c[1] => Queue(90), Queue(90) => s :: SimplePrioSched
           -> Unqueue -> output; SimpleIdle -> [2]s }",
        1,
        Pulled,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; c[0], c[1] => Queue(90), Queue(90) => u :: RoundRobinUnqueue
           -> output; u[1] -> [1]output }",
        2,
        Pulled,
    ),
    ("{ input -> AdaptiveRED(5000, 0.2) -> Queue(100) -> Unqueue(2) -> output }", 1, Pulled),
    ("{ input -> SetTimestamp(FIRST true) -> Queue(100) -> CoDel -> Unqueue(2) -> output }", 1, Pulled),
    ("{ input -> RED(5000, 9000, 0.2) -> Queue(100) -> Unqueue(2) -> output }", 1, Pulled),
    // For a time.
    ("{ input -> Queue -> BandwidthRatedUnqueue(100kBps) -> output }", 1, Timed),
    ("{ input -> Queue -> BandwidthShaper(100kBps) -> Unqueue -> output }", 1, Timed),
    ("{ input -> Queue -> DelayShaper(10ms) -> Unqueue -> output }", 1, Timed),
    ("{ input -> Queue -> DelayUnqueue(10ms) -> output }", 1, Timed),
    ("{ input -> Queue -> LinkUnqueue(1ms, 10Mbps) -> output }", 1, Timed),
    ("{ input -> Queue -> RatedUnqueue(1000) -> output }", 1, Timed),
    ("{ input -> Queue -> Shaper(1000) -> Unqueue -> output }", 1, Timed),
    ("{ input -> Queue -> TimedSink(0.001); Idle -> output }", 1, Timed),
    ("{ input -> Queue -> ReplayUnqueue(LIMIT 10, STOP 2) -> output }", 1, Timed),
    (
        "{ input -> c :: RoundRobinSwitch; c[0], c[1] => Queue, Queue => m :: MultiReplayUnqueue(LIMIT 10, STOP 2);
           m[0] -> output; m[1] -> [1]output }",
        2,
        Timed,
    ),
    (
        "{ input -> c :: RoundRobinSwitch; \
         c[0], c[1] => Queue(90), Queue(90) => TimeSortedSched(BUFFER 2) -> Unqueue -> output }",
        1,
        Timed,
    ),
];

/// Sources beside the port, which need a clock that goes on.
const SOURCES: &[&str] = &[
    "InfiniteSource(\\<02 02 02 02 02 02 02 02 02 02 02 02 08 00>, LIMIT 40, LENGTH 70)",
    "RatedSource(\\<02 02 02 02 02 02 02 02 02 02 02 02 08 00>, RATE 1000, LIMIT 20)",
    "TimedSource(0.01, \\<02 02 02 02 02 02>, LIMIT 9)",
    "FastUDPFlows(0, 30, 100, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2, 10, 5)",
    "ICMPPingSource(10.0.0.1, 10.0.0.2, INTERVAL 0.1, LIMIT 9)",
    "ARPFaker(10.0.0.1, 2:0:0:0:0:1, 10.0.0.2, 2:0:0:0:0:2)",
];

/// What informs other elements, or acts by itself.
const APART: &[&str] = &[
    "AddressInfo(here 10.0.0.1)",
    "AlignmentInfo(x 4 0)",
    "ClickyInfo(STYLE x)",
    "DPDKInfo(1000)",
    "PortInfo(here 80/tcp)",
    "JiffieClock",
    "TSCClock",
    "ScheduleInfo(x 1)",
    "StaticThreadSched(c 0); BalancedThreadSched(100); SpinlockInfo(l); RandomSeed(7)",
    "HandlerTask(c.reset, ACTIVE false); NullTask(LIMIT 9)",
    "DriverManager(wait_stop)",
];

/// Classes that random chains do not have, each with the reason.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("FromDPDKDevice", "needs a device"),
    ("ToDPDKDevice", "needs a device"),
    ("PollDevice", "needs a device: FromDevice under another name"),
    ("ControlSocket", "needs a socket"),
    ("FromHost", "needs the kernel"),
    ("KernelTap", "needs the kernel"),
    ("KernelTun", "needs the kernel"),
    ("McastSocket", "needs the kernel"),
    ("ToHost", "needs the kernel"),
    ("ProcessNF", "needs a process: the oracle with NFs in processes has it"),
    ("Steer", "stands in front of NFs in processes only"),
    ("FromDump", "reads a file: its packets are those of FromIPSummaryDump and of the ports"),
];

/// The chain that the bytes encode, with one of the pieces, sources or elements apart for sure; and whether it needs a
/// clock that goes on.
fn chain(choices: &mut Choices<'_>) -> (String, bool) {
    let must = choices.byte() | choices.byte() << 8;
    let must = must % (PIECES.len() + SOURCES.len() + APART.len() + 1);
    let count = 2 + choices.byte() % 9;
    let place = choices.byte() % count;
    let (mut text, mut wires) = (String::new(), String::from("FromDevice(in) -> c :: Counter -> e0;\n"));
    let (mut free, mut timed) = (0, false);
    for at in 0..count {
        let chosen = choices.byte() | choices.byte() << 8;
        let chosen = if at == place && must < PIECES.len() { must } else { chosen % PIECES.len() };
        let (what, outputs, kind) = PIECES[chosen];
        if kind != Any {
            // In a loop, packets of a burst pass it one after the other, and go round one after the other.
            free = at + 1;
        }
        timed |= matches!(kind, Timed | Pulled);
        text += &format!("e{at} :: {};\n", what.replace('@', &at.to_string()));
        (0..outputs).for_each(|output| wires += &wire(choices, (at, output), count, free));
    }
    text += &wires;
    let has_way_back = !timed && must < PIECES.len() && choices.byte().is_multiple_of(3);
    if has_way_back {
        let rest = text.replace("ToDevice(out0)", "w") + &way_back(choices, count);
        text = String::from("w :: MarkIPHeader(14);\nIdle -> w;\n") + &rest;
    }
    let others = SOURCES.len() + APART.len() + 1;
    let beside = match must.checked_sub(PIECES.len()) {
        None if !has_way_back && choices.byte().is_multiple_of(3) => Some(choices.byte() % others),
        beside => beside,
    };
    if let Some(source) = beside.and_then(|at| SOURCES.get(at)) {
        text += &format!("{source} -> s :: Counter -> e{};\n", choices.byte() % count);
        timed = true;
    }
    match beside.and_then(|at| at.checked_sub(SOURCES.len())) {
        Some(at) if at < APART.len() => {
            text += &format!("{};\n", APART[at]);
            // Scripts wait for the end of a run, which takes a while.
            timed |= APART[at].starts_with("DriverManager");
            // A run with a task that may be scheduled any time ends with the clock only.
            timed |= APART[at].starts_with("HandlerTask");
        }
        Some(_) => {
            text += "FromIPSummaryDump(in.txt) -> f :: Counter -> ToDevice(summary);\n";
            timed = true;
        }
        None => {}
    }
    (text, timed)
}

/// A translator in front of the port `wan`, where what leaves is answered, and the way of the answers: through pieces of
/// one output in front of it and behind it.
fn way_back(choices: &mut Choices<'_>, count: usize) -> String {
    let may_stand_there =
        |piece: &&(&str, usize, Kind)| piece.1 == 1 && matches!(piece.2, Any | InOrder | Opaque);
    let pieces: Vec<&str> = PIECES.iter().filter(may_stand_there).map(|piece| piece.0).collect();
    let mut piece = |at: usize| {
        let chosen = choices.byte() | choices.byte() << 8;
        pieces[chosen % pieces.len()].replace('@', &(count + at).to_string())
    };
    format!(
        "w -> n :: IPRewriter(pattern 203.0.113.77 1024-65535# - - 0 1, drop, SEED 1)
           -> wc :: Counter -> ToDevice(wan);
         FromDevice(back) -> bc :: Counter -> {} -> bm :: MarkIPHeader(14) -> [1]n;
         n[1] -> nc :: Counter -> {} -> rc :: Counter -> ToDevice(lan);\n",
        piece(0),
        piece(1)
    )
}

/// A frame of IPv6 or ARP.
fn other_frame(choices: &mut Choices<'_>) -> Vec<u8> {
    let last = choices.byte() as u8 % 3;
    let mut frame = vec![2; 12];
    if choices.byte().is_multiple_of(2) {
        let payload = 8 + choices.byte() % 40;
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, payload as u8, 17, [64, 1][choices.byte() % 2]]);
        for end in [last, 9] {
            frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, end]);
        }
        frame.extend((0..payload).map(|at| at as u8));
    } else {
        frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + choices.byte() as u8 % 2, 2, 0, 0, 0, 0, last]);
        frame.extend([10, 0, 0, last, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
        frame.resize(60, 0);
    }
    frame
}

/// Runs the chain that the bytes encode in all execution modes. Returns how often each class was in it, and the number
/// of packets that the flow cache handled.
///
/// # Panics
/// If the results differ.
pub fn fuzz_classes(data: &[u8]) -> (BTreeMap<String, usize>, u64) {
    let mut choices = Choices(data);
    let (text, is_timed) = chain(&mut choices);
    let burst = 1 + choices.byte() % 64;
    let frames = 0..4 + choices.byte() % 30;
    let frames = frames.map(|_| match choices.byte() % 5 {
        0 => other_frame(&mut choices),
        _ => frame(&mut choices),
    });
    let setup = Setup { frames: frames.collect(), burst, step_ns: 0, is_timed, text };
    (classes(&setup.text), all_do_the_same(&setup).hits)
}

/// How often each class is in a configuration.
fn classes(text: &str) -> BTreeMap<String, usize> {
    let (mut map, mut diags) = (SourceMap::new(), Diagnostics::new());
    let source = map.add("fuzz.click", text);
    let ast = click::parse(&mut map, source, &mut diags);
    let graph = click::flatten(&ast, &KnownClasses, &[], &mut diags);
    let mut counts = BTreeMap::new();
    graph.elements.iter().for_each(|element| *counts.entry(element.class.text.clone()).or_default() += 1);
    counts
}
