// A router between an ISP's customers and the Internet: ten routes that lead to the Internet but for the
// router's own addresses.
FromDevice(0)
    -> ip :: Classifier(12/0800, -);
ip[1] -> Discard;

ip[0]
    -> Strip(14)
    -> CheckIPHeader
    -> rt :: StaticIPLookup(192.0.2.1/32 0,
                            192.0.2.255/32 0,
                            192.0.2.0/32 0,
                            255.255.255.255/32 0,
                            0.0.0.0/2 192.0.2.2 1,
                            64.0.0.0/2 192.0.2.3 1,
                            128.0.0.0/3 192.0.2.4 1,
                            160.0.0.0/3 192.0.2.5 1,
                            192.0.0.0/4 192.0.2.6 1,
                            0.0.0.0/0 192.0.2.7 1);
rt[0] -> Discard;
rt[1]
    -> DropBroadcasts
    -> options :: IPGWOptions(192.0.2.1)
    -> FixIPSrc(192.0.2.1)
    -> ttl :: DecIPTTL
    -> EtherEncap(0x0800, 02:00:00:00:11:01, 02:00:00:00:11:02)
    -> ToDevice(1);
options[1] -> Discard;
ttl[1] -> Discard;
