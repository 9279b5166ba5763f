// A load balancer: requests to $SERVICE are spread over four servers at interface 2 by their source addresses, and
// answers come back with the service's address. All else is routed between interface 0, inside, and 1.

define($IP0 10.1.0.1, $NET0 10.1.0.0/24, $MAC0 02:00:00:01:00:00, $INSIDE 10.0.0.0/8, $BACK 10.1.0.2,
       $IP1 192.0.2.1, $NET1 192.0.2.0/24, $MAC1 02:00:00:01:00:01, $GATEWAY 192.0.2.2, $MTU 1500,
       $IP2 172.16.1.1, $NET2 172.16.1.0/24, $MAC2 02:00:00:01:00:02, $SERVICE 172.16.1.100,
       $SERVER1 172.16.1.11, $SERVER2 172.16.1.12, $SERVER3 172.16.1.13, $SERVER4 172.16.1.14);

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

// Interface 2.
c2 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out2 :: Queue(1000) -> ToDevice(2);
arpq2 :: ARPQuerier($IP2, $MAC2) -> out2;
FromDevice(2) -> c2;
c2[0] -> ARPResponder($IP2 $MAC2) -> out2;
c2[1] -> [1]arpq2;
c2[3] -> Discard;

rt :: RadixIPLookup($IP0/32 0, $IP1/32 0, $IP2/32 0, 255.255.255.255/32 0,
                     $NET0 1, $INSIDE $BACK 1, $NET1 2, $NET2 3, 0.0.0.0/0 $GATEWAY 2);
servers :: SourceIPHashMapper(16 0xbadbeef, - - $SERVER1 - 0 1 1, - - $SERVER2 - 0 1 2, - - $SERVER3 - 0 1 3,
                              - - $SERVER4 - 0 1 4);
balance :: IPRewriter(servers, pass 1);

ip :: Strip(14) -> check :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24 $IP2/24)
    -> request :: IPClassifier(dst host $SERVICE and (tcp or udp), -);
c0[2] -> ip;
c1[2] -> ip;
check[1] -> Discard;
request[0] -> [0]balance;
request[1] -> GetIPAddress(16) -> rt;

// From the servers.
c2[2] -> Strip(14) -> check2 :: CheckIPHeader(INTERFACES $IP0/24 $IP1/24 $IP2/24)
    -> answer :: IPClassifier(tcp or udp, -);
check2[1] -> Discard;
answer[0] -> [1]balance;
answer[1] -> rt;

balance[0] -> rt;
balance[1] -> rt;

// For this machine: it answers pings.
rt[0] -> local :: IPClassifier(icmp type echo, -) -> ICMPPingResponder -> rt;
local[1] -> Discard;

rt[1] -> to0 :: Counter;
rt[2] -> to1 :: Counter;
rt[3] -> to2 :: Counter;

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

// Forwarding to interface 2.
to2
    -> DropBroadcasts
    -> options2 :: IPGWOptions($IP2)
    -> FixIPSrc($IP2)
    -> ttl2 :: DecIPTTL
    -> fragment2 :: IPFragmenter($MTU)
    -> [0]arpq2;
options2[1] -> ICMPError($IP2, parameterproblem) -> rt;
ttl2[1] -> ICMPError($IP2, timeexceeded) -> rt;
fragment2[1] -> ICMPError($IP2, unreachable, needfrag) -> rt;
