// A NAPT: everybody inside has one address outside, for TCP, UDP and pings, and gets the errors about what he sent.

define($IP0 10.1.0.1, $NET0 10.1.0.0/24, $MAC0 02:00:00:01:00:00, $INSIDE 10.0.0.0/8, $BACK 10.1.0.2,
       $IP1 192.0.2.1, $NET1 192.0.2.0/24, $MAC1 02:00:00:01:00:01, $GATEWAY 192.0.2.2, $MTU 1500);

// Interface 0.
c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out0 :: Queue(1000) -> ToDevice(0);
arpq0 :: ARPQuerier($IP0, $MAC0) -> out0;
FromDevice(0) -> c0;
c0[0] -> ARPResponder($IP0 $MAC0) -> out0;
c0[1] -> [1]arpq0;
c0[3] -> Discard;

// Interface 1.
c1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out1 :: Queue(1000) -> ToDevice(1);
arpq1 :: ARPQuerier($IP1, $MAC1) -> out1;
FromDevice(1) -> c1;
c1[0] -> ARPResponder($IP1 $MAC1) -> out1;
c1[1] -> [1]arpq1;
c1[3] -> Discard;

ports :: IPRewriter(pattern $IP1 1024-65535 - - 0 1, drop);
pings :: ICMPPingRewriter(pattern $IP1 1024-65535 - - 0 1, drop);
errors :: ICMPRewriter(ports pings);
inside :: StaticIPLookup($NET0 0, $INSIDE $BACK 0, 0.0.0.0/0 1);
outside :: StaticIPLookup($NET1 0, 0.0.0.0/0 $GATEWAY 0);
inside[1] -> Discard;

// From inside. The time to live ends before addresses change, so that an error goes to the sender.
c0[2]
    -> Strip(14)
    -> check0 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24)
    -> local0 :: IPClassifier(dst host $IP0 and icmp type echo, dst host $IP0, -);
check0[1] -> Discard;
local0[0] -> ICMPPingResponder -> inside;
local0[1] -> Discard;
local0[2]
    -> options0 :: IPGWOptions($IP0)
    -> ttl0 :: DecIPTTL
    -> what0 :: IPClassifier(tcp or udp, icmp type echo, -);
options0[1] -> ICMPError($IP0, parameterproblem) -> inside;
ttl0[1] -> ICMPError($IP0, timeexceeded) -> inside;
what0[0] -> [0]ports;
what0[1] -> [0]pings;
what0[2] -> Discard;

// From outside.
c1[2]
    -> Strip(14)
    -> check1 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24)
    -> options1 :: IPGWOptions($IP1)
    -> ttl1 :: DecIPTTL
    -> what1 :: IPClassifier(tcp or udp, icmp type echo-reply, icmp type echo and dst host $IP1,
                             icmp type unreachable or icmp type timeexceeded, -);
check1[1] -> Discard;
options1[1] -> ICMPError($IP1, parameterproblem) -> outside;
ttl1[1] -> ICMPError($IP1, timeexceeded) -> outside;
what1[0] -> [1]ports;
what1[1] -> [1]pings;
what1[2] -> ICMPPingResponder -> outside;
what1[3] -> errors -> inside;
what1[4] -> Discard;

ports[0] -> outside;
pings[0] -> outside;
ports[1] -> inside;
pings[1] -> inside;

inside[0] -> FixIPSrc($IP0) -> fragment0 :: IPFragmenter($MTU) -> [0]arpq0;
outside[0] -> FixIPSrc($IP1) -> fragment1 :: IPFragmenter($MTU) -> [0]arpq1;
fragment0[1] -> ICMPError($IP0, unreachable, needfrag) -> outside;
fragment1[1] -> ICMPError($IP1, unreachable, needfrag) -> inside;
