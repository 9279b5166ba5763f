// The NAPT between an ISP (interface 0) and the Internet (1), with both ways. The benchmark says how many flows it
// keeps.
FromDevice(0)
    -> out :: Classifier(12/0800, -);
out[1] -> Discard;

out[0]
    -> Strip(14)
    -> CheckIPHeader
    -> [0]nat :: IPRewriter(pattern 203.0.113.1 1024-65535 - - 0 1, drop$ROOM);
nat[0]
    -> EtherEncap(0x0800, 02:00:00:00:12:01, 02:00:00:00:12:02)
    -> ToDevice(1);

FromDevice(1)
    -> back :: Classifier(12/0800, -);
back[1] -> Discard;

back[0]
    -> Strip(14)
    -> CheckIPHeader
    -> [1]nat;
nat[1]
    -> EtherEncap(0x0800, 02:00:00:00:12:03, 02:00:00:00:12:04)
    -> ToDevice(0);
