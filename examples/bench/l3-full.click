// L3 forwarding with a full table. The routes are not here: the benchmark puts them into $ROUTES.
FromDevice(in)
    -> CheckIPHeader(OFFSET 14)
    -> RadixIPLookup($ROUTES)
    -> DecIPTTL
    -> EtherRewrite(02:00:00:00:00:02, 02:00:00:00:00:03)
    -> ToDevice(out);
