// A firewall without state that routes between two networks. Nobody outside pretends to be inside; inside may do what
// its list says; from outside come answers, and requests to web servers.

define($IP0 10.1.0.1, $NET0 10.1.0.0/24, $MAC0 02:00:00:01:00:00, $INSIDE 10.0.0.0/8, $BACK 10.1.0.2,
       $IP1 192.0.2.1, $NET1 192.0.2.0/24, $MAC1 02:00:00:01:00:01, $GATEWAY 192.0.2.2, $MTU 1500);

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

rt :: RadixIPLookup($IP0/32 0, $IP1/32 0, 255.255.255.255/32 0,
                     $NET0 1, $INSIDE $BACK 1, $NET1 2, 0.0.0.0/0 $GATEWAY 2);

c0[2]
    -> Strip(14)
    -> check0 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24)
    -> own0 :: IPClassifier(src net $NET0 or src net $INSIDE, -)
    -> allowed :: IPFilter(deny dst tcp port 25,
                           deny dst udp port 137-139,
                           deny dst tcp port 135-139 or dst tcp port 445,
                           allow tcp or udp,
                           allow icmp type echo or icmp type echo-reply,
                           allow icmp type unreachable or icmp type timeexceeded,
                           deny all)
    -> rt;
check0[1] -> Discard;
own0[1] -> spoofed0 :: Counter -> Discard;
allowed[1] -> refused0 :: Counter -> Discard;

c1[2]
    -> Strip(14)
    -> check1 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24)
    -> own1 :: IPClassifier(src net $NET0, -);
own1[1]
    -> answers :: IPFilter(deny tcp opt syn and not tcp opt ack and not dst tcp port 80,
                           allow tcp,
                           allow udp and dst port > 1023,
                           allow icmp,
                           deny all)
    -> rt;
check1[1] -> Discard;
own1[0] -> spoofed1 :: Counter -> Discard;
answers[1] -> refused1 :: Counter -> Discard;

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
