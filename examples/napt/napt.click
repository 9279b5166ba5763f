// A NAPT between an inside network and an outside one, as home routers have it: TCP, UDP and pings of the
// inside share one outside address; ARP and pings to the router are answered; ICMP errors find their way
// to whom they concern.
//
// Interface 0 is inside, 1 is outside.

define($IP0 10.0.0.254, $NET0 10.0.0.0/16, $MAC0 02:00:00:00:00:01,
       $IP1 192.0.2.1, $NET1 192.0.2.0/24, $MAC1 02:00:00:00:00:02,
       $GATEWAY 192.0.2.2);

// Input 0 is for what comes from inside, input 1 for what comes from outside: that needs a mapping.
rewriter :: IPRewriter(pattern $IP1 1024-65535 - - 0 0, pass 1);
pings :: ICMPPingRewriter(pattern $IP1 0-65535 - - 0 0, pass 1);
errors :: ICMPRewriter(rewriter pings);

// After translation: 0 is inside, 1 outside.
rt :: StaticIPLookup($NET0 0, $NET1 1, 0.0.0.0/0 $GATEWAY 1);
rewriter[0] -> rt;
pings[0] -> rt;
errors[0] -> rt;
unknown :: Discard;
rewriter[1] -> unknown;
errors[1] -> unknown;

// Interface 0, inside.
c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
FromDevice(0) -> c0;
out0 :: Queue(1000) -> ToDevice(0);
c0[0] -> ARPResponder($IP0 $MAC0) -> out0;
arpq0 :: ARPQuerier($IP0, $MAC0) -> out0;
c0[1] -> [1]arpq0;
c0[3] -> not_ip0 :: Discard;
rt[0] -> [0]arpq0;

c0[2]
    -> Strip(14)
    -> check0 :: CheckIPHeader
    -> for_us0 :: IPClassifier(dst host $IP0 && icmp type echo, dst host $IP0, -);
check0[1] -> bad :: Discard;
for_us0[0] -> ICMPPingResponder -> rt;
for_us0[1] -> not_served0 :: Discard;
for_us0[2]
    -> ttl0 :: DecIPTTL
    -> inside :: IPClassifier(tcp or udp, icmp type echo, icmp, -);
ttl0[1] -> ICMPError($IP0, timeexceeded) -> rt;
inside[0] -> [0]rewriter;
inside[1] -> [0]pings;
inside[2] -> errors;
inside[3] -> not_translated :: Discard;

// Interface 1, outside.
c1 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
FromDevice(1) -> c1;
out1 :: Queue(1000) -> ToDevice(1);
c1[0] -> ARPResponder($IP1 $MAC1) -> out1;
arpq1 :: ARPQuerier($IP1, $MAC1) -> out1;
c1[1] -> [1]arpq1;
c1[3] -> not_ip1 :: Discard;
rt[1] -> [0]arpq1;

c1[2]
    -> Strip(14)
    -> check1 :: CheckIPHeader
    -> ttl1 :: DecIPTTL
    -> outside :: IPClassifier(tcp or udp, icmp type echo-reply, icmp type echo && dst host $IP1, icmp, -);
check1[1] -> bad;
ttl1[1] -> ICMPError($IP1, timeexceeded) -> rt;
outside[0] -> [1]rewriter;
outside[1] -> [1]pings;
outside[2] -> ICMPPingResponder -> rt;
outside[3] -> errors;
outside[4] -> not_served1 :: Discard;
pings[1] -> unknown;
