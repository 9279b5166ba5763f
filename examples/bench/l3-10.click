// L3 forwarding with ten routes, one interface: the route gives the next hop only.
FromDevice(in)
    -> check :: CheckIPHeader(OFFSET 14)
    -> StaticIPLookup(198.18.0.0/18 192.0.2.1 0,
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
    -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03)
    -> ToDevice(out);
