// A standards-compliant IP router with two interfaces, element for element that of Click's paper and of
// its make-ip-conf.pl, but for ARP (the next hop is known) and fragmentation (frames are short). Packets
// come in at interface 1 and leave at interface 2. The benchmark chains some of them.
elementclass Stage { $NUMBER |
    input
        -> c :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    c[0] -> Discard;
    c[1] -> Discard;
    c[2]
        -> Paint(1)
        -> Strip(14)
        -> check :: CheckIPHeader(INTERFACES 10.0.0.$NUMBER/8 198.18.0.$NUMBER/15)
        -> rt :: StaticIPLookup(10.0.0.$NUMBER/32 0,
                                10.255.255.255/32 0,
                                10.0.0.0/32 0,
                                198.18.0.$NUMBER/32 0,
                                198.19.255.255/32 0,
                                198.18.0.0/32 0,
                                10.0.0.0/8 1,
                                198.18.0.0/15 2,
                                255.255.255.255/32 0,
                                0.0.0.0/0 192.0.2.1 1);
    c[3] -> Discard;
    check[1] -> Discard;

    rt[0] -> Discard;
    rt[1] -> Discard;
    rt[2]
        -> DropBroadcasts
        -> redirect :: PaintTee(2)
        -> options :: IPGWOptions(198.18.0.$NUMBER)
        -> FixIPSrc(198.18.0.$NUMBER)
        -> ttl :: DecIPTTL
        -> EtherEncap(0x0800, 02:00:00:00:$NUMBER:01, 02:00:00:00:$NUMBER:02)
        -> output;
    redirect[1] -> Discard;
    options[1] -> Discard;
    ttl[1] -> Discard;
}
