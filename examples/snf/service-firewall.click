// The layer-4 firewall of SNF's figure 5 with its way back: interface 0 is the clients' side, 1 the servers'. Requests
// to the service's UDP port pass, and what comes from that port; all else is dropped.

define($PORT 1234,
       $MAC0 02:00:00:01:01:01, $NAPT 02:00:00:01:01:00,
       $MAC1 02:00:00:02:01:00, $BALANCER 02:00:00:02:01:01);

FromDevice(0)
    -> ip0 :: Classifier(12/0800, -)
    -> Strip(14)
    -> check0 :: CheckIPHeader
    -> IPFilter(allow udp and dst port $PORT, deny all)
    -> ttl0 :: DecIPTTL
    -> EtherEncap(0x0800, $MAC1, $BALANCER)
    -> ToDevice(1);
ip0[1] -> Discard;
check0[1] -> Discard;
ttl0[1] -> Discard;

FromDevice(1)
    -> ip1 :: Classifier(12/0800, -)
    -> Strip(14)
    -> check1 :: CheckIPHeader
    -> IPFilter(allow udp and src port $PORT, deny all)
    -> ttl1 :: DecIPTTL
    -> EtherEncap(0x0800, $MAC0, $NAPT)
    -> ToDevice(0);
ip1[1] -> Discard;
check1[1] -> Discard;
ttl1[1] -> Discard;
