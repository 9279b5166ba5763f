//! The pages of the rewriter classes.

/// `IPRewriter`.
pub const IP: &str = "\
# IPRewriter(INPUTSPEC1, ..., INPUTSPECn [, keywords])

Rewrites addresses and ports of TCP and UDP packets, and their checksums: a network address and port
translator (NAPT). Packets are looked up by source and destination address, ports and protocol. A packet
that has a mapping is rewritten by it and leaves by the mapping's output, by whichever input it came. One
that has none is treated as the input specification of its input says:

- `drop` or `discard`: it is dropped.
- `pass OUTPUT` (also `passthrough`, `nochange`): it goes to OUTPUT as it is, and so do packets that are
  neither TCP nor UDP, and later fragments.
- `keep FOUTPUT ROUTPUT`: a mapping is made that changes nothing.
- `pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT`: a mapping is made that sets these; `-` leaves a
  value as it is. SPORT may be a range `L-H`: the packet's own source port if it lies in the range and is
  free, else a free one at random; with `#` at its end in order, with `?` always at random. (SADDR may be
  a range or a prefix where there are no ports: `pattern SADDR DADDR FOUTPUT ROUTPUT`.)
- `pattern PATNAME FOUTPUT ROUTPUT`: by a pattern of an `IPRewriterPatterns` element.
- `ELEMENTNAME`: as a mapper says, such as `RoundRobinIPMapper`.

With the mapping (SA, SP, DA, DP) => (SA', SP', DA', DP') [FOUTPUT] comes the one for replies,
(DA', DP', SA', SP') => (DA, DP, SA, SP) [ROUTPUT].

- **ports**: one input for each specification, 1 or more outputs, push
- **needs**: the network and transport header annotations (`CheckIPHeader`)
- **arguments**, times in seconds or with a unit: `TCP_TIMEOUT` (24 h: payload was seen in both
  directions), `TCP_DONE_TIMEOUT` (4 min: after FIN from both sides or RST), `TCP_NODATA_TIMEOUT` (5 min:
  other TCP), `TCP_GUARANTEE` (5 s), `UDP_TIMEOUT` (5 min), `UDP_STREAMING_TIMEOUT` (as UDP_TIMEOUT; at
  least 3 packets, one of them a reply), `UDP_GUARANTEE` (5 s): for so long after a packet a mapping is not
  pushed out when the table is full; `REAP_INTERVAL` (15 min; 0: never), `MAPPING_CAPACITY` (a number, or
  a rewriter with which to share one), `DST_ANNO` (true: set the destination address annotation),
  `REPLY_ANNO` (a one-byte annotation: replies get the value that the first packet had). Old names are
  accepted: `CAPACITY`, `TIMEOUT`, `GUARANTEE`, `REAP_TIME`, `REAP_TCP`, `REAP_TCP_DONE`, `REAP_UDP`,
  `TCP_DONE_GC_INCR`; FastClick's `HANDLE_MIGRATION` has no effect, since packets are brought to the worker that
  has their mapping. `SET_AGGREGATE` (false): the aggregate annotation of packets becomes the number of their
  mapping, which are counted from 0 in the order in which they are made; each packet takes a slow path then
- **further arguments**: `MAPPING ENDPOINT_INDEPENDENT` gives an internal address and port one external
  address and port, whatever it talks to (RFC 4787 REQ-1, RFC 5382 REQ-1; Click's behaviour and the
  default, ADDRESS_AND_PORT_DEPENDENT, lets one external port serve many remote ends), and hairpins: a
  packet to an external address and port that belongs to an internal one goes there, with its source
  translated (REQ-9). `FILTERING ENDPOINT_INDEPENDENT`, only with it, lets anybody send to an external
  address and port in use, by any input. `SEED` makes the choice of ports repeatable; without it, it
  cannot be foretold
- **annotations**: sets `DST_IP`; `AGGREGATE` with `SET_AGGREGATE`
- **handlers**: `tcp_table`, `udp_table` (also `tcp_mappings`, `udp_mappings`), `tcp_lookup SADDR SPORT
  DADDR DPORT`, `table_size`, `nmappings`, `mapping_failures`, `patterns`, `size`, `evictions` (read);
  `capacity`, `pattern0`, `pattern1`, ... (read and write; writing a pattern removes the mappings that it
  made); `clear` (write)
- **drop reasons**: `no-ip-header`, `fragment` (later fragments: they have no ports), `not-tcp-or-udp`,
  `short-transport`, `no-mapping`, `port-exhausted`, `table-full` (none may go),
  `mapping-conflict` (another mapping has the reply flow and cannot make way before the burst ends: the
  next packet succeeds), `no-such-output`
- **workers**: each has mappings of its own, an equal and contiguous part of every range, and of the
  capacity; replies are brought to the worker that has the mapping. With `#` and `?` values are preferred whose
  replies come there by themselves
- **difference**: replies may leave by an output that is wired to nothing, and the last specifications may
  be for inputs that nothing is wired to: both are warnings, and such replies are dropped as
  `no-such-output`
- **difference**: mappings go soon after their timeout (within a quarter of the shortest timeout, and
  within 10 seconds and the reap interval) instead of all at once at each reap interval, because a sweep
  of a large table would stop traffic
- **full tables**: mappings of flows that have ended go first, then those without a reply, then others; of these
  the first to expire. During its guarantee no mapping goes, and a TCP connection whose handshake was seen goes
  only after its end. Where none may go the new flow is refused (`table-full`, `mapping_failures`); without a
  guarantee also where it would expire before the one that would go
- **difference**: in Click, established connections go as well, and what a flow has come to is not asked. Of a
  table of more than 64 mappings a part is looked at for a new flow
- **difference**: without MAPPING_CAPACITY a worker holds 1,048,576 mappings; raising the `capacity`
  handler beyond what was configured does not enlarge the table
- **difference**: a range of more than 65,536 addresses is tried in 4,096 places before `port-exhausted`
";

/// `TCPRewriter`.
pub const TCP: &str = "\
# TCPRewriter(INPUTSPEC1, ..., INPUTSPECn [, keywords])

As `IPRewriter`, for TCP only.

- **ports, input specifications, arguments, workers, differences**: as `IPRewriter`; there are no
  arguments for UDP
- **handlers**: as `IPRewriter`, with `table`, `mappings` and `lookup` for its `tcp_table`,
  `tcp_mappings` and `tcp_lookup`
- **drop reasons**: as `IPRewriter`, with `not-tcp` for `not-tcp-or-udp`
- **sequence numbers** change in connections whose commands an `FTPPortMapper` has changed, as they do in `IPRewriter`
";

/// `UDPRewriter`.
pub const UDP: &str = "\
# UDPRewriter(INPUTSPEC1, ..., INPUTSPECn [, keywords])

As `IPRewriter`, for UDP, TCP and DCCP, all with UDP's timeouts.

- **ports, input specifications, drop reasons, workers, differences**: as `IPRewriter`
- **arguments**: `UDP_TIMEOUT` or `TIMEOUT` (5 min), `UDP_STREAMING_TIMEOUT` or `STREAMING_TIMEOUT`,
  `UDP_GUARANTEE` or `GUARANTEE` (5 s); the others as `IPRewriter`
- **handlers**: as `IPRewriter`, with `table` and `mappings` for its tables
- **difference**: flows of different protocols have mappings of their own, and the checksum of DCCP is
  mended, because receivers drop it otherwise
";

/// `IPAddrRewriter`.
pub const ADDRESS: &str = "\
# IPAddrRewriter(INPUTSPEC1, ..., INPUTSPECn [, keywords])

Rewrites source addresses of IP packets, of any protocol, and destination addresses of their replies:
Basic NAT. A packet is looked up by its source address, then by its destination address. Checksums of
TCP, UDP, UDP-Lite and DCCP are mended; later fragments are rewritten too.

- **ports**: one input for each specification, 1 or more outputs, push
- **input specifications**: as `IPRewriter`; patterns are `SADDR[-SADDR2] -` or `ADDR/PREFIX -`. Of a
  range a free address is taken at random, with `#` at its end in order
- **arguments**: `TIMEOUT` (2 h), `GUARANTEE` (5 s), `REAP_INTERVAL`, `MAPPING_CAPACITY`, `REPLY_ANNO`,
  `SEED`, all as in `IPRewriter`
- **annotations**: sets `DST_IP` on replies
- **handlers**: `table`, `mappings`, and those of `IPRewriter` that are not about protocols
- **drop reasons**: `no-ip-header`, `no-mapping`, `port-exhausted` (no address left), `table-full`,
  `mapping-conflict`, `no-such-output`
- **workers, differences**: as `IPRewriter`; a source's flows may be several workers', of which each
  maps it by itself
";

/// `IPAddrPairRewriter`.
pub const PAIR: &str = "\
# IPAddrPairRewriter(INPUTSPEC1, ..., INPUTSPECn [, keywords])

Rewrites source and destination addresses of IP packets, of any protocol, by pair of addresses. Checksums
of TCP, UDP, UDP-Lite and DCCP are mended; later fragments are rewritten too.

- **ports**: one input for each specification, 1 or more outputs, push
- **input specifications**: as `IPRewriter`; patterns are `SADDR[-SADDR2] DADDR`
- **arguments, handlers, drop reasons, workers, differences**: as `IPAddrRewriter`
- **annotations**: sets `DST_IP`
";

/// `ICMPPingRewriter`.
pub const PING: &str = "\
# ICMPPingRewriter(INPUTSPEC1, ..., INPUTSPECn [, keywords])

Rewrites addresses and identifiers of ICMP echo requests, and of the replies to them. In input
specifications the source port stands for the identifier: `pattern 1.0.0.1 1024-65535 - - 0 1`.

- **ports**: one input for each specification, 1 or more outputs, push
- **arguments**: `TIMEOUT` (5 min), `GUARANTEE` (5 s), `DST_ANNO`, and the others as in `IPRewriter`
- **annotations**: sets `DST_IP`
- **handlers**: `table`, `mappings`, and those of `IPRewriter` that are not about protocols
- **drop reasons**: as `IPRewriter`, with `not-icmp-echo`; a reply that nobody asked for is `no-mapping`
- **workers, differences**: as `IPRewriter`
";
