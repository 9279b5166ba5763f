// Layer-4 firewall: the second NF. UDP to port 1234 passes, everything else is dropped.

define($OUT_MAC 02:00:00:00:01:02, $NEXT_MAC 02:00:00:00:02:01);

FromDevice(0)
    -> arp :: Classifier(12/0800, -);
arp[1] -> not_ip :: Discard;

arp[0]
    -> Strip(14)
    -> check :: CheckIPHeader
    -> filter :: IPFilter(allow udp && dst port 1234, deny all)
    -> ttl :: DecIPTTL
    -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC)
    -> ToDevice(1);
check[1] -> bad :: Discard;
ttl[1] -> expired :: Discard;
