// The NAPT of SNF's figure 5 with its ways back: interface 0 is inside, 1 leads to the firewall, 2 to the Internet. TCP
// and UDP flows from inside get the outer address and a port of its range; TCP leaves by 2, UDP by 1.

define($IP 198.51.100.1, $INSIDE 10.0.0.0/8,
       $MAC0 02:00:00:00:00:01, $HOST 02:00:00:00:00:02,
       $MAC1 02:00:00:01:01:00, $FIREWALL 02:00:00:01:01:01,
       $MAC2 02:00:00:01:02:00, $GATEWAY 02:00:00:01:02:01);

rewriter :: IPRewriter(pattern $IP 1024-65535# - - 0 1, drop);

FromDevice(0)
    -> ip0 :: Classifier(12/0800, -)
    -> Strip(14)
    -> check0 :: CheckIPHeader
    -> from_inside :: IPClassifier(src net $INSIDE and (tcp or udp), -)
    -> [0]rewriter;
ip0[1] -> Discard;
check0[1] -> Discard;
from_inside[1] -> Discard;

rewriter[0]
    -> ttl0 :: DecIPTTL
    -> split :: IPClassifier(tcp, -);
ttl0[1] -> Discard;
split[0] -> EtherEncap(0x0800, $MAC2, $GATEWAY) -> ToDevice(2);
split[1] -> EtherEncap(0x0800, $MAC1, $FIREWALL) -> ToDevice(1);

FromDevice(1) -> ip1 :: Classifier(12/0800, -) -> Strip(14) -> check1 :: CheckIPHeader -> [1]rewriter;
ip1[1] -> Discard;
check1[1] -> Discard;
FromDevice(2) -> ip2 :: Classifier(12/0800, -) -> Strip(14) -> check2 :: CheckIPHeader -> [1]rewriter;
ip2[1] -> Discard;
check2[1] -> Discard;

rewriter[1]
    -> ttl1 :: DecIPTTL
    -> EtherEncap(0x0800, $MAC0, $HOST)
    -> ToDevice(0);
ttl1[1] -> Discard;
