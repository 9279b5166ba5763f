// L3 forwarding with a full table. The routes are not here: the benchmark writes them to routes.ctrl.
FromDevice(in)
    -> CheckIPHeader(OFFSET 14)
    -> routes :: RadixIPLookup(0.0.0.0/0 192.0.2.254 0)
    -> DecIPTTL
    -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03)
    -> ToDevice(out);
