// The gateway of a small office: a NAPT with patterns for all that it translates, a web server inside that the world
// reaches by the gateway's address, and a firewall for the gateway itself.

define($IP0 10.1.0.1, $NET0 10.1.0.0/24, $MAC0 02:00:00:01:00:00, $INSIDE 10.0.0.0/8, $BACK 10.1.0.2,
       $IP1 192.0.2.1, $NET1 192.0.2.0/24, $MAC1 02:00:00:01:00:01, $GATEWAY 192.0.2.2, $MTU 1500, $SERVER 10.1.0.80);

// Interface 0.
c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out0 :: Queue(1000) -> ToDevice(0);
arpq0 :: ARPQuerier($IP0, $MAC0) -> out0;
FromDevice(0) -> HostEtherFilter($MAC0) -> c0;
c0[0] -> ARPResponder($IP0 $MAC0) -> out0;
c0[1] -> [1]arpq0;
c0[3] -> Discard;

// Interface 1.
c1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out1 :: Queue(1000) -> ToDevice(1);
arpq1 :: ARPQuerier($IP1, $MAC1) -> out1;
FromDevice(1) -> HostEtherFilter($MAC1) -> c1;
c1[0] -> ARPResponder($IP1 $MAC1) -> out1;
c1[1] -> [1]arpq1;
c1[3] -> Discard;

IPRewriterPatterns(to_world $IP1 50000-65535 - -,
                   to_server - - $SERVER 80);
rw :: IPRewriter(pattern to_world 0 1, pattern to_server 1 0, drop);
ping :: ICMPPingRewriter(pattern to_world 0 1, drop);
icmp :: ICMPRewriter(rw ping);
rt :: RadixIPLookup($IP0/32 0, $IP1/32 0, 255.255.255.255/32 0,
                     $NET0 1, $INSIDE $BACK 1, $NET1 2, 0.0.0.0/0 $GATEWAY 2);

// From inside: to the gateway, within the office, or out into the world.
c0[2]
    -> Strip(14)
    -> check0 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24)
    -> from_office :: IPClassifier(dst host $IP0 or dst net $NET0 or dst net $INSIDE, tcp or udp, icmp type echo, -);
check0[1] -> Discard;
from_office[0] -> rt;
from_office[1] -> [0]rw;
from_office[2] -> [0]ping;
from_office[3] -> Discard;

// From the world: for the server, answers, or nothing.
c1[2]
    -> Strip(14)
    -> check1 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24)
    -> for_us :: IPClassifier(dst host $IP1, -);
check1[1] -> Discard;
for_us[1] -> stray :: Counter -> Discard;
for_us[0]
    -> from_world :: IPClassifier(dst tcp port 80, tcp or udp, icmp type echo-reply, icmp type echo,
                                  icmp type unreachable or icmp type timeexceeded, -);
from_world[0] -> [1]rw;
from_world[1] -> [2]rw;
from_world[2] -> [1]ping;
from_world[3] -> rt;
from_world[4] -> icmp -> rt;
from_world[5] -> Discard;

rw[0] -> rt;
rw[1] -> rt;
ping[0] -> rt;
ping[1] -> rt;

// For this machine: it answers pings.
rt[0] -> local :: IPClassifier(icmp type echo, -) -> ICMPPingResponder -> rt;
local[1] -> Discard;

rt[1] -> to0 :: Counter;
rt[2] -> to1 :: Counter;

// Forwarding to interface 0.
to0
    -> DropBroadcasts
    -> options0 :: IPGWOptions($IP0)
    -> FixIPSrc($IP0)
    -> ttl0 :: DecIPTTL
    -> fragment0 :: IPFragmenter($MTU)
    -> [0]arpq0;
options0[1] -> ICMPError($IP0, parameterproblem) -> rt;
ttl0[1] -> ICMPError($IP0, timeexceeded) -> rt;
fragment0[1] -> ICMPError($IP0, unreachable, needfrag) -> rt;

// Forwarding to interface 1.
to1
    -> DropBroadcasts
    -> options1 :: IPGWOptions($IP1)
    -> FixIPSrc($IP1)
    -> ttl1 :: DecIPTTL
    -> fragment1 :: IPFragmenter($MTU)
    -> [0]arpq1;
options1[1] -> ICMPError($IP1, parameterproblem) -> rt;
ttl1[1] -> ICMPError($IP1, timeexceeded) -> rt;
fragment1[1] -> ICMPError($IP1, unreachable, needfrag) -> rt;
