// The router of router.click with both ways: input and output 0 lead to 198.18.0.0/15, 1 to 10.0.0.0/8. The benchmark
// puts some of them in a row, and a mirror behind the last: every packet passes each router twice.
elementclass Forward { $ADDRESS, $INTERFACE, $MAC, $NEXT |
    input
        -> DropBroadcasts
        -> redirect :: PaintTee($INTERFACE)
        -> options :: IPGWOptions($ADDRESS)
        -> FixIPSrc($ADDRESS)
        -> ttl :: DecIPTTL
        -> EtherEncap(0x0800, $MAC, $NEXT)
        -> output;
    redirect[1] -> Discard;
    options[1] -> Discard;
    ttl[1] -> Discard;
}

elementclass Stage { $NUMBER |
    input[0] -> out :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    input[1] -> back :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
    out[0] -> Discard;
    out[1] -> Discard;
    out[3] -> Discard;
    back[0] -> Discard;
    back[1] -> Discard;
    back[3] -> Discard;

    rt :: StaticIPLookup(10.255.254.$NUMBER/32 0,
                         10.255.255.255/32 0,
                         198.18.0.$NUMBER/32 0,
                         198.19.255.255/32 0,
                         198.18.0.0/32 0,
                         10.0.0.0/8 1,
                         198.18.0.0/15 2,
                         255.255.255.255/32 0,
                         0.0.0.0/0 192.0.2.1 1);
    out[2]
        -> Paint(1)
        -> Strip(14)
        -> outward :: CheckIPHeader(INTERFACES 10.255.254.$NUMBER/8 198.18.0.$NUMBER/15)
        -> rt;
    back[2]
        -> Paint(2)
        -> Strip(14)
        -> inward :: CheckIPHeader(INTERFACES 10.255.254.$NUMBER/8 198.18.0.$NUMBER/15)
        -> rt;
    outward[1] -> Discard;
    inward[1] -> Discard;

    rt[0] -> Discard;
    rt[1] -> Forward(10.255.254.$NUMBER, 1, 02:00:00:01:$NUMBER:01, 02:00:00:01:$NUMBER:02) -> [1]output;
    rt[2] -> Forward(198.18.0.$NUMBER, 2, 02:00:00:00:$NUMBER:01, 02:00:00:00:$NUMBER:02) -> [0]output;
}
