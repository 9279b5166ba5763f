// A NAPT; the benchmark chains some of them, each with another external address.
elementclass Stage { $NUMBER |
    input
        -> Classifier(12/0800)
        -> Strip(14)
        -> CheckIPHeader
        -> [0]nat :: IPRewriter(pattern 203.0.113.$NUMBER 1024-65535 - - 0 1);
    nat[0]
        -> EtherEncap(0x0800, 02:00:00:00:$NUMBER:01, 02:00:00:00:$NUMBER:02)
        -> output;
    nat[1] -> Discard;
}
