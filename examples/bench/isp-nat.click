// The NAPT between an ISP and the Internet. The benchmark says how many flows it keeps.
FromDevice(0)
    -> ip :: Classifier(12/0800, -);
ip[1] -> Discard;

ip[0]
    -> Strip(14)
    -> CheckIPHeader
    -> nat :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1$ROOM);
nat[0]
    -> EtherEncap(0x0800, 02:00:00:00:12:01, 02:00:00:00:12:02)
    -> ToDevice(1);
nat[1] -> Discard;
