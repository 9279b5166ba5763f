// A standards-compliant IP router with two interfaces, element for element that of Click's paper (Kohler et
// al., "The Click modular router", figure 8): ARP, header checks, routing, redirects, options, TTL,
// fragmentation, ICMP errors, and ping for the router itself.
//
// Interfaces are called 0 and 1. The defaults below are those of the offline example; a chain file or -D
// sets others.

define($IP0 10.0.0.254, $NET0 10.0.0.0/16, $BCAST0 10.0.255.255, $MAC0 02:00:00:00:00:01, $MTU0 1500,
       $IP1 192.0.2.1, $NET1 192.0.2.0/24, $BCAST1 192.0.2.255, $MAC1 02:00:00:00:00:02, $MTU1 1500,
       $GATEWAY 192.0.2.2);

// Input path and routing table. Output 0 is the router itself, 1 and 2 are the interfaces 0 and 1.
ip :: Strip(14)
    -> check :: CheckIPHeader(INTERFACES $IP0/16 $IP1/24)
    -> [0]rt :: StaticIPLookup($IP0/32 0, $BCAST0/32 0, $IP1/32 0, $BCAST1/32 0, 255.255.255.255/32 0,
                               $NET0 1, $NET1 2, 0.0.0.0/0 $GATEWAY 2);
check[1] -> bad :: Discard;

// Answers to ARP questions are noted by both interfaces.
arpt :: Tee(2);

// Interface 0.
c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
FromDevice(0) -> c0;
out0 :: Queue(1000) -> ToDevice(0);
c0[0] -> ARPResponder($IP0 $MAC0) -> out0;
c0[1] -> arpt;
c0[2] -> Paint(1) -> ip;
c0[3] -> not_ip0 :: Discard;
arpq0 :: ARPQuerier($IP0, $MAC0) -> out0;
arpt[0] -> [1]arpq0;

// Interface 1.
c1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
FromDevice(1) -> c1;
out1 :: Queue(1000) -> ToDevice(1);
c1[0] -> ARPResponder($IP1 $MAC1) -> out1;
c1[1] -> arpt;
c1[2] -> Paint(2) -> ip;
c1[3] -> not_ip1 :: Discard;
arpq1 :: ARPQuerier($IP1, $MAC1) -> out1;
arpt[1] -> [1]arpq1;

// The router itself answers pings; nothing else is for it.
rt[0]
    -> local :: IPClassifier(icmp type echo, -)
    -> ICMPPingResponder
    -> [0]rt;
local[1] -> for_us :: Discard;

// Forwarding to interface 0.
rt[1]
    -> DropBroadcasts
    -> redirect0 :: PaintTee(1)
    -> options0 :: IPGWOptions($IP0)
    -> FixIPSrc($IP0)
    -> ttl0 :: DecIPTTL
    -> fragment0 :: IPFragmenter($MTU0)
    -> [0]arpq0;
redirect0[1] -> ICMPError($IP0, redirect, host) -> [0]rt;
options0[1] -> ICMPError($IP0, parameterproblem) -> [0]rt;
ttl0[1] -> ICMPError($IP0, timeexceeded) -> [0]rt;
fragment0[1] -> ICMPError($IP0, unreachable, needfrag) -> [0]rt;

// Forwarding to interface 1.
rt[2]
    -> DropBroadcasts
    -> redirect1 :: PaintTee(2)
    -> options1 :: IPGWOptions($IP1)
    -> FixIPSrc($IP1)
    -> ttl1 :: DecIPTTL
    -> fragment1 :: IPFragmenter($MTU1)
    -> [0]arpq1;
redirect1[1] -> ICMPError($IP1, redirect, host) -> [0]rt;
options1[1] -> ICMPError($IP1, parameterproblem) -> [0]rt;
ttl1[1] -> ICMPError($IP1, timeexceeded) -> [0]rt;
fragment1[1] -> ICMPError($IP1, unreachable, needfrag) -> [0]rt;
