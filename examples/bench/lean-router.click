// A lean router: checks, looks up, rewrites. The benchmark chains some of them.
elementclass Stage { $NUMBER |
    input
        -> CheckIPHeader(OFFSET 14)
        -> StaticIPLookup(198.18.0.0/18 192.0.$NUMBER.1 0,
                          198.18.64.0/18 192.0.$NUMBER.2 0,
                          198.18.128.0/18 192.0.$NUMBER.3 0,
                          198.18.192.0/19 192.0.$NUMBER.4 0,
                          198.18.224.0/19 192.0.$NUMBER.5 0,
                          198.19.0.0/18 192.0.$NUMBER.6 0,
                          198.19.64.0/18 192.0.$NUMBER.7 0,
                          198.19.128.0/18 192.0.$NUMBER.8 0,
                          198.19.192.0/19 192.0.$NUMBER.9 0,
                          198.19.224.0/19 192.0.$NUMBER.10 0)
        -> DecIPTTL
        -> EtherRewrite(02:00:00:00:$NUMBER:01, 02:00:00:00:$NUMBER:02)
        -> output;
}
