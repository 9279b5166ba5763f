//! A configuration for each element class, or why there is none.

/// A configuration for each class that processes packets.
pub const CASES: &[(&str, &str)] = &[
    ("AdaptiveRED", "FromDevice(any) -> Queue -> AdaptiveRED(500, 0.1) -> Unqueue -> Discard"),
    ("Align", "FromDevice(any) -> Align(4, 0) -> Discard"),
    (
        "ARPQuerier",
        "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> SetIPAddress(10.0.0.1) \
        -> q :: ARPQuerier(10.0.0.77, 2:0:0:0:0:1) -> Queue -> Unqueue -> Discard; FromDevice(arp) -> [1] q",
    ),
    ("ARPResponder", "FromDevice(arp) -> ARPResponder(10.0.0.1 2:0:0:0:0:1) -> Discard"),
    ("AverageCounter", "FromDevice(any) -> AverageCounter -> Discard"),
    ("BandwidthRatedUnqueue", "FromDevice(any) -> Queue -> BandwidthRatedUnqueue(100MBps) -> Discard"),
    ("BandwidthShaper", "FromDevice(any) -> Queue -> BandwidthShaper(100MBps) -> Unqueue -> Discard"),
    ("CheckICMPHeader", "FromDevice(echo) -> Strip(14) -> CheckIPHeader -> CheckICMPHeader -> Discard"),
    ("CheckIP6Header", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> Discard"),
    ("CheckIPHeader", "FromDevice(any) -> Strip(14) -> CheckIPHeader -> Discard"),
    ("CheckIPHeader2", "FromDevice(any) -> Strip(14) -> CheckIPHeader2 -> Discard"),
    ("CheckLength", "FromDevice(any) -> CheckLength(60) -> Discard"),
    ("CheckPacket", "FromDevice(any) -> CheckPacket(LENGTH_GE 1) -> Discard"),
    ("CheckPaint", "FromDevice(any) -> Paint(1) -> CheckPaint(1) -> Discard"),
    ("CheckTCPHeader", "FromDevice(tcp) -> Strip(14) -> CheckIPHeader -> CheckTCPHeader -> Discard"),
    ("CheckUDPHeader", "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> Discard"),
    (
        "Classifier",
        "FromDevice(any) -> c :: Classifier(12/0800, 12/0806, -) -> d :: Discard; c[1] -> d; c[2] -> d",
    ),
    ("CoDel", "FromDevice(any) -> SetTimestamp(FIRST true) -> Queue -> CoDel -> Unqueue -> Discard"),
    ("Counter", "FromDevice(any) -> Counter -> Discard"),
    (
        "DRRSched",
        "FromDevice(any) -> Queue -> s :: DRRSched -> Unqueue -> Discard; FromDevice(udp) -> Queue -> [1] s",
    ),
    ("DecIP6HLIM", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> DecIP6HLIM -> Discard"),
    ("DecIPTTL", "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> Discard"),
    ("DelayShaper", "FromDevice(any) -> SetTimestamp -> Queue -> DelayShaper(1ms) -> Unqueue -> Discard"),
    ("DelayUnqueue", "FromDevice(any) -> SetTimestamp -> Queue -> DelayUnqueue(1ms) -> Discard"),
    ("Discard", "FromDevice(any) -> Discard"),
    ("Dispatch", "FromDevice(any) -> d :: Dispatch(udp, all) -> Discard; d[1] -> Discard"),
    ("DropBroadcasts", "FromDevice(any) -> DropBroadcasts -> Discard"),
    ("EnsureEther", "FromDevice(udp) -> Strip(14) -> MarkIPHeader -> EnsureEther -> Discard"),
    ("EtherEncap", "FromDevice(any) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard"),
    ("EtherMirror", "FromDevice(any) -> EtherMirror -> Discard"),
    ("EtherRewrite", "FromDevice(any) -> EtherRewrite(1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard"),
    (
        "EtherSwitch",
        "FromDevice(any) -> s :: EtherSwitch -> Discard; FromDevice(arp) -> [1] s; s[1] -> Discard",
    ),
    ("FixIPSrc", "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> FixIPSrc(7.7.7.7) -> Discard"),
    ("FlowSwitch", "FromDevice(any) -> f :: FlowSwitch -> Discard; f[1] -> Discard"),
    ("ForceICMP", "FromDevice(echo) -> Strip(14) -> CheckIPHeader -> ForceICMP(echo, 0) -> Discard"),
    ("ForceIP", "FromDevice(any) -> ForceIP -> Discard"),
    ("ForceTCP", "FromDevice(tcp) -> Strip(14) -> CheckIPHeader -> ForceTCP(0, true) -> Discard"),
    ("ForceUDP", "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> ForceUDP -> Discard"),
    ("FromDPDKDevice", "FromDPDKDevice(any) -> Discard"),
    ("FromDevice", "FromDevice(any) -> Discard"),
    ("FrontDropQueue", "FromDevice(any) -> FrontDropQueue(64) -> Unqueue -> Discard"),
    ("FullNoteQueue", "FromDevice(any) -> FullNoteQueue(64) -> Unqueue -> Discard"),
    ("GetIP6Address", "FromDevice(ip6) -> Strip(14) -> GetIP6Address(24) -> Discard"),
    ("GetIPAddress", "FromDevice(udp) -> Strip(14) -> GetIPAddress(16) -> Discard"),
    ("HashSwitch", "FromDevice(any) -> h :: HashSwitch(26, 8) -> Discard; h[1] -> Discard"),
    ("HostEtherFilter", "FromDevice(any) -> HostEtherFilter(2:0:0:0:0:1) -> Discard"),
    (
        "ICMP6Error",
        "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> ICMP6Error(2001:db8::9, 1, 0) -> Discard",
    ),
    (
        "ICMPError",
        "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> ICMPError(10.0.0.1, timeexceeded) -> Discard",
    ),
    ("ICMPPingResponder", "FromDevice(echo) -> Strip(14) -> CheckIPHeader -> ICMPPingResponder -> Discard"),
    (
        "ICMPPingRewriter",
        "FromDevice(echo) -> Strip(14) -> CheckIPHeader \
        -> r :: ICMPPingRewriter(pattern 203.0.113.1 1024-65535# - - 0 0) -> Discard",
    ),
    (
        "ICMPRewriter",
        "FromDevice(udp) -> Strip(14) -> CheckIPHeader \
        -> nat :: UDPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1) \
        -> ICMPError(10.9.9.9, unreachable, host) -> ICMPRewriter(nat) -> Discard; nat[1] -> Discard",
    ),
    ("IP6Encap", "FromDevice(udp) -> Strip(14) -> IP6Encap(4, 2001:db8::1, 2001:db8::2) -> Discard"),
    ("IP6Fragmenter", "FromDevice(any) -> f :: IP6Fragmenter(100) -> Discard; f[1] -> Discard"),
    ("IP6Mirror", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> IP6Mirror -> Discard"),
    ("IP6NDAdvertiser", "FromDevice(ip6) -> IP6NDAdvertiser(2001:db8::5 0:0:c0:ae:67:ef) -> Discard"),
    (
        "IP6NDSolicitor",
        "FromDevice(ip6) -> Strip(14) -> CheckIP6Header \
        -> s :: IP6NDSolicitor(2001:db8::77, 2:0:0:0:0:1) -> Discard; FromDevice(ip6) -> [1] s; s[1] -> Discard",
    ),
    (
        "IPAddrPairRewriter",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader \
        -> IPAddrPairRewriter(pattern 203.0.113.1-203.0.113.200# - 0 0) -> Discard",
    ),
    (
        "IPAddrRewriter",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader \
        -> IPAddrRewriter(pattern 203.0.113.1-203.0.113.200# - 0 0) -> Discard",
    ),
    (
        "IPClassifier",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> c :: IPClassifier(tcp, udp, -) -> d :: Discard; \
        c[1] -> d; c[2] -> d",
    ),
    ("IPEncap", "FromDevice(udp) -> Strip(14) -> IPEncap(4, 18.26.4.24, 140.247.60.147) -> Discard"),
    ("IPFilter", "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> IPFilter(allow udp, deny all) -> Discard"),
    (
        "IPFragmenter",
        "FromDevice(long) -> Strip(14) -> CheckIPHeader -> IPFragmenter(576, HONOR_DF false) -> Discard",
    ),
    ("IPGWOptions", "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> IPGWOptions(18.26.4.24) -> Discard"),
    ("IPMirror", "FromDevice(udp) -> Strip(14) -> CheckIPHeader -> IPMirror -> Discard"),
    (
        "IPRewriter",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader \
        -> IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0) -> Discard",
    ),
    (
        "Resolver",
        "FromDevice(arp) -> r :: Resolver(lan, 10.0.0.1/24, MAC 2:0:0:0:0:1) -> Discard; r[1] -> Discard",
    ),
    ("InfiniteSource", "InfiniteSource(\\<01 02 03>) -> Discard"),
    (
        "LookupIP6Route",
        "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) \
        -> LookupIP6Route(2001:db8::/32 0) -> Discard",
    ),
    ("MarkIP6Header", "FromDevice(ip6) -> MarkIP6Header(14) -> Discard"),
    ("MarkIPCE", "FromDevice(udp) -> MarkIPHeader(14) -> MarkIPCE -> Discard"),
    ("MarkIPHeader", "FromDevice(udp) -> MarkIPHeader(14) -> Discard"),
    ("MarkMACHeader", "FromDevice(udp) -> MarkMACHeader -> Discard"),
    ("NotifierQueue", "FromDevice(any) -> NotifierQueue(64) -> Unqueue -> Discard"),
    ("Null", "FromDevice(any) -> Null -> Discard"),
    ("OriginSwitch", "FromDevice(any) -> o :: OriginSwitch(0, OTHERWISE 1) -> Discard; o[1] -> Discard"),
    ("Paint", "FromDevice(any) -> Paint(7) -> Discard"),
    ("PaintSwitch", "FromDevice(any) -> Paint(1) -> p :: PaintSwitch -> Discard; p[1] -> Discard"),
    ("PaintTee", "FromDevice(any) -> Paint(1) -> p :: PaintTee(1) -> Discard; p[1] -> Discard"),
    ("Peel", "FromDevice(vlan) -> Peel(vlan) -> Discard"),
    (
        "PrioSched",
        "FromDevice(any) -> Queue -> s :: PrioSched -> Unqueue -> Discard; FromDevice(udp) -> Queue -> [1] s",
    ),
    (
        "PullSwitch",
        "FromDevice(any) -> Queue -> s :: PullSwitch(0) -> Unqueue -> Discard; FromDevice(udp) -> Queue -> [1] s",
    ),
    ("PullTee", "FromDevice(any) -> Queue -> t :: PullTee -> Unqueue -> Discard; t[1] -> Discard"),
    ("Queue", "FromDevice(any) -> Queue(64) -> Unqueue -> Discard"),
    ("QuickNoteQueue", "FromDevice(any) -> QuickNoteQueue(64) -> Unqueue -> Discard"),
    ("RED", "FromDevice(any) -> RED(5, 50, 0.1) -> Queue(100) -> Unqueue -> Discard"),
    ("RandomSample", "FromDevice(any) -> RandomSample(0.5) -> Discard"),
    ("RandomSwitch", "FromDevice(any) -> r :: RandomSwitch -> Discard; r[1] -> Discard"),
    ("RatedSource", "RatedSource(\\<01 02>, RATE 100000) -> Discard"),
    ("RatedUnqueue", "FromDevice(any) -> Queue -> RatedUnqueue(1000000) -> Discard"),
    ("ResetIPChecksum", "FromDevice(udp) -> MarkIPHeader(14) -> ResetIPChecksum -> Discard"),
    (
        "RoundRobinSched",
        "FromDevice(any) -> Queue -> s :: RoundRobinSched -> Unqueue -> Discard; \
        FromDevice(udp) -> Queue -> [1] s",
    ),
    ("RoundRobinSwitch", "FromDevice(any) -> r :: RoundRobinSwitch -> Discard; r[1] -> Discard"),
    ("SetAnnoByte", "FromDevice(any) -> SetAnnoByte(PAINT, 7) -> Discard"),
    ("SetIP6Address", "FromDevice(any) -> SetIP6Address(2001:db8::99) -> Discard"),
    ("SetIPAddress", "FromDevice(any) -> SetIPAddress(1.2.3.4) -> Discard"),
    ("SetIPChecksum", "FromDevice(udp) -> MarkIPHeader(14) -> SetIPChecksum -> Discard"),
    ("SetIPDSCP", "FromDevice(udp) -> MarkIPHeader(14) -> SetIPDSCP(46) -> Discard"),
    ("SetIPECN", "FromDevice(udp) -> MarkIPHeader(14) -> SetIPECN(1) -> Discard"),
    ("SetTCPChecksum", "FromDevice(tcp) -> MarkIPHeader(14) -> SetTCPChecksum -> Discard"),
    ("SetTimestamp", "FromDevice(any) -> SetTimestamp -> Discard"),
    ("SetUDPChecksum", "FromDevice(udp) -> MarkIPHeader(14) -> SetUDPChecksum -> Discard"),
    ("SetVLANAnno", "FromDevice(any) -> SetVLANAnno(5) -> Discard"),
    ("Shaper", "FromDevice(any) -> Queue -> Shaper(1000000) -> Unqueue -> Discard"),
    ("SimpleQueue", "FromDevice(any) -> SimpleQueue(64) -> Unqueue -> Discard"),
    (
        "StaticPullSwitch",
        "FromDevice(any) -> Queue -> s :: StaticPullSwitch(0) -> Unqueue -> Discard; \
        FromDevice(udp) -> Queue -> [1] s",
    ),
    ("StaticSwitch", "FromDevice(any) -> s :: StaticSwitch(1) -> Discard; s[1] -> Discard"),
    ("Steer", "FromDevice(any) -> s :: Steer(nf, 2, flow) -> Discard; s[1] -> Discard; Idle -> [1] s"),
    ("StoreEtherAddress", "FromDevice(any) -> StoreEtherAddress(2:0:0:0:0:7, dst) -> Discard"),
    ("StoreIP6Address", "FromDevice(ip6) -> Strip(14) -> StoreIP6Address(2001:db8::5, 24) -> Discard"),
    (
        "StoreIPAddress",
        "FromDevice(udp) -> Strip(14) -> MarkIPHeader -> StoreIPAddress(1.2.3.4, 16) -> Discard",
    ),
    (
        "StrideSched",
        "FromDevice(any) -> Queue -> s :: StrideSched(1, 2) -> Unqueue -> Discard; \
        FromDevice(udp) -> Queue -> [1] s",
    ),
    ("Strip", "FromDevice(any) -> Strip(14) -> Discard"),
    ("StripIPHeader", "FromDevice(udp) -> MarkIPHeader(14) -> StripIPHeader -> Discard"),
    ("StripToNetworkHeader", "FromDevice(udp) -> MarkIPHeader(14) -> StripToNetworkHeader -> Discard"),
    ("Switch", "FromDevice(any) -> s :: Switch(1) -> Discard; s[1] -> Discard"),
    (
        "TCPRewriter",
        "FromDevice(tcp) -> Strip(14) -> CheckIPHeader \
        -> TCPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0) -> Discard",
    ),
    ("Tee", "FromDevice(any) -> t :: Tee -> Discard; t[1] -> EtherMirror -> Discard"),
    ("ThreadSafeQueue", "FromDevice(any) -> ThreadSafeQueue(64) -> Unqueue -> Discard"),
    ("TimedSource", "TimedSource(0.0001, \\<01 02>) -> Discard"),
    ("ToDPDKDevice", "FromDevice(any) -> ToDPDKDevice(out)"),
    ("ToDevice", "FromDevice(any) -> ToDevice(out)"),
    ("ToDump", "FromDevice(any) -> ToDump(FOLDER/dump.pcap)"),
    ("Truncate", "FromDevice(any) -> Truncate(50) -> Discard"),
    ("UDPIPEncap", "FromDevice(any) -> UDPIPEncap(1.0.0.1, 1234, 2.0.0.2, 5678) -> Discard"),
    (
        "UDPRewriter",
        "FromDevice(udp) -> Strip(14) -> CheckIPHeader \
        -> UDPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0) -> Discard",
    ),
    ("Unqueue", "FromDevice(any) -> Queue -> Unqueue -> Discard"),
    ("Unstrip", "FromDevice(any) -> Unstrip(4) -> Discard"),
    ("VLANDecap", "FromDevice(vlan) -> VLANDecap -> Discard"),
    ("VLANEncap", "FromDevice(any) -> VLANEncap(VLAN_ID 100) -> Discard"),
    (
        "DirectIPLookup",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> DirectIPLookup(10.0.0.0/8 0) -> Discard",
    ),
    (
        "LinearIPLookup",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> LinearIPLookup(10.0.0.0/8 0) -> Discard",
    ),
    (
        "RadixIPLookup",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> RadixIPLookup(10.0.0.0/8 0) -> Discard",
    ),
    (
        "RangeIPLookup",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> RangeIPLookup(10.0.0.0/8 0) -> Discard",
    ),
    (
        "SortedIPLookup",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> SortedIPLookup(10.0.0.0/8 0) -> Discard",
    ),
    (
        "StaticIPLookup",
        "FromDevice(ip) -> Strip(14) -> CheckIPHeader -> StaticIPLookup(10.0.0.0/8 0) -> Discard",
    ),
    (
        "AddressTranslator",
        "FromDevice(udp) -> Strip(14) -> MarkIPHeader -> ProtocolTranslator46 \
        -> a :: AddressTranslator(0, true, true, false, 2001:db8::1 1024 65535) -> Discard; a[1] -> Discard; \
        FromDevice(udp) -> Strip(14) -> MarkIPHeader -> ProtocolTranslator46 -> [1] a",
    ),
    ("AdjustTimestamp", "FromDevice(any) -> AdjustTimestamp(-1.5, ALL true) -> Discard"),
    ("AggregateCounter", "FromDevice(any) -> AggregateCounter -> Discard"),
    ("AggregateFilter", "FromDevice(any) -> AggregateFilter(allow 0-5) -> Discard"),
    ("AggregateFirst", "FromDevice(any) -> AggregateFirst -> Discard"),
    ("AggregateIP", "FromDevice(ip) -> MarkIPHeader(14) -> AggregateIP(ip src) -> Discard"),
    ("AggregateIPAddrPair", "FromDevice(ip) -> MarkIPHeader(14) -> AggregateIPAddrPair -> Discard"),
    (
        "AggregateIPFlows",
        "FromDevice(udp) -> MarkIPHeader(14) -> SetTimestamp -> a :: AggregateIPFlows -> Discard; a[1] -> Discard",
    ),
    ("AggregateLength", "FromDevice(any) -> AggregateLength -> Discard"),
    ("AggregatePaint", "FromDevice(any) -> AggregatePaint -> Discard"),
    (
        "BandwidthRatedSplitter",
        "FromDevice(any) -> s :: BandwidthRatedSplitter(1MBps) -> Discard; s[1] \
        -> Discard",
    ),
    ("Bypass", "FromDevice(any) -> b :: Bypass(true) -> Discard; b[1] -> [1] b"),
    ("CPUSwitch", "FromDevice(any) -> c :: CPUSwitch -> Discard; c[1] -> Discard"),
    (
        "CheckNumberPacket",
        "FromDevice(udp) -> NumberPacket -> c :: CheckNumberPacket(COUNT 1000) -> Discard; c[1] \
        -> Discard",
    ),
    ("CounterMP", "FromDevice(any) -> CounterMP -> Discard"),
    ("EnsureDPDKBuffer", "FromDevice(any) -> EnsureDPDKBuffer -> Discard"),
    ("EtherVLANEncap", "FromDevice(any) -> EtherVLANEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2, 5) -> Discard"),
    ("ExactCPUSwitch", "FromDevice(any) -> c :: ExactCPUSwitch -> Discard; c[1] -> Discard"),
    (
        "FastUDPFlows",
        "FastUDPFlows(0, -1, 100, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2, 10, 5) \
        -> Discard",
    ),
    (
        "FTPPortMapper",
        "FromDevice(tcp) -> Strip(14) -> CheckIPHeader -> FTPPortMapper(r, r, 0) \
        -> r :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0) -> Discard",
    ),
    ("ICMPIPEncap", "FromDevice(any) -> ICMPIPEncap(1.0.0.1, 2.0.0.2, echo) -> Discard"),
    ("ICMPPingEncap", "FromDevice(any) -> ICMPPingEncap(1.0.0.1, 2.0.0.2) -> Discard"),
    ("IPInputCombo", "FromDevice(udp) -> IPInputCombo(3) -> Discard"),
    (
        "IPOutputCombo",
        "FromDevice(udp) -> Strip(14) -> MarkIPHeader -> c :: IPOutputCombo(3, 18.26.4.9, 1500) \
        -> d :: Discard; c[1] -> d; c[2] -> d; c[3] -> d; c[4] -> d",
    ),
    ("InputSwitch", "FromDevice(any) -> s :: InputSwitch(0) -> Discard; FromDevice(udp) -> [1] s"),
    ("LinkUnqueue", "FromDevice(any) -> Queue -> LinkUnqueue(1us, 1Gbps) -> Discard"),
    ("MixedQueue", "FromDevice(any) -> q :: MixedQueue(64) -> Unqueue -> Discard; FromDevice(udp) -> [1] q"),
    (
        "MultiReplayUnqueue",
        "FromDevice(any) -> Queue -> m :: MultiReplayUnqueue(LIMIT 100) -> Discard; FromDevice(udp) \
        -> Queue -> [1] m; m[1] -> Discard",
    ),
    ("NumberPacket", "FromDevice(udp) -> NumberPacket -> Discard"),
    ("Pad", "FromDevice(any) -> Pad(1000) -> Discard"),
    ("PaintRR", "FromDevice(any) -> p :: PaintRR -> Discard; p[1] -> Discard"),
    ("Pipeliner", "FromDevice(any) -> Pipeliner -> Discard"),
    ("PollDevice", "PollDevice(any) -> Discard"),
    (
        "ProtocolTranslator46",
        "FromDevice(udp) -> Strip(14) -> MarkIPHeader -> ProtocolTranslator46 -> Discard",
    ),
    (
        "ProtocolTranslator64",
        "FromDevice(udp) -> Strip(14) -> MarkIPHeader -> ProtocolTranslator46 -> ProtocolTranslator64 -> Discard",
    ),
    ("PathSpinlock", "FromDevice(any) -> PathSpinlock(l) -> Discard"),
    ("PullNull", "FromDevice(any) -> Queue -> PullNull -> Unqueue -> Discard"),
    ("PushNull", "FromDevice(any) -> PushNull -> Discard"),
    ("RatedSplitter", "FromDevice(any) -> s :: RatedSplitter(1000) -> Discard; s[1] -> Discard"),
    (
        "RoundRobinUnqueue",
        "FromDevice(any) -> Queue -> u :: RoundRobinUnqueue -> Discard; FromDevice(udp) -> Queue -> [1] u; \
        u[1] -> Discard",
    ),
    ("RecordTimestamp", "FromDevice(udp) -> NumberPacket -> RecordTimestamp(OFFSET 40, N 1000) -> Discard"),
    ("ReplayUnqueue", "FromDevice(any) -> Queue -> ReplayUnqueue(LIMIT 100) -> Discard"),
    (
        "RegexClassifier",
        "FromDevice(any) -> r :: RegexClassifier(\"[0-9]+x.*y\", \".\") -> Discard; r[1] -> Discard",
    ),
    ("Resize", "FromDevice(any) -> Resize(4, 4) -> Discard"),
    ("SetICMPChecksumIP6", "FromDevice(ip6) -> Strip(14) -> SetICMPChecksumIP6 -> Discard"),
    ("SetIP6DSCP", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> SetIP6DSCP(10) -> Discard"),
    ("SetIP6ECN", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> SetIP6ECN(1) -> Discard"),
    ("SetIP6FlowLabel", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> SetIP6FlowLabel(7) -> Discard"),
    ("SetIP6Hlim", "FromDevice(ip6) -> Strip(14) -> CheckIP6Header -> SetIP6Hlim(7) -> Discard"),
    ("SetTCPChecksumIP6", "FromDevice(ip6) -> Strip(14) -> SetTCPChecksumIP6 -> Discard"),
    ("SetTimestampDelta", "FromDevice(any) -> SetTimestampDelta(TYPE NOW) -> Discard"),
    ("SetTransportChecksumIP6", "FromDevice(ip6) -> Strip(14) -> SetTransportChecksumIP6 -> Discard"),
    ("SetUDPChecksumIP6", "FromDevice(ip6) -> Strip(14) -> SetUDPChecksumIP6 -> Discard"),
    (
        "SimplePrioSched",
        "FromDevice(any) -> Queue -> s :: SimplePrioSched -> Unqueue -> Discard; FromDevice(udp) \
        -> Queue -> [1] s",
    ),
    (
        "SimpleRoundRobinSched",
        "FromDevice(any) -> Queue -> s :: SimpleRoundRobinSched -> Unqueue -> Discard; FromDevice(udp) \
        -> Queue -> [1] s",
    ),
    (
        "SimplePullSwitch",
        "FromDevice(any) -> Queue -> s :: SimplePullSwitch(0) -> Unqueue -> Discard; FromDevice(udp) \
        -> Queue -> [1] s",
    ),
    ("SpinlockAcquire", "FromDevice(any) -> SpinlockAcquire(l) -> Discard"),
    ("SpinlockPush", "FromDevice(any) -> SpinlockPush(l) -> Discard"),
    ("SpinlockRelease", "FromDevice(any) -> SpinlockRelease(l) -> Discard"),
    ("StoreData", "FromDevice(any) -> StoreData(20, \\<01 02>) -> Discard"),
    ("StripEtherVLANHeader", "FromDevice(vlan) -> StripEtherVLANHeader -> Discard"),
    ("TimeFilter", "FromDevice(any) -> SetTimestamp -> t :: TimeFilter(1) -> Discard; t[1] -> Discard"),
    (
        "TimeSortedSched",
        "FromDevice(any) -> Queue -> s :: TimeSortedSched(BUFFER 4) -> Unqueue -> Discard; \
        FromDevice(udp) -> Queue -> [1] s",
    ),
    ("TimedSink", "FromDevice(any) -> Queue -> TimedSink(0.00001)"),
    (
        "TimestampDiff",
        "FromDevice(udp) -> NumberPacket -> r :: RecordTimestamp(OFFSET 40, N 100000) \
        -> t :: TimestampDiff(r, N 100) -> Discard; t[1] -> Discard",
    ),
    ("UDPIP6Encap", "FromDevice(any) -> UDPIP6Encap(2001:db8::1, 1234, 2001:db8::2, 5678) -> Discard"),
    (
        "UnstripIPHeader",
        "FromDevice(udp) -> MarkIPHeader(14) -> StripIPHeader -> UnstripIPHeader \
        -> Discard",
    ),
];

/// The classes that are not counted, or that may allocate, each with the reason.
pub const EXCEPTIONS: &[(&str, &str)] = &[
    ("AddressInfo", "passes no packets: names for addresses"),
    ("AlignmentInfo", "passes no packets"),
    ("ARPFaker", "four packets in twenty seconds are no steady state"),
    ("ARPPrint", "formats a line for each packet: that is its purpose"),
    ("ARPTable", "passes no packets: the table of ARPQuerier, which is counted"),
    ("BalancedThreadSched", "passes no packets"),
    ("ClickyInfo", "passes no packets"),
    ("ControlSocket", "passes no packets: it answers a client now and then"),
    ("DPDKInfo", "passes no packets"),
    ("DriverManager", "runs instructions, which are text, and passes no packets"),
    ("FromHost", "the kernel's packets are no steady traffic, and need a right"),
    ("FromDump", "a capture ends: there is no steady state"),
    ("FromIPSummaryDump", "parses a line of text for each packet, and ends with its file"),
    ("HandlerTask", "has no packets: it calls a handler, whose value is text"),
    ("Idle", "passes no packets"),
    ("IP6Print", "formats a line for each packet: that is its purpose"),
    ("ICMPPingSource", "a request a second is no steady state"),
    ("JiffieClock", "passes no packets"),
    ("IPPrint", "formats a line for each packet: that is its purpose"),
    ("IPReassembler", "gathers the bytes of each datagram that came in pieces, which is its slow path"),
    ("IPRewriterPatterns", "passes no packets: names for patterns"),
    ("KernelTap", "the kernel's packets are no steady traffic, and need a right"),
    ("KernelTun", "the kernel's packets are no steady traffic, and need a right"),
    ("McastSocket", "sends by the kernel, which may be full at any time"),
    ("NullTask", "has no packets"),
    ("PortInfo", "passes no packets: names for ports"),
    ("Print", "formats a line for each packet: that is its purpose"),
    ("ProcessNF", "counted by a test of its own, on both sides"),
    ("RandomSeed", "passes no packets"),
    ("RoundRobinIPMapper", "is asked for new flows only: steady flows have mappings"),
    ("ScheduleInfo", "passes no packets"),
    ("Script", "runs instructions, which are text, for packets that are pushed into it"),
    ("SourceIPHashMapper", "is asked for new flows only: steady flows have mappings"),
    ("SimpleIdle", "passes no packets"),
    ("SpinlockInfo", "passes no packets"),
    ("StaticThreadSched", "passes no packets"),
    ("TSCClock", "passes no packets"),
    ("ToHost", "needs a FromHost, which needs a right"),
    ("ToIPSummaryDump", "formats a line for each packet: that is its purpose"),
];
