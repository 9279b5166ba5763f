// Layer-4 firewall for any capture: the second NF of any.toml. What is meant for the own network only (NetBIOS, SSDP,
// mDNS, LLMNR) is dropped, everything else passes.

define($OUT_MAC 02:00:00:00:01:02, $NEXT_MAC 02:00:00:00:02:01);

FromDevice(0)
    -> arp :: Classifier(12/0800, -);
arp[1] -> not_ip :: Discard;

arp[0]
    -> Strip(14)
    -> check :: CheckIPHeader
    -> filter :: IPFilter(
           deny udp && dst port 137-138,
           deny udp && dst port 1900,
           deny udp && dst port 5353,
           deny udp && dst port 5355,
           allow all)
    -> ttl :: DecIPTTL
    -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC)
    -> ToDevice(1);
check[1] -> bad :: Discard;
ttl[1] -> expired :: Discard;
