// Ten rules, ten routes, the TTL, a NAPT: what BESS was measured with; the benchmark chains some of them. Rules
// and routes go by the destination, which no NAPT changes, and traffic meets each of them equally often.
elementclass Stage { $NUMBER |
    input
        -> Classifier(12/0800)
        -> Strip(14)
        -> CheckIPHeader
        -> IPFilter(allow dst net 198.18.0.0/18 && udp && dst port 1234,
                    allow dst net 198.18.64.0/18 && udp && dst port 1234,
                    allow dst net 198.18.128.0/18 && udp && dst port 1234,
                    allow dst net 198.18.192.0/19 && udp && dst port 1234,
                    allow dst net 198.18.224.0/19 && udp && dst port 1234,
                    allow dst net 198.19.0.0/18 && udp && dst port 1234,
                    allow dst net 198.19.64.0/18 && udp && dst port 1234,
                    allow dst net 198.19.128.0/18 && udp && dst port 1234,
                    allow dst net 198.19.192.0/19 && udp && dst port 1234,
                    allow dst net 198.19.224.0/19 && udp && dst port 1234,
                    deny all)
        -> rt :: StaticIPLookup(198.18.0.0/18 192.0.2.1 0,
                                198.18.64.0/18 192.0.2.2 0,
                                198.18.128.0/18 192.0.2.3 0,
                                198.18.192.0/19 192.0.2.4 0,
                                198.18.224.0/19 192.0.2.5 0,
                                198.19.0.0/18 192.0.2.6 0,
                                198.19.64.0/18 192.0.2.7 0,
                                198.19.128.0/18 192.0.2.8 0,
                                198.19.192.0/19 192.0.2.9 0,
                                198.19.224.0/19 192.0.2.10 0)
        -> ttl :: DecIPTTL
        -> nat :: IPRewriter(pattern 203.0.113.$NUMBER 1024-65535 - - 0 1);
    ttl[1] -> Discard;
    nat[0]
        -> EtherEncap(0x0800, 02:00:00:00:$NUMBER:01, 02:00:00:00:$NUMBER:02)
        -> output;
    nat[1] -> Discard;
}
