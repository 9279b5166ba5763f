// NAPT for any capture: the first NF of any.toml.
//
// Whoever sends a packet counts as inside: TCP and UDP flows over IPv4 get the external address and a port of its range,
// each direction for itself. TCP leaves here, UDP goes on to the firewall. Other IP packets (ICMP, IPv6, fragments) pass
// as they are, by interface 3.

define($EXTERNAL 198.51.100.1, $OUT_MAC 02:00:00:00:00:02, $NEXT_MAC 02:00:00:00:01:01);

// With the same seed, every run chooses the same ports.
rewriter :: IPRewriter(pattern $EXTERNAL 1024-65535 - - 0 1, SEED 1);

FromDevice(0)
    -> type :: Classifier(12/0800, 12/86dd, -);
type[1] -> other :: ToDevice(3);
type[2] -> not_ip :: Discard;

type[0]
    -> Strip(14)
    -> check :: CheckIPHeader
    -> classify :: IPClassifier(ip unfrag && (tcp or udp), -);
check[1] -> bad :: Discard;
classify[1] -> Unstrip(14) -> other;

classify[0] -> [0]rewriter;
rewriter[0]
    -> ttl :: DecIPTTL
    -> split :: IPClassifier(tcp, -);
rewriter[1] -> reply :: Discard;
ttl[1] -> expired :: Discard;

split[0] -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC) -> ToDevice(2);
split[1] -> EtherEncap(0x0800, $OUT_MAC, $NEXT_MAC) -> ToDevice(1);
