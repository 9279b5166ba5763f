// NAPT: the first NF of the chain of the SNF paper's figure 5.
//
// Interface 0 is inside, 1 leads on to the firewall, 2 to the Internet. Outgoing TCP and UDP flows get
// the external address and a port of its range; TCP leaves here, UDP goes on to the firewall.

define($EXTERNAL 198.51.100.1, $INSIDE 10.0.0.0/8,
       $IN_MAC 02:00:00:00:00:01, $OUT_MAC 02:00:00:00:00:02, $NEXT_MAC 02:00:00:00:01:01);

rewriter :: IPRewriter(pattern $EXTERNAL 1024-65535 - - 0 1);
bad :: Discard;

FromDevice(0)
    -> arp :: Classifier(12/0800, -);
arp[1] -> not_ip :: Discard;

arp[0]
    -> Strip(14)
    -> check :: CheckIPHeader
    -> classify :: IPClassifier(src net $INSIDE && (tcp or udp), -);
check[1] -> bad;

classify[0] -> [0]rewriter;
classify[1] -> not_nat :: Discard;

// Leaving: what is TCP goes to the Internet, the rest to the firewall.
rewriter[0]
    -> ttl :: DecIPTTL
    -> split :: IPClassifier(tcp, -);
rewriter[1] -> reply :: Discard;
ttl[1] -> expired :: Discard;

split[0] -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC) -> ToDevice(2);
split[1] -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC) -> ToDevice(1);
