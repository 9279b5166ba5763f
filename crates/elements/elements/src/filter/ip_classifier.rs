//! `IPClassifier`: sorts IP packets by tcpdump-like patterns.

use super::acl::LIMITS;
use super::expr;
use super::sorter::{Sorter, ip_plan};
use element::{BoxElement, Class, Configure, PortCodes, StateScope};

/// The class.
pub const CLASS: Class = Class {
    name: "IPClassifier",
    summary: "sorts IP packets by tcpdump-like patterns",
    page: "\
# IPClassifier(PATTERN_1, ..., PATTERN_N)

Sends each packet to the output of the first pattern that it matches. The packet's IP header
annotation must be set (`CheckIPHeader`, `MarkIPHeader`). A packet that matches nothing is dropped.

A pattern is built from these tests:

| test | matches |
|---|---|
| `[SRCDST] host ADDR`, `[SRCDST] net PREFIX` | IP addresses. A prefix is `10.0.0.0/8`, `10.0.0.0 mask 255.0.0.0`, or short, `204.152/16` |
| `[SRCDST] [tcp\\|udp] port PORT` | ports, in first fragments |
| `ip proto PROTO`, or a protocol's name alone | IP protocol |
| `ip vers\\|hl\\|tos\\|dscp\\|id\\|len\\|ttl N` | fields of the IP header |
| `ip frag`, `ip unfrag`, `ip ect`, `ip ce` | fragments; ECN-capable, congestion experienced |
| `tcp opt FLAG`, or the flag alone | a TCP flag: `syn` `fin` `ack` `rst` `psh` `urg` |
| `tcp win N`, `icmp type TYPE` | in first fragments |
| `ip[POS:LEN] VALUE`, `transp[..]`, `tcp[..]`, `udp[..]`, … | bytes of a header |
| `[SRCDST] ether host ADDR` | Ethernet addresses; the MAC header annotation must be set |
| `vlan [ID]`, `qinq [ID]` | a VLAN tag; two tags: the inner one's identifier. The MAC header annotation must be set, here and for the next |
| `mpls [LABEL]`, `arp`, `ethertype TYPE` | the type behind up to two tags; for frames other than IPv4, which `Dispatch` sorts |
| `ip6`, `[SRCDST] ip6 host ADDR`, `[SRCDST] ip6 net PREFIX`, `ip6 proto PROTO`, `[SRCDST] ip6 [tcp\\|udp] port PORT` | IPv6, in the same way; the next header and the ports are those right behind the IPv6 header |
| `vxlan [VNI]`, `geneve [VNI]` | UDP to port 4789, 6081, in first fragments |
| `true`, `false`; `-`, `any`, `all` alone | every packet; none; every packet |

SRCDST is `src`, `dst`, `src or dst` (the default) or `src and dst`. A relation may stand before a
value: `=` `==` `!=` `<` `<=` `>` `>=`, and a mask before that: `tcp[13] & 0x12 = 2`. Numbers may be a
range: `src port 1024-65535`. `!=`, `<` and `<=` are the opposites of `=`, `>=` and `>` as a whole:
`port != 80` means that neither port is 80.

Tests are joined by `and` (`&&`, or nothing), `or` (`||`), `not` (`!`), `? :` and parentheses. A value
alone repeats the qualifiers before it: `src port 80 or 81`. Words may be left out if the meaning is clear:
`10.0.0.0/24 and syn`. Names of `AddressInfo`, services and protocols may stand for their numbers.

A test of bytes that the packet does not have fails. On a packet without an IP header all tests fail.

- **ports**: 1 input, push; as many outputs as patterns
- **handlers**: `program` (read): the rules as Click lists them, a test of four bytes a line (`256` is the first byte of
  the IP header, `512` of the transport header); `steps` (read): the decisions that run, for people; `config`
  (read/write): other rules take the place of these while packets flow; `pattern0`, ... (read/write): one of them
- **drop reasons**: `no-match`
- **difference**: ports are tested only where both are there (4 bytes), because they are read together
- **difference**: ranges, `net 10` and `net 10 mask ...` are understood, because tcpdump does so
- **difference**: what runs is not the list of `program` but that of `steps`, which decides the same over header
  fields. Of more than 256 rules, and of rules with tests that Click does not have, `program` is the list of `steps`
",
    codes: PortCodes::SORTER,
    state: StateScope::None,
    make,
};

fn make(cx: &mut Configure<'_>) -> Option<BoxElement> {
    let (patterns, read) = cx.patterns(expr::parse)?;
    let rules: Vec<_> = (0..).zip(read).map(|(output, pattern)| (pattern.expr, output)).collect();
    let plan = ip_plan(cx, &rules, LIMITS)?;
    Some(BoxElement::transparent(Sorter::of_patterns(cx, "IPClassifier", plan, &patterns)))
}
