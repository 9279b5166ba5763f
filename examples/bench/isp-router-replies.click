// A router between an ISP's customers (interface 0), the Internet (1) and the ISP's own servers (2), with both ways.
// The servers' network is large, so that some of any rules lead there. What comes back is for customers, whose
// addresses are anybody's.
elementclass Forward { $ADDRESS, $MAC, $NEXT |
    input
        -> DropBroadcasts
        -> options :: IPGWOptions($ADDRESS)
        -> FixIPSrc($ADDRESS)
        -> ttl :: DecIPTTL
        -> EtherEncap(0x0800, $MAC, $NEXT)
        -> output;
    options[1] -> Discard;
    ttl[1] -> Discard;
}

FromDevice(0)
    -> out :: Classifier(12/0800, -);
out[1] -> Discard;

out[0]
    -> Strip(14)
    -> CheckIPHeader
    -> rt :: StaticIPLookup(192.0.2.1/32 0,
                            192.0.2.255/32 0,
                            192.0.2.0/32 0,
                            255.255.255.255/32 0,
                            0.0.0.0/2 192.0.2.2 1,
                            64.0.0.0/2 192.0.2.3 1,
                            128.0.0.0/3 192.0.2.4 1,
                            160.0.0.0/3 192.0.2.5 2,
                            192.0.0.0/4 192.0.2.6 1,
                            0.0.0.0/0 192.0.2.7 1);
rt[0] -> Discard;
rt[1] -> Forward(192.0.2.1, 02:00:00:00:11:01, 02:00:00:00:11:02) -> ToDevice(1);
rt[2] -> Forward(192.0.2.1, 02:00:00:00:11:03, 02:00:00:00:11:04) -> ToDevice(2);

FromDevice(1) -> back :: Classifier(12/0800, -);
FromDevice(2) -> back;
back[1] -> Discard;

back[0]
    -> Strip(14)
    -> CheckIPHeader
    -> home :: StaticIPLookup(192.0.2.1/32 0,
                              192.0.2.255/32 0,
                              192.0.2.0/32 0,
                              255.255.255.255/32 0,
                              0.0.0.0/0 1);
home[0] -> Discard;
home[1] -> Forward(192.0.2.1, 02:00:00:00:11:05, 02:00:00:00:11:06) -> ToDevice(0);
